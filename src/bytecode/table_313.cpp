// CPython 3.13.
#include "bytecode/table.h"
#include "cpy/version.h"

// <opcode.h> has the numbers of the running version only.
#if OXY_PYTHON == 313
#include <opcode.h>
#define OXY_OPCODE(name) #name, name
#else
#define OXY_OPCODE(name) #name, kNoOpcode
#endif

namespace oxy::bytecode {
namespace {

constexpr TableEntry kEntries[] = {
    {OXY_OPCODE(CACHE), {Op::Nop, Form::Nothing}},
    {OXY_OPCODE(NOP), {Op::Nop, Form::Nothing}},
    {OXY_OPCODE(POP_TOP), {Op::PopTop, Form::Plain}},
    {OXY_OPCODE(PUSH_NULL), {Op::PushNull, Form::Plain}},
    {OXY_OPCODE(UNARY_NEGATIVE), {Op::UnaryNegative, Form::Plain}},
    {OXY_OPCODE(UNARY_NOT), {Op::UnaryNot, Form::Plain}},
    {OXY_OPCODE(UNARY_INVERT), {Op::UnaryInvert, Form::Plain}},
    {OXY_OPCODE(BINARY_SUBSCR), {Op::BinarySubscr, Form::Plain, 1}},
    {OXY_OPCODE(GET_LEN), {Op::GetLen, Form::Plain}},
    {OXY_OPCODE(MATCH_MAPPING), {Op::MatchMapping, Form::Plain}},
    {OXY_OPCODE(MATCH_SEQUENCE), {Op::MatchSequence, Form::Plain}},
    {OXY_OPCODE(MATCH_KEYS), {Op::MatchKeys, Form::Plain}},
    {OXY_OPCODE(MATCH_CLASS), {Op::MatchClass, Form::Plain}},
    {OXY_OPCODE(PUSH_EXC_INFO), {Op::PushExcInfo, Form::Plain}},
    {OXY_OPCODE(CHECK_EXC_MATCH), {Op::CheckExcMatch, Form::Plain}},
    {OXY_OPCODE(CHECK_EG_MATCH), {Op::CheckEgMatch, Form::Plain}},
    {OXY_OPCODE(WITH_EXCEPT_START), {Op::WithExceptStart, Form::Plain}},
    {OXY_OPCODE(GET_AITER), {Op::GetAiter, Form::Plain}},
    {OXY_OPCODE(GET_ANEXT), {Op::GetAnext, Form::Plain}},
    {OXY_OPCODE(BEFORE_ASYNC_WITH), {Op::BeforeAsyncWith, Form::Plain}},
    {OXY_OPCODE(BEFORE_WITH), {Op::BeforeWith, Form::Plain}},
    {OXY_OPCODE(END_ASYNC_FOR), {Op::EndAsyncFor, Form::Plain}},
    {OXY_OPCODE(STORE_SUBSCR), {Op::StoreSubscr, Form::Plain, 1}},
    {OXY_OPCODE(DELETE_SUBSCR), {Op::DeleteSubscr, Form::Plain}},
    {OXY_OPCODE(GET_ITER), {Op::GetIter, Form::Plain}},
    {OXY_OPCODE(GET_YIELD_FROM_ITER), {Op::GetYieldFromIter, Form::Plain}},
    {OXY_OPCODE(LOAD_BUILD_CLASS), {Op::LoadBuildClass, Form::Plain}},
    {OXY_OPCODE(LOAD_ASSERTION_ERROR), {Op::LoadAssertionError, Form::Plain}},
    {OXY_OPCODE(RETURN_GENERATOR), {Op::ReturnGenerator, Form::Plain}},
    {OXY_OPCODE(RETURN_VALUE), {Op::ReturnValue, Form::Plain}},
    {OXY_OPCODE(SETUP_ANNOTATIONS), {Op::SetupAnnotations, Form::Plain}},
    {OXY_OPCODE(YIELD_VALUE), {Op::YieldValue, Form::Plain}},
    {OXY_OPCODE(POP_EXCEPT), {Op::PopExcept, Form::Plain}},
    {OXY_OPCODE(STORE_NAME), {Op::StoreName, Form::Plain}},
    {OXY_OPCODE(DELETE_NAME), {Op::DeleteName, Form::Plain}},
    {OXY_OPCODE(UNPACK_SEQUENCE), {Op::UnpackSequence, Form::Plain, 1}},
    {OXY_OPCODE(FOR_ITER), {Op::ForIter, Form::ForwardLoop, 1}},
    {OXY_OPCODE(UNPACK_EX), {Op::UnpackEx, Form::TwoCounts}},
    {OXY_OPCODE(STORE_ATTR), {Op::StoreAttr, Form::Plain, 4}},
    {OXY_OPCODE(DELETE_ATTR), {Op::DeleteAttr, Form::Plain}},
    {OXY_OPCODE(STORE_GLOBAL), {Op::StoreGlobal, Form::Plain}},
    {OXY_OPCODE(DELETE_GLOBAL), {Op::DeleteGlobal, Form::Plain}},
    {OXY_OPCODE(SWAP), {Op::Swap, Form::Plain}},
    {OXY_OPCODE(COPY), {Op::Copy, Form::Plain}},
    {OXY_OPCODE(LOAD_CONST), {Op::LoadConst, Form::Plain}},
    {OXY_OPCODE(LOAD_NAME), {Op::LoadName, Form::Plain}},
    {OXY_OPCODE(BUILD_TUPLE), {Op::BuildTuple, Form::Plain}},
    {OXY_OPCODE(BUILD_LIST), {Op::BuildList, Form::Plain}},
    {OXY_OPCODE(BUILD_SET), {Op::BuildSet, Form::Plain}},
    {OXY_OPCODE(BUILD_MAP), {Op::BuildMap, Form::Plain}},
    {OXY_OPCODE(BUILD_CONST_KEY_MAP), {Op::BuildConstKeyMap, Form::Plain}},
    {OXY_OPCODE(BUILD_STRING), {Op::BuildString, Form::Plain}},
    {OXY_OPCODE(BUILD_SLICE), {Op::BuildSlice, Form::Plain}},
    {OXY_OPCODE(LOAD_ATTR), {Op::LoadAttr, Form::AttributeOrMethod, 9}},
    {OXY_OPCODE(COMPARE_OP), {Op::CompareOp, Form::CompareBool, 1}},
    {OXY_OPCODE(IS_OP), {Op::IsOp, Form::Plain}},
    {OXY_OPCODE(CONTAINS_OP), {Op::ContainsOp, Form::Plain, 1}},
    {OXY_OPCODE(BINARY_OP), {Op::BinaryOp, Form::BinaryKind, 1}},
    {OXY_OPCODE(IMPORT_NAME), {Op::ImportName, Form::Plain}},
    {OXY_OPCODE(IMPORT_FROM), {Op::ImportFrom, Form::Plain}},
    {OXY_OPCODE(JUMP_FORWARD), {Op::Jump, Form::Forward}},
    {OXY_OPCODE(JUMP_BACKWARD), {Op::Jump, Form::Backward, 1}},
    {OXY_OPCODE(JUMP_BACKWARD_NO_INTERRUPT), {Op::Jump, Form::QuietBackward}},
    {OXY_OPCODE(LOAD_GLOBAL), {Op::LoadGlobal, Form::GlobalAndNull, 4}},
    {OXY_OPCODE(RERAISE), {Op::Reraise, Form::Plain}},
    {OXY_OPCODE(SEND), {Op::Send, Form::Forward, 1}},
    {OXY_OPCODE(LOAD_FAST), {Op::LoadFast, Form::Plain}},
    {OXY_OPCODE(STORE_FAST), {Op::StoreFast, Form::Plain}},
    {OXY_OPCODE(DELETE_FAST), {Op::DeleteFast, Form::Plain}},
    {OXY_OPCODE(RAISE_VARARGS), {Op::RaiseVarargs, Form::Plain}},
    {OXY_OPCODE(GET_AWAITABLE), {Op::GetAwaitable, Form::Plain}},
    {OXY_OPCODE(MAKE_FUNCTION), {Op::MakeFunction, Form::Fixed, 0, 0, 0}},
    {OXY_OPCODE(MAKE_CELL), {Op::MakeCell, Form::Plain}},
    {OXY_OPCODE(COPY_FREE_VARS), {Op::CopyFreeVars, Form::Plain}},
    {OXY_OPCODE(LOAD_DEREF), {Op::LoadDeref, Form::Plain}},
    {OXY_OPCODE(STORE_DEREF), {Op::StoreDeref, Form::Plain}},
    {OXY_OPCODE(DELETE_DEREF), {Op::DeleteDeref, Form::Plain}},
    {OXY_OPCODE(CALL_FUNCTION_EX), {Op::CallFunctionEx, Form::Plain}},
    {OXY_OPCODE(CALL), {Op::Call, Form::Call, 3}},
    {OXY_OPCODE(LIST_APPEND), {Op::ListAppend, Form::Plain}},
    {OXY_OPCODE(SET_ADD), {Op::SetAdd, Form::Plain}},
    {OXY_OPCODE(MAP_ADD), {Op::MapAdd, Form::Plain}},
    {OXY_OPCODE(LIST_EXTEND), {Op::ListExtend, Form::Plain}},
    {OXY_OPCODE(SET_UPDATE), {Op::SetUpdate, Form::Plain}},
    {OXY_OPCODE(DICT_MERGE), {Op::DictMerge, Form::Plain}},
    {OXY_OPCODE(DICT_UPDATE), {Op::DictUpdate, Form::Plain}},
    {OXY_OPCODE(RESUME), {Op::Resume, Form::Plain}},
    {OXY_OPCODE(INTERPRETER_EXIT), {Op::Unknown, Form::Plain}},
    {OXY_OPCODE(END_FOR), {Op::EndFor, Form::Plain}},
    {OXY_OPCODE(END_SEND), {Op::EndSend, Form::Plain}},
    {OXY_OPCODE(BINARY_SLICE), {Op::BinarySlice, Form::Plain}},
    {OXY_OPCODE(STORE_SLICE), {Op::StoreSlice, Form::Plain}},
    {OXY_OPCODE(CLEANUP_THROW), {Op::CleanupThrow, Form::Plain}},
    {OXY_OPCODE(LOAD_LOCALS), {Op::LoadLocals, Form::Plain}},
    {OXY_OPCODE(LOAD_FROM_DICT_OR_GLOBALS), {Op::LoadFromDictOrGlobals, Form::Plain}},
    {OXY_OPCODE(LOAD_FROM_DICT_OR_DEREF), {Op::LoadFromDictOrDeref, Form::Plain}},
    {OXY_OPCODE(POP_JUMP_IF_FALSE), {Op::PopJumpIfFalse, Form::Forward, 1}},
    {OXY_OPCODE(POP_JUMP_IF_TRUE), {Op::PopJumpIfTrue, Form::Forward, 1}},
    {OXY_OPCODE(POP_JUMP_IF_NONE), {Op::PopJumpIfNone, Form::Forward, 1}},
    {OXY_OPCODE(POP_JUMP_IF_NOT_NONE), {Op::PopJumpIfNotNone, Form::Forward, 1}},
    {OXY_OPCODE(RETURN_CONST), {Op::LoadConst, Form::ReturnConstant}},
    {OXY_OPCODE(LOAD_FAST_CHECK), {Op::LoadFast, Form::Plain}},
    {OXY_OPCODE(LOAD_FAST_AND_CLEAR), {Op::LoadFastAndClear, Form::Plain}},
    {OXY_OPCODE(LOAD_SUPER_ATTR), {Op::LoadSuperAttr, Form::SuperAttributeOrMethod, 1}},
    {OXY_OPCODE(CALL_INTRINSIC_1), {Op::TypeIntrinsic, Form::Intrinsic1}},
    {OXY_OPCODE(CALL_INTRINSIC_2), {Op::TypeIntrinsic, Form::Intrinsic2}},
    {OXY_OPCODE(TO_BOOL), {Op::ToBool, Form::Plain, 3}},
    {OXY_OPCODE(CALL_KW), {Op::Call, Form::CallKeywords}},
    {OXY_OPCODE(CONVERT_VALUE), {Op::ConvertValue, Form::Plain}},
    {OXY_OPCODE(FORMAT_SIMPLE), {Op::FormatValue, Form::Fixed, 0, 0, 0}},
    {OXY_OPCODE(FORMAT_WITH_SPEC), {Op::FormatValue, Form::Fixed, 0, 0, 1}},
    {OXY_OPCODE(LOAD_FAST_LOAD_FAST), {Op::LoadFast, Form::TwoLocals, 0, 0, 0, Op::LoadFast}},
    {OXY_OPCODE(STORE_FAST_LOAD_FAST), {Op::StoreFast, Form::TwoLocals, 0, 0, 0, Op::LoadFast}},
    {OXY_OPCODE(STORE_FAST_STORE_FAST), {Op::StoreFast, Form::TwoLocals, 0, 0, 0, Op::StoreFast}},
    {OXY_OPCODE(SET_FUNCTION_ATTRIBUTE), {Op::SetFunctionAttribute, Form::Plain}},
    {OXY_OPCODE(EXIT_INIT_CHECK), {Op::ExitInitCheck, Form::Plain}},
};

}  // namespace

std::span<const TableEntry> entries_313() {
  return kEntries;
}

#if OXY_PYTHON == 313
constexpr Table kTable = make_table(kEntries);
constexpr uint8_t kExtendedArgument = EXTENDED_ARG;
constexpr int kExhaustedSkip = 2;
#endif

}  // namespace oxy::bytecode
