// One row a canonical instruction: all that the layers know of it without doing it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "bytecode/instruction.h"

namespace oxy::bytecode {

// How many entries on top of the stack an instruction looks at, at most.
struct Operands {
  enum class Kind : uint8_t {
    Unknown,        // all may be
    Fixed,          // `count`
    Argument,       // its arg and `count` more
    TwiceArgument,  // twice its arg
    FormatValue,    // two with a format spec, one without it
    Call,           // the arguments, the callable and what lies beside it, and the names of keywords
  };
  Kind kind = Kind::Unknown;
  uint8_t count = 0;
};

enum class LocalUse : uint8_t {
  None,
  Reads,   // the local or cell that its arg names, and fails if that is unbound
  Writes,  // the local that its arg names
};

enum class ControlFlow : uint8_t {
  Next,
  Branches,  // to its arg, or to the next instruction
  Jumps,     // to its arg
  Ends,      // nothing follows
};

// The function of src/eval/machine that interprets it.
enum class SymbolicForm : uint8_t {
  None,  // a capture ends there
  Simple,
  Names,
  Build,
  Call,
  Exception,
  Generator,
  Match,
};

struct Operation {
  Op op = Op::Unknown;
  std::string_view name;
  Operands operands;
  LocalUse local = LocalUse::None;
  ControlFlow flow = ControlFlow::Next;
  bool is_native = false;  // src/hook performs it at a break
  SymbolicForm symbolic = SymbolicForm::None;
};

const Operation& operation(Op op);
std::span<const Operation> all_operations();  // in the order of Op

// Entries on top of the stack that the instruction looks at. Nothing: perhaps all.
std::optional<size_t> operand_count(const Instruction& instruction);

}  // namespace oxy::bytecode
