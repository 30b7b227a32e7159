// The table of canonical instructions: a row for each, with its properties.
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
    Unknown,        // perhaps all
    Fixed,          // `count` entries
    Argument,       // its arg plus `count`
    TwiceArgument,  // twice its arg
    FormatValue,    // two with a format spec, one without
    Call,           // the arguments, the callable and the entry beside it, and the names of keywords
  };
  Kind kind = Kind::Unknown;
  uint8_t count = 0;
};

enum class LocalUse : uint8_t {
  None,
  Reads,   // it reads the local or cell that its arg names, and raises if that is unbound
  Writes,  // it writes the local that its arg names
};

enum class ControlFlow : uint8_t {
  Next,
  Branches,  // to its arg, or to the next instruction
  Jumps,     // to its arg
  Ends,      // nothing follows
};

// The function of src/eval/machine that interprets the instruction: step_names() for Names, and so on.
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
  // It makes one number, text or truth value of its operands, without effects where these are such values.
  bool computes_scalar = false;
};

const Operation& operation(Op op);
std::span<const Operation> all_operations();  // in the order of Op

// The number of entries on top of the stack that the instruction looks at, at most. Nothing: perhaps all.
std::optional<size_t> operand_count(const Instruction& instruction);

}  // namespace oxy::bytecode
