// The tables of opcodes, one for each supported version of Python: how an instruction becomes canonical ones.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "bytecode/instruction.h"

namespace oxy::bytecode {

// How the operand of CPython's instruction becomes `arg` and `arg2` of the canonical one. "Target" is the
// index of the target instruction.
enum class Form : uint8_t {
  Unknown,            // not an opcode of this version
  Nothing,            // no canonical instruction: caches, no-ops
  Plain,              // arg = operand
  Fixed,              // arg, arg2 = the row's own
  Forward,            // arg = target, relative to the next instruction
  Backward,           // the same, backwards; arg2 = 1
  QuietBackward,      // the same, arg2 = 0: signals are not polled
  ForwardLoop,        // FOR_ITER: the target lies behind the END_FOR (and its POP_TOP) that CPython skips
  BinaryKind,         // arg = kind, arg2 = in place
  CompareLow,         // arg = operand
  CompareHigh,        // 3.12: comparison above 4 bits
  CompareBool,        // 3.13: comparison above 5 bits, bit 4 = as bool
  GlobalAndNull,      // arg = name, arg2 = bit 0
  AttributeOrMethod,  // arg = name; bit 0 = LoadMethod
  SuperAttributeOrMethod,  // arg = name; bit 0 = LoadSuperMethod, arg2 = bit 1
  TwoCounts,               // arg = low byte, arg2 = the rest
  FormatFlags,             // arg = conversion, arg2 = with format spec
  KeywordNames,            // folded into the Call that follows
  Call,
  CallKeywords,  // the names are on the stack
  TwoLocals,     // arg = operand >> 4 for the row's op, operand & 15 for `second`
  ReturnConstant,
  Intrinsic1,
  Intrinsic2,
};

struct Row {
  Op op = Op::Unknown;
  Form form = Form::Unknown;
  uint8_t caches = 0;  // code units of inline cache that follow
  int8_t arg = 0;      // for Form::Fixed
  int8_t arg2 = 0;     // for Form::Fixed
  Op second = Op::Unknown;
};

using Table = std::array<Row, 256>;

inline constexpr int kNoOpcode = -1;

struct TableEntry {
  std::string_view name;  // CPython's
  int opcode = kNoOpcode;
  Row row;
};

// The rows of each supported version. All are there, whichever version runs; opcodes that the running one
// does not have are kNoOpcode.
std::span<const TableEntry> entries_311();
std::span<const TableEntry> entries_312();
std::span<const TableEntry> entries_313();

template <size_t size>
constexpr Table make_table(const TableEntry (&entries)[size]) {
  Table table{};
  for (const TableEntry& entry : entries) table[static_cast<size_t>(entry.opcode)] = entry.row;
  return table;
}

// The table of the running version, by opcode. Row 0 is the inline cache.
extern const Table kTable;
extern const uint8_t kExtendedArgument;
// How many instructions FOR_ITER skips when the iterator is exhausted.
extern const int kExhaustedSkip;

}  // namespace oxy::bytecode
