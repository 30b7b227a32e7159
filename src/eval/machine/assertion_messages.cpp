#include "eval/machine/assertion_messages.h"

#include "bytecode/instruction.h"
#include "eval/python/objects.h"

namespace oxy::eval {

namespace {

using bytecode::Instruction;
using bytecode::Op;

// What an instruction takes from the stack and leaves there.
struct StackEffect {
  size_t taken = 0;
  size_t left = 1;
};

bool is_plain_call(const Instruction& in) {
  return in.op == Op::Call && in.arg2 == -1;
}

// Of instructions that other parts of a message may consist of. Nothing: another one.
std::optional<StackEffect> effect_of(const Instruction& in) {
  switch (in.op) {
    case Op::LoadConst:
    case Op::LoadFast:
    case Op::LoadDeref:
      return StackEffect{0, 1};
    case Op::LoadGlobal:
      return StackEffect{0, in.arg2 == 1 ? 2U : 1U};
    case Op::LoadAttr:
    case Op::ConvertValue:
      return StackEffect{1, 1};
    case Op::LoadMethod:
      return StackEffect{1, 2};
    case Op::BinarySubscr:
      return StackEffect{2, 1};
    case Op::FormatValue:
      return StackEffect{in.arg2 ? 2U : 1U, 1};
    case Op::BuildString:
      return StackEffect{static_cast<size_t>(in.arg), 1};
    case Op::Call:
      return is_plain_call(in) ? std::optional(StackEffect{static_cast<size_t>(in.arg) + 2, 1})
                               : std::nullopt;
    default:
      return std::nullopt;
  }
}

}  // namespace

bool is_message_of_true_assertion(const Frame& frame) {
  const std::vector<Ref>& stack = frame.stack;
  size_t text = stack.size();  // where the message begins
  while (text > 0 && stack[text - 1] && PyUnicode_CheckExact(stack[text - 1].get())) --text;
  if (text < 3 || stack[text - 1].get() != Py_True) return false;
  const Ref &below = stack[text - 3], &above = stack[text - 2];  // the callable and the NULL of a call
  if ((below ? above : below) || (below ? below : above).get() != well_known("torch", "_assert"))
    return false;
  size_t parts = stack.size() - text + 1;  // entries from the message's first part on
  size_t place = parts;                    // of the text among them
  for (size_t i = frame.next; i < frame.code->instructions.size(); ++i) {
    const Instruction& in = frame.code->instructions[i];
    if (is_plain_call(in) && in.arg == 2 && parts == 1) return true;
    const std::optional<StackEffect> effect = effect_of(in);
    if (!effect || effect->taken > parts) return false;
    if (parts - effect->taken < place) {
      // The text is taken by what joins all parts, and by nothing else.
      if (in.op != Op::BuildString || effect->taken != parts) return false;
      place = 1;
    }
    parts = parts - effect->taken + effect->left;
  }
  return false;
}

}  // namespace oxy::eval
