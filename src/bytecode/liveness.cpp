#include "bytecode/liveness.h"

namespace oxy::bytecode {
namespace {

bool ends_path(Op op) {
  return op == Op::Jump || op == Op::ReturnValue || op == Op::RaiseVarargs || op == Op::Reraise;
}

bool has_target(Op op) {
  switch (op) {
    case Op::Jump:
    case Op::PopJumpIfTrue:
    case Op::PopJumpIfFalse:
    case Op::PopJumpIfNone:
    case Op::PopJumpIfNotNone:
    case Op::JumpIfTrueOrPop:
    case Op::JumpIfFalseOrPop:
    case Op::ForIter:
    case Op::Send:
      return true;
    default:
      return false;
  }
}

// Turns what is live behind the instruction into what is live before it.
void apply(const Instruction& instruction, LocalSet& live) {
  switch (instruction.op) {
    case Op::StoreFast:
      live.erase(instruction.arg);
      break;
    case Op::DeleteFast:  // fails on an unbound local, so it reads
    case Op::LoadFast:
    case Op::LoadFastAndClear:
    case Op::MakeCell:
    case Op::LoadClosure:
    case Op::LoadDeref:
    case Op::StoreDeref:
    case Op::DeleteDeref:
    case Op::LoadClassDeref:
    case Op::LoadFromDictOrDeref:
      live.insert(instruction.arg);
      break;
    default:
      break;
  }
}

LocalSet cells_of(const Code& code, int32_t locals) {
  LocalSet cells(locals);
  for (const Instruction& instruction : code.instructions) {
    if (instruction.op == Op::MakeCell) cells.insert(instruction.arg);
    if (instruction.op == Op::CopyFreeVars)
      for (int32_t i = locals - instruction.arg; i < locals; ++i) cells.insert(i);
  }
  return cells;
}

}  // namespace

bool LocalSet::merge(const LocalSet& other) {
  bool grew = false;
  for (size_t i = 0; i < words_.size(); ++i) {
    grew |= (other.words_[i] & ~words_[i]) != 0;
    words_[i] |= other.words_[i];
  }
  return grew;
}

std::vector<LocalSet> live_locals(const Code& code, int32_t locals) {
  const std::vector<Instruction>& instructions = code.instructions;
  const auto count = int32_t(instructions.size());
  // The index of the handler of each instruction, or -1.
  std::vector<int32_t> handlers(static_cast<size_t>(count), -1);
  for (int32_t i = 0; i < count; ++i)
    for (const ExceptionEntry& entry : code.exception_table)
      if (instructions[size_t(i)].at >= entry.begin && instructions[size_t(i)].at < entry.end) {
        int32_t unit = entry.target;
        while (size_t(unit) < code.index_of_offset.size() && code.index_of_offset[size_t(unit)] < 0) ++unit;
        handlers[size_t(i)] = code.index_of_offset[size_t(unit)];
        break;
      }
  const LocalSet cells = cells_of(code, locals);
  std::vector<LocalSet> before(static_cast<size_t>(count), LocalSet{locals});
  // Backwards until nothing grows: loops need one more round per level of nesting.
  for (bool grew = true; grew;) {
    grew = false;
    for (int32_t i = count; i-- > 0;) {
      const Instruction& instruction = instructions[size_t(i)];
      LocalSet live = cells;
      if (i + 1 < count && !ends_path(instruction.op)) live.merge(before[size_t(i + 1)]);
      if (has_target(instruction.op)) live.merge(before[size_t(instruction.arg)]);
      apply(instruction, live);
      // An error may strike before the store has happened.
      if (handlers[size_t(i)] >= 0) live.merge(before[size_t(handlers[size_t(i)])]);
      grew |= before[size_t(i)].merge(live);
    }
  }
  return before;
}

}  // namespace oxy::bytecode
