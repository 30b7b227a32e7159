#include "bytecode/operations.h"

#include <array>

namespace oxy::bytecode {
namespace {

using K = Operands::Kind;

constexpr Operands fixed(uint8_t count) {
  return {K::Fixed, count};
}

constexpr Operands kUnknown = {};

// clang-format off
constexpr Operation kOperations[] = {
    {Op::Nop, "Nop", fixed(0), LocalUse::None, ControlFlow::Next, true, SymbolicForm::Simple},
    {Op::PopTop, "PopTop", fixed(1), LocalUse::None, ControlFlow::Next, true, SymbolicForm::Simple},
    {Op::Copy, "Copy", {K::Argument, 0}, LocalUse::None, ControlFlow::Next, true, SymbolicForm::Simple},
    {Op::Swap, "Swap", {K::Argument, 0}, LocalUse::None, ControlFlow::Next, true, SymbolicForm::Simple},
    {Op::PushNull, "PushNull", fixed(0), LocalUse::None, ControlFlow::Next, true, SymbolicForm::Simple},
    {Op::LoadConst, "LoadConst", fixed(0), LocalUse::None, ControlFlow::Next, true, SymbolicForm::Simple},
    {Op::LoadFast, "LoadFast", fixed(0), LocalUse::Reads, ControlFlow::Next, true, SymbolicForm::Simple},
    {Op::LoadFastAndClear, "LoadFastAndClear", fixed(0), LocalUse::Reads, ControlFlow::Next, true, SymbolicForm::Simple},
    {Op::StoreFast, "StoreFast", fixed(1), LocalUse::Writes, ControlFlow::Next, true, SymbolicForm::Simple},
    {Op::DeleteFast, "DeleteFast", fixed(0), LocalUse::Reads, ControlFlow::Next, true, SymbolicForm::Simple},
    {Op::LoadGlobal, "LoadGlobal", fixed(0), LocalUse::None, ControlFlow::Next, true, SymbolicForm::Names},
    {Op::LoadName, "LoadName", kUnknown, LocalUse::None, ControlFlow::Next, true, SymbolicForm::None},
    {Op::StoreName, "StoreName", kUnknown, LocalUse::None, ControlFlow::Next, true, SymbolicForm::None},
    {Op::DeleteName, "DeleteName", kUnknown, LocalUse::None, ControlFlow::Next, false, SymbolicForm::None},
    {Op::StoreGlobal, "StoreGlobal", fixed(1), LocalUse::None, ControlFlow::Next, true, SymbolicForm::Names},
    {Op::DeleteGlobal, "DeleteGlobal", fixed(0), LocalUse::None, ControlFlow::Next, true, SymbolicForm::Names},
    {Op::MakeCell, "MakeCell", kUnknown, LocalUse::Reads, ControlFlow::Next, true, SymbolicForm::Names},
    {Op::CopyFreeVars, "CopyFreeVars", kUnknown, LocalUse::None, ControlFlow::Next, false, SymbolicForm::Names},
    {Op::LoadClosure, "LoadClosure", fixed(0), LocalUse::Reads, ControlFlow::Next, true, SymbolicForm::Names},
    {Op::LoadDeref, "LoadDeref", fixed(0), LocalUse::Reads, ControlFlow::Next, true, SymbolicForm::Names},
    {Op::StoreDeref, "StoreDeref", fixed(1), LocalUse::Reads, ControlFlow::Next, true, SymbolicForm::Names},
    {Op::DeleteDeref, "DeleteDeref", fixed(0), LocalUse::Reads, ControlFlow::Next, true, SymbolicForm::Names},
    {Op::LoadClassDeref, "LoadClassDeref", kUnknown, LocalUse::Reads, ControlFlow::Next, false, SymbolicForm::Names},
    {Op::LoadAttr, "LoadAttr", fixed(1), LocalUse::None, ControlFlow::Next, true, SymbolicForm::Simple},
    {Op::LoadMethod, "LoadMethod", fixed(1), LocalUse::None, ControlFlow::Next, true, SymbolicForm::Simple},
    {Op::LoadSuperAttr, "LoadSuperAttr", fixed(3), LocalUse::None, ControlFlow::Next, true, SymbolicForm::Names},
    {Op::LoadSuperMethod, "LoadSuperMethod", fixed(3), LocalUse::None, ControlFlow::Next, true, SymbolicForm::Names},
    {Op::StoreAttr, "StoreAttr", fixed(2), LocalUse::None, ControlFlow::Next, true, SymbolicForm::Simple},
    {Op::DeleteAttr, "DeleteAttr", fixed(1), LocalUse::None, ControlFlow::Next, true, SymbolicForm::Simple},
    {Op::BinaryOp, "BinaryOp", fixed(2), LocalUse::None, ControlFlow::Next, true, SymbolicForm::Simple, true},
    {Op::UnaryNegative, "UnaryNegative", fixed(1), LocalUse::None, ControlFlow::Next, true, SymbolicForm::Simple, true},
    {Op::UnaryNot, "UnaryNot", fixed(1), LocalUse::None, ControlFlow::Next, true, SymbolicForm::Simple, true},
    {Op::UnaryInvert, "UnaryInvert", fixed(1), LocalUse::None, ControlFlow::Next, true, SymbolicForm::Simple, true},
    {Op::UnaryPositive, "UnaryPositive", fixed(1), LocalUse::None, ControlFlow::Next, true, SymbolicForm::Simple, true},
    {Op::ToBool, "ToBool", fixed(1), LocalUse::None, ControlFlow::Next, true, SymbolicForm::Simple, true},
    {Op::CompareOp, "CompareOp", fixed(2), LocalUse::None, ControlFlow::Next, true, SymbolicForm::Simple, true},
    {Op::IsOp, "IsOp", fixed(2), LocalUse::None, ControlFlow::Next, true, SymbolicForm::Simple, true},
    {Op::ContainsOp, "ContainsOp", fixed(2), LocalUse::None, ControlFlow::Next, true, SymbolicForm::Simple},
    {Op::BinarySubscr, "BinarySubscr", fixed(2), LocalUse::None, ControlFlow::Next, true, SymbolicForm::Simple},
    {Op::StoreSubscr, "StoreSubscr", fixed(3), LocalUse::None, ControlFlow::Next, true, SymbolicForm::Simple},
    {Op::DeleteSubscr, "DeleteSubscr", fixed(2), LocalUse::None, ControlFlow::Next, true, SymbolicForm::Simple},
    {Op::BinarySlice, "BinarySlice", fixed(3), LocalUse::None, ControlFlow::Next, true, SymbolicForm::Simple},
    {Op::StoreSlice, "StoreSlice", fixed(4), LocalUse::None, ControlFlow::Next, true, SymbolicForm::Simple},
    {Op::BuildTuple, "BuildTuple", {K::Argument, 0}, LocalUse::None, ControlFlow::Next, true, SymbolicForm::Build},
    {Op::BuildList, "BuildList", {K::Argument, 0}, LocalUse::None, ControlFlow::Next, true, SymbolicForm::Build},
    {Op::BuildSet, "BuildSet", {K::Argument, 0}, LocalUse::None, ControlFlow::Next, true, SymbolicForm::Build},
    {Op::BuildMap, "BuildMap", {K::TwiceArgument, 0}, LocalUse::None, ControlFlow::Next, true, SymbolicForm::Build},
    {Op::BuildConstKeyMap, "BuildConstKeyMap", {K::Argument, 1}, LocalUse::None, ControlFlow::Next, true, SymbolicForm::Build},
    {Op::BuildString, "BuildString", {K::Argument, 0}, LocalUse::None, ControlFlow::Next, true, SymbolicForm::Build, true},
    {Op::BuildSlice, "BuildSlice", {K::Argument, 0}, LocalUse::None, ControlFlow::Next, true, SymbolicForm::Build},
    {Op::ListExtend, "ListExtend", {K::Argument, 1}, LocalUse::None, ControlFlow::Next, true, SymbolicForm::Build},
    {Op::SetUpdate, "SetUpdate", {K::Argument, 1}, LocalUse::None, ControlFlow::Next, true, SymbolicForm::Build},
    {Op::DictUpdate, "DictUpdate", {K::Argument, 1}, LocalUse::None, ControlFlow::Next, true, SymbolicForm::Build},
    {Op::DictMerge, "DictMerge", {K::Argument, 1}, LocalUse::None, ControlFlow::Next, true, SymbolicForm::Build},
    {Op::ListAppend, "ListAppend", {K::Argument, 1}, LocalUse::None, ControlFlow::Next, true, SymbolicForm::Build},
    {Op::SetAdd, "SetAdd", {K::Argument, 1}, LocalUse::None, ControlFlow::Next, true, SymbolicForm::Build},
    {Op::MapAdd, "MapAdd", kUnknown, LocalUse::None, ControlFlow::Next, true, SymbolicForm::Build},
    {Op::ListToTuple, "ListToTuple", kUnknown, LocalUse::None, ControlFlow::Next, true, SymbolicForm::Build},
    {Op::UnpackSequence, "UnpackSequence", fixed(1), LocalUse::None, ControlFlow::Next, true, SymbolicForm::Build},
    {Op::UnpackEx, "UnpackEx", fixed(1), LocalUse::None, ControlFlow::Next, true, SymbolicForm::Build},
    {Op::FormatValue, "FormatValue", {K::FormatValue, 1}, LocalUse::None, ControlFlow::Next, true, SymbolicForm::Simple, true},
    {Op::Call, "Call", {K::Call, 2}, LocalUse::None, ControlFlow::Next, true, SymbolicForm::Call},
    {Op::CallFunctionEx, "CallFunctionEx", kUnknown, LocalUse::None, ControlFlow::Next, true, SymbolicForm::Call},
    {Op::Jump, "Jump", fixed(0), LocalUse::None, ControlFlow::Jumps, true, SymbolicForm::Simple},
    {Op::PopJumpIfTrue, "PopJumpIfTrue", fixed(1), LocalUse::None, ControlFlow::Branches, true, SymbolicForm::Simple},
    {Op::PopJumpIfFalse, "PopJumpIfFalse", fixed(1), LocalUse::None, ControlFlow::Branches, true, SymbolicForm::Simple},
    {Op::PopJumpIfNone, "PopJumpIfNone", fixed(1), LocalUse::None, ControlFlow::Branches, true, SymbolicForm::Simple},
    {Op::PopJumpIfNotNone, "PopJumpIfNotNone", fixed(1), LocalUse::None, ControlFlow::Branches, true, SymbolicForm::Simple},
    {Op::JumpIfTrueOrPop, "JumpIfTrueOrPop", fixed(1), LocalUse::None, ControlFlow::Branches, true, SymbolicForm::Simple},
    {Op::JumpIfFalseOrPop, "JumpIfFalseOrPop", fixed(1), LocalUse::None, ControlFlow::Branches, true, SymbolicForm::Simple},
    {Op::GetIter, "GetIter", fixed(1), LocalUse::None, ControlFlow::Next, true, SymbolicForm::Simple},
    {Op::ForIter, "ForIter", fixed(1), LocalUse::None, ControlFlow::Branches, true, SymbolicForm::Simple},
    {Op::EndFor, "EndFor", kUnknown, LocalUse::None, ControlFlow::Next, false, SymbolicForm::Generator},
    {Op::GetLen, "GetLen", kUnknown, LocalUse::None, ControlFlow::Next, true, SymbolicForm::Match},
    {Op::MatchMapping, "MatchMapping", kUnknown, LocalUse::None, ControlFlow::Next, true, SymbolicForm::Match},
    {Op::MatchSequence, "MatchSequence", kUnknown, LocalUse::None, ControlFlow::Next, true, SymbolicForm::Match},
    {Op::MatchKeys, "MatchKeys", kUnknown, LocalUse::None, ControlFlow::Next, false, SymbolicForm::Match},
    {Op::MatchClass, "MatchClass", kUnknown, LocalUse::None, ControlFlow::Next, false, SymbolicForm::Match},
    {Op::ReturnValue, "ReturnValue", fixed(1), LocalUse::None, ControlFlow::Ends, false, SymbolicForm::Simple},
    {Op::ReturnGenerator, "ReturnGenerator", kUnknown, LocalUse::None, ControlFlow::Next, false, SymbolicForm::Generator},
    {Op::YieldValue, "YieldValue", kUnknown, LocalUse::None, ControlFlow::Next, false, SymbolicForm::Generator},
    {Op::Send, "Send", kUnknown, LocalUse::None, ControlFlow::Branches, true, SymbolicForm::Generator},
    {Op::GetYieldFromIter, "GetYieldFromIter", kUnknown, LocalUse::None, ControlFlow::Next, true, SymbolicForm::Generator},
    {Op::EndSend, "EndSend", kUnknown, LocalUse::None, ControlFlow::Next, true, SymbolicForm::Generator},
    {Op::Resume, "Resume", fixed(0), LocalUse::None, ControlFlow::Next, true, SymbolicForm::Generator},
    {Op::GetAwaitable, "GetAwaitable", kUnknown, LocalUse::None, ControlFlow::Next, true, SymbolicForm::Generator},
    {Op::GetAiter, "GetAiter", kUnknown, LocalUse::None, ControlFlow::Next, true, SymbolicForm::None},
    {Op::GetAnext, "GetAnext", kUnknown, LocalUse::None, ControlFlow::Next, true, SymbolicForm::None},
    {Op::EndAsyncFor, "EndAsyncFor", kUnknown, LocalUse::None, ControlFlow::Next, false, SymbolicForm::None},
    {Op::CleanupThrow, "CleanupThrow", kUnknown, LocalUse::None, ControlFlow::Next, false, SymbolicForm::Generator},
    {Op::AsyncGenWrap, "AsyncGenWrap", kUnknown, LocalUse::None, ControlFlow::Next, false, SymbolicForm::Generator},
    {Op::BeforeAsyncWith, "BeforeAsyncWith", kUnknown, LocalUse::None, ControlFlow::Next, true, SymbolicForm::None},
    {Op::RaiseVarargs, "RaiseVarargs", kUnknown, LocalUse::None, ControlFlow::Ends, false, SymbolicForm::Exception},
    {Op::Reraise, "Reraise", kUnknown, LocalUse::None, ControlFlow::Ends, false, SymbolicForm::Exception},
    {Op::PushExcInfo, "PushExcInfo", kUnknown, LocalUse::None, ControlFlow::Next, false, SymbolicForm::Exception},
    {Op::PopExcept, "PopExcept", kUnknown, LocalUse::None, ControlFlow::Next, false, SymbolicForm::Exception},
    {Op::CheckExcMatch, "CheckExcMatch", kUnknown, LocalUse::None, ControlFlow::Next, false, SymbolicForm::Exception},
    {Op::CheckEgMatch, "CheckEgMatch", kUnknown, LocalUse::None, ControlFlow::Next, false, SymbolicForm::None},
    {Op::PrepReraiseStar, "PrepReraiseStar", kUnknown, LocalUse::None, ControlFlow::Next, false, SymbolicForm::None},
    {Op::ExitInitCheck, "ExitInitCheck", kUnknown, LocalUse::None, ControlFlow::Next, false, SymbolicForm::None},
    {Op::BeforeWith, "BeforeWith", kUnknown, LocalUse::None, ControlFlow::Next, true, SymbolicForm::Exception},
    {Op::WithExceptStart, "WithExceptStart", kUnknown, LocalUse::None, ControlFlow::Next, false, SymbolicForm::Exception},
    {Op::MakeFunction, "MakeFunction", kUnknown, LocalUse::None, ControlFlow::Next, true, SymbolicForm::Call},
    {Op::SetFunctionAttribute, "SetFunctionAttribute", kUnknown, LocalUse::None, ControlFlow::Next, true, SymbolicForm::Call},
    {Op::ImportName, "ImportName", fixed(2), LocalUse::None, ControlFlow::Next, true, SymbolicForm::Names},
    {Op::ImportFrom, "ImportFrom", fixed(0), LocalUse::None, ControlFlow::Next, true, SymbolicForm::Names},
    {Op::ImportStar, "ImportStar", kUnknown, LocalUse::None, ControlFlow::Next, false, SymbolicForm::None},
    {Op::LoadBuildClass, "LoadBuildClass", kUnknown, LocalUse::None, ControlFlow::Next, true, SymbolicForm::None},
    {Op::LoadAssertionError, "LoadAssertionError", fixed(0), LocalUse::None, ControlFlow::Next, true, SymbolicForm::Names},
    {Op::LoadLocals, "LoadLocals", kUnknown, LocalUse::None, ControlFlow::Next, false, SymbolicForm::None},
    {Op::LoadFromDictOrGlobals, "LoadFromDictOrGlobals", kUnknown, LocalUse::None, ControlFlow::Next, false, SymbolicForm::None},
    {Op::LoadFromDictOrDeref, "LoadFromDictOrDeref", kUnknown, LocalUse::Reads, ControlFlow::Next, false, SymbolicForm::None},
    {Op::SetupAnnotations, "SetupAnnotations", kUnknown, LocalUse::None, ControlFlow::Next, false, SymbolicForm::None},
    {Op::PrintExpr, "PrintExpr", kUnknown, LocalUse::None, ControlFlow::Next, false, SymbolicForm::None},
    {Op::StopIterationError, "StopIterationError", kUnknown, LocalUse::None, ControlFlow::Next, false, SymbolicForm::Generator},
    {Op::TypeIntrinsic, "TypeIntrinsic", kUnknown, LocalUse::None, ControlFlow::Next, false, SymbolicForm::None},
    {Op::ConvertValue, "ConvertValue", fixed(1), LocalUse::None, ControlFlow::Next, true, SymbolicForm::Simple, true},
    {Op::Unknown, "Unknown", kUnknown, LocalUse::None, ControlFlow::Next, false, SymbolicForm::None},
};
// clang-format on

static_assert(std::size(kOperations) == static_cast<size_t>(Op::Unknown) + 1);
static_assert(
    [] {
      for (size_t i = 0; i < std::size(kOperations); ++i)
        if (kOperations[i].op != static_cast<Op>(i)) return false;
      return true;
    }(),
    "the rows are in the order of Op");

}  // namespace

const Operation& operation(Op op) {
  return kOperations[static_cast<size_t>(op)];
}

std::span<const Operation> all_operations() {
  return kOperations;
}

std::string_view name(Op op) {
  return operation(op).name;
}

std::optional<size_t> operand_count(const Instruction& instruction) {
  const Operands& operands = operation(instruction.op).operands;
  const auto argument = static_cast<size_t>(instruction.arg);
  switch (operands.kind) {
    case K::Unknown:
      return std::nullopt;
    case K::Fixed:
      return operands.count;
    case K::Argument:
      return argument + operands.count;
    case K::TwiceArgument:
      return 2 * argument;
    case K::FormatValue:
      return instruction.arg2 ? 2 : 1;
    case K::Call:
      return argument + (instruction.arg2 == -2 ? 3 : 2);
  }
  return std::nullopt;
}

}  // namespace oxy::bytecode
