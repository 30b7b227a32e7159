#include "hook/native.h"

#include <fmt/format.h>

#include <array>

#include "base/error.h"
#include "bytecode/operations.h"

namespace oxy::hook {
namespace {

using bytecode::Op;

std::array<Native, size_t(Op::Unknown) + 1> make_table() {
  std::array<Native, size_t(Op::Unknown) + 1> table{};
  for (const auto family :
       {native_moves(), native_operators(), native_containers(), native_control(), native_generators()})
    for (const NativeEntry& entry : family) table[size_t(entry.op)] = entry.perform;
  for (const bytecode::Operation& operation : bytecode::all_operations())
    check(operation.is_native == (table[size_t(operation.op)] != nullptr),
          fmt::format("bytecode/operations.cpp and src/hook disagree about {}", operation.name));
  return table;
}

}  // namespace

Outcome perform(const Machine& machine, const bytecode::Instruction& instruction) {
  static const auto table = make_table();
  const Native native = table[size_t(instruction.op)];
  return native == nullptr ? Outcome::Refused : native(machine, instruction);
}

}  // namespace oxy::hook
