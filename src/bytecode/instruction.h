// The canonical instruction set, into which the bytecode of every supported version of Python is decoded.
//
// The instructions mean what those of CPython 3.11 to 3.13 mean; docs/instructions.md lists them. Stack
// effects are written bottom to top. Superinstructions are split, and both halves have the same offset.
// Inline caches and no-ops are dropped. KW_NAMES and PRECALL are folded into Call. Jumps have the index of
// the target instruction.
//
// If instructions share an offset, `continues` is set on all but the first. A frame can stop only before the
// first of them. A break, a hand-over or an error there finds the stack as it was before the whole group.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace oxy::bytecode {

enum class Op : uint8_t {
  Nop,  // never decoded; RESUME is Resume
  PopTop,
  Copy,  // push stack[-arg]
  Swap,  // exchange stack[-1] and stack[-arg]
  PushNull,
  LoadConst,         // arg: index into co_consts
  LoadFast,          // arg: index into localsplus; unbound raises UnboundLocalError
  LoadFastAndClear,  // an unbound local pushes NULL
  StoreFast,
  DeleteFast,
  LoadGlobal,  // arg: index into co_names; arg2: 1 if the NULL of a call goes with it (see calls.h)
  LoadName,
  StoreName,
  DeleteName,
  StoreGlobal,
  DeleteGlobal,
  MakeCell,      // arg: localsplus index
  CopyFreeVars,  // arg: how many
  LoadClosure,   // push the cell itself (3.13: LoadFast of the cell)
  LoadDeref,
  StoreDeref,
  DeleteDeref,
  LoadClassDeref,
  LoadAttr,       // arg: name index. obj -> value
  LoadMethod,     // obj -> method, self   or   NULL, value (in the order of the version: calls.h)
  LoadSuperAttr,  // global_super, class, self -> value       (arg: name index, arg2: 1 if two-argument super)
  LoadSuperMethod,  // the same, result as LoadMethod's
  StoreAttr,        // value, obj ->
  DeleteAttr,
  BinaryOp,  // arg: BinaryKind, arg2: 1 if in place
  UnaryNegative,
  UnaryNot,
  UnaryInvert,
  UnaryPositive,
  ToBool,
  CompareOp,  // arg: 0..5 = < <= == != > >=, arg2: 1 if the result is converted to bool
  IsOp,
  ContainsOp,  // arg: 1 if negated
  BinarySubscr,
  StoreSubscr,  // value, obj, key ->
  DeleteSubscr,
  BinarySlice,
  StoreSlice,
  // Up to BuildSlice, arg: how many items (of a map: how many pairs).
  BuildTuple,
  BuildList,
  BuildSet,
  BuildMap,
  BuildConstKeyMap,
  BuildString,
  BuildSlice,
  // Up to MapAdd, arg: the depth of the container in the stack.
  ListExtend,
  SetUpdate,
  DictUpdate,
  DictMerge,
  ListAppend,
  SetAdd,
  MapAdd,
  ListToTuple,
  UnpackSequence,
  UnpackEx,     // arg: count of names before the starred one; arg2: count behind it
  FormatValue,  // arg: conversion (0 none, 1 str, 2 repr, 3 ascii), arg2: 1 if a format spec is on the stack
  Call,         // two entries for the callable (calls.h), args... -> result
                // arg: argument count without self; arg2: co_consts index of the keyword names, -1 if none,
                // -2 if the tuple of names is on top of the stack (3.13 CALL_KW)
  CallFunctionEx,  // callable [NULL], args tuple [, kwargs dict]; arg: 1 with kwargs
  Jump,            // arg: target; arg2: 1 if backward (polls signals)
  // Up to JumpIfFalseOrPop, arg and arg2 as those of Jump.
  PopJumpIfTrue,
  PopJumpIfFalse,
  PopJumpIfNone,
  PopJumpIfNotNone,
  JumpIfTrueOrPop,
  JumpIfFalseOrPop,
  GetIter,
  ForIter,  // arg: target when exhausted, which lies behind EndFor (and its PopTop); the iterator is popped.
            // arg2: 1 if the iterator stays for EndFor to pop; always 0
  EndFor,   // 3.12: pops two; 3.13: pops one, followed by PopTop
  GetLen,
  MatchMapping,
  MatchSequence,
  MatchKeys,
  MatchClass,
  ReturnValue,  // also RETURN_CONST, decoded as LoadConst, ReturnValue at one offset
  ReturnGenerator,
  YieldValue,
  Send,
  GetYieldFromIter,
  EndSend,
  Resume,
  GetAwaitable,
  GetAiter,
  GetAnext,
  EndAsyncFor,
  CleanupThrow,
  AsyncGenWrap,
  BeforeAsyncWith,
  RaiseVarargs,  // arg: 0, 1, 2
  Reraise,
  PushExcInfo,
  PopExcept,
  CheckExcMatch,
  CheckEgMatch,
  PrepReraiseStar,
  ExitInitCheck,
  BeforeWith,
  WithExceptStart,
  MakeFunction,          // arg: 3.11/3.12 flags (1 defaults, 2 kwdefaults, 4 annotations, 8 closure)
  SetFunctionAttribute,  // 3.13
  ImportName,
  ImportFrom,
  ImportStar,
  LoadBuildClass,
  LoadAssertionError,
  LoadLocals,
  LoadFromDictOrGlobals,
  LoadFromDictOrDeref,
  SetupAnnotations,
  PrintExpr,
  StopIterationError,
  TypeIntrinsic,  // arg: CPython's intrinsic number, arg2: how many operands (1 or 2)
  ConvertValue,   // 3.13: arg: conversion (1 str, 2 repr, 3 ascii) without formatting
  Unknown,
};

enum class BinaryKind : uint8_t {
  Add,
  And,
  FloorDivide,
  LeftShift,
  MatrixMultiply,
  Multiply,
  Remainder,
  Or,
  Power,
  RightShift,
  Subtract,
  TrueDivide,
  Xor
};

struct Instruction {
  Op op = Op::Unknown;
  uint8_t raw = 0;  // CPython's opcode, for messages
  int32_t arg = 0;
  int32_t arg2 = 0;
  int32_t offset =
      0;  // code units from the start of co_code of the instruction (its EXTENDED_ARG prefix included)
  int32_t end = 0;  // code units: where the next instruction starts
  int32_t line = -1;
  int32_t at =
      0;  // code units: the opcode proper, past EXTENDED_ARG, KW_NAMES and PRECALL; what f_lasti shows
  bool continues = false;  // shares its offset with the instruction before it
};

struct ExceptionEntry {
  int32_t begin = 0, end = 0;  // offsets in code units [begin, end)
  int32_t target = 0;          // offset of the handler
  int32_t depth = 0;           // stack depth to unwind to
  bool push_lasti = false;
};

struct Code {
  std::vector<Instruction> instructions;
  std::vector<ExceptionEntry> exception_table;
  // Index of the instruction at a code-unit offset (the first of those that share it), -1 if none.
  std::vector<int32_t> index_of_offset;
  // Index of the first instruction behind the frame's prologue (MakeCell, CopyFreeVars): Resume, in
  // functions.
  int32_t entry = 0;

  // The instruction that starts at `offset`. Precondition: there is one.
  const Instruction& at(int32_t offset) const {
    return instructions[size_t(index_of_offset[size_t(offset)])];
  }
};

std::string_view name(Op op);

}  // namespace oxy::bytecode
