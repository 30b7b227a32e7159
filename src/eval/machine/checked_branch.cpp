#include "eval/machine/checked_branch.h"

#include "bytecode/operations.h"
#include "eval/numbers/float_of_data.h"
#include "eval/numbers/symbolic_integer.h"

namespace oxy::eval {

namespace {

constexpr size_t kMostInstructions = 48;  // in which a message is made

bool raises_at_once(const Frame& frame, size_t from) {
  const auto& instructions = frame.code->instructions;
  for (size_t i = from; i < instructions.size() && i < from + kMostInstructions; ++i) {
    if (instructions[i].op == bytecode::Op::RaiseVarargs) return true;
    if (bytecode::operation(instructions[i].op).flow != bytecode::ControlFlow::Next) return false;
  }
  return false;
}

}  // namespace

std::optional<bool> checked_branch(Interpreter& interpreter, const Frame& frame,
                                   const bytecode::Instruction& jump, bool jumps_if_true,
                                   PyObject* condition) {
  const bool is_tensor = trace::is_trace_tensor(condition);
  if (!is_tensor && !depends_on_data(interpreter, condition)) return std::nullopt;
  const bool raises_there = raises_at_once(frame, static_cast<size_t>(jump.arg));
  if (raises_there == raises_at_once(frame, frame.next)) return std::nullopt;
  const std::optional<sym::Condition> truth =
      is_tensor ? truth_of_tensor(interpreter, condition) : undecided_truth(interpreter, condition);
  if (!truth) return std::nullopt;
  const bool expected = raises_there != jumps_if_true;
  return rely_on(interpreter, expected ? *truth : !*truth) ? std::optional(expected) : std::nullopt;
}

}  // namespace oxy::eval
