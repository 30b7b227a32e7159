// Objects that a segment finds in its frame are admitted when they are read. Until then they may be moved
// between locals and stack. So an object that is only passed on to the instruction at which the segment
// breaks is not guarded.
#include "eval/machine/unread.h"

#include "bytecode/operations.h"
#include "eval/externals/admission.h"
#include "eval/externals/variables.h"
#include "eval/state/interpreter.h"
#include "eval/state/stack.h"

namespace oxy::eval {

using bytecode::Instruction;
using bytecode::Op;
using guards::kNoSource;

bool move_unread(Interpreter& interpreter, Frame& frame, const Instruction& instruction) {
  const auto i = static_cast<size_t>(instruction.arg);
  switch (instruction.op) {
    case Op::LoadFast:
    case Op::LoadFastAndClear: {
      if (frame.unread[i] == kNoSource || !frame.locals[i]) return false;
      admit_presence(interpreter, frame.unread[i]);
      frame.unread_stack.resize(frame.stack.size(), kNoSource);
      frame.unread_stack.push_back(frame.unread[i]);
      frame.stack.push_back(frame.locals[i]);
      if (instruction.op == Op::LoadFastAndClear) {
        frame.unread[i] = kNoSource;
        frame.locals[i].reset();
      }
      return true;
    }
    case Op::StoreFast: {
      const SourceId source = unread_on_stack(frame, frame.stack.size() - 1);
      if (source == kNoSource) return false;
      frame.unread_stack.pop_back();
      overwrite_local(interpreter, frame, instruction.arg, pop(frame));
      frame.unread[i] = source;
      return true;
    }
    case Op::PopTop: {
      const SourceId source = unread_on_stack(frame, frame.stack.size() - 1);
      if (source == kNoSource) return false;
      drop(interpreter, frame, frame.stack.back().get(), source);
      frame.unread_stack.pop_back();
      frame.stack.pop_back();
      return true;
    }
    default:
      return false;
  }
}

void admit_operands(Interpreter& interpreter, Frame& frame, const Instruction& instruction) {
  // The segment ends there, and CPython yields what lies on the stack.
  if (instruction.op == Op::YieldValue || instruction.op == Op::AsyncGenWrap) return;
  const std::optional<size_t> operands = bytecode::operand_count(instruction);
  const size_t depth = frame.stack.size();
  const size_t first = operands && *operands < depth ? depth - *operands : 0;
  for (size_t i = first; i < frame.unread_stack.size(); ++i)
    if (const SourceId source = std::exchange(frame.unread_stack[i], kNoSource); source != kNoSource)
      frame.stack[i] = admit(interpreter, frame.stack[i].get(), source);
  if (frame.unread_stack.size() > first) frame.unread_stack.resize(first);
}

}  // namespace oxy::eval
