#include "hook/plain_steps.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "bytecode/operations.h"

namespace oxy::hook {
namespace {

using bytecode::Code;
using bytecode::Instruction;
using bytecode::Op;

bool is_scalar(PyObject* object) {
  return object != nullptr &&
         (PyLong_CheckExact(object) || PyFloat_CheckExact(object) || PyBool_Check(object) ||
          PyUnicode_CheckExact(object) || PyComplex_CheckExact(object) || object == Py_None);
}

// Predicts which entries of the stack and which locals will hold scalars.
class Preview {
 public:
  explicit Preview(const Machine& machine) : machine_(machine), below_(machine.depth()) {}

  bool local(int32_t index) const {
    const auto found = std::find_if(stored_.rbegin(), stored_.rend(),
                                    [&](const auto& entry) { return entry.first == index; });
    return found != stored_.rend() ? found->second : is_scalar(machine_.local(index));
  }
  void store(int32_t index, bool scalar) { stored_.emplace_back(index, scalar); }
  void push(bool scalar) { pushed_.push_back(scalar); }
  bool pop() {
    if (pushed_.empty()) {
      if (below_ == 0) return false;
      --below_;
      return is_scalar(machine_.stack()[size_t(below_)]);
    }
    const bool scalar = pushed_.back();
    pushed_.pop_back();
    return scalar;
  }
  bool pop_scalars(size_t count) {
    bool all = true;
    for (; count > 0; --count) all = pop() && all;
    return all;
  }
  // Whether the stack has no more entries than at the start.
  bool is_settled() const { return pushed_.empty(); }

 private:
  const Machine& machine_;
  int below_;
  std::vector<bool> pushed_;
  std::vector<std::pair<int32_t, bool>> stored_;
};

}  // namespace

size_t count_plain_steps(const Machine& machine, const Code& code, size_t index) {
  Preview preview(machine);
  size_t settled = 0;
  for (size_t i = index; i < code.instructions.size(); ++i) {
    const Instruction& in = code.instructions[i];
    // Instructions with one offset are performed together or not at all. A group that can fail is left to the
    // segment.
    const bool ends = i + 1 >= code.instructions.size() || !code.instructions[i + 1].continues;
    if ((in.continues || !ends) && in.op != Op::LoadFast && in.op != Op::StoreFast) return settled;
    const size_t count = i + 1 - index;
    switch (in.op) {
      case Op::LoadFast:
        if (!preview.local(in.arg)) return settled;
        preview.push(true);
        break;
      case Op::LoadConst:
        if (!is_scalar(machine.constant(in.arg))) return settled;
        preview.push(true);
        break;
      case Op::StoreFast:
        preview.store(in.arg, preview.pop());
        break;
      case Op::PopTop:
        preview.pop();
        break;
      case Op::Jump:
        return preview.is_settled() ? count : settled;
      case Op::ForIter:
        return preview.is_settled() && !machine.stack().empty() ? count : settled;
      case Op::PopJumpIfTrue:
      case Op::PopJumpIfFalse:
      case Op::PopJumpIfNone:
      case Op::PopJumpIfNotNone:
        return preview.pop() && preview.is_settled() ? count : settled;
      default: {
        if (!bytecode::operation(in.op).computes_scalar || !preview.pop_scalars(*operand_count(in)))
          return settled;
        preview.push(true);
        continue;  // what it gives still lies there
      }
    }
    if (preview.is_settled() && ends) settled = count;
  }
  return settled;
}

}  // namespace oxy::hook
