#include "hook/frame_loop.h"

#include <fmt/format.h>

#include <exception>
#include <memory>
#include <utility>

#include "base/config.h"
#include "base/error.h"
#include "base/log.h"
#include "bytecode/decode.h"
#include "cpy/thread.h"
#include "hook/hook.h"
#include "hook/native.h"
#include "hook/plain_steps.h"

namespace oxy::hook {
namespace {

using bytecode::Code;
using bytecode::Instruction;
using bytecode::Op;

// One run of a frame.
class FrameLoop {
 public:
  FrameLoop(PyThreadState* thread, cpy::Frame frame, SegmentRunner& runner, const Code& code)
      : thread_(thread), frame_(frame), runner_(runner), code_(code), link_(thread, frame) {}

  PyObject* run() {
    if (frame_.is_of_generator()) return resume();
    if (code_.entry == int32_t(code_.instructions.size())) return hand_over(0);
    const Instruction& first = code_.instructions[size_t(code_.entry)];
    frame_.set_executing(first.at);
    if (!run_prologue()) return throw_at(first);
    return run_from(first.offset);
  }

 private:
  PyObject* resume() {
    const Instruction& first = code_.at(frame_.next());
    const bool skips = first.op == Op::Resume && !cpy::has_requests(thread_);
    const Advance advance = go_on_natively(skips ? first.end : first.offset);
    return advance.kind == Advance::Throw ? throw_at(code_.at(advance.offset)) : run_from(advance.offset);
  }

  struct Advance {
    enum Kind : uint8_t { GoOn, Stop, Throw } kind;
    int32_t offset = 0;  // of the instruction to go on at, or to throw at
  };

  // Performs the plain steps from `offset` on (plain_steps.h).
  Advance go_on_natively(int32_t offset) const {
    const Machine machine(thread_, frame_);
    auto index = size_t(code_.index_of_offset[size_t(offset)]);
    while (size_t count = count_plain_steps(machine, code_, index)) {
      for (; count > 0; --count) {
        const Instruction& instruction = code_.instructions[index];
        if (cpy::is_traced(thread_) && !instruction.continues) return {Advance::GoOn, instruction.offset};
        frame_.set_executing(instruction.at);
        const Outcome outcome = perform(machine, instruction);
        if (outcome == Outcome::Raised) return {Advance::Throw, instruction.offset};
        if (outcome == Outcome::Refused) return {Advance::GoOn, instruction.offset};
        index = outcome == Outcome::Jump ? size_t(instruction.arg) : index + 1;
        if (cpy::has_requests(thread_) && !serve_requests()) return {Advance::Throw, instruction.offset};
      }
    }
    return {Advance::GoOn, code_.instructions[index].offset};
  }

  PyObject* run_from(int32_t offset) {
    for (;;) {
      const SegmentEnd end = run_segment(offset);
      const Instruction& instruction = code_.at(end.offset);
      switch (end.kind) {
        case EndKind::HandOver:
          return hand_over(end.offset);
        case EndKind::LeaveAll: {
          const HookPause pause;
          return hand_over(end.offset);
        }
        case EndKind::Return:
          return hand_over(end.offset);
        case EndKind::Raise:
          return throw_at(instruction);
        case EndKind::Break:
          break;
      }
      Advance advance = perform_break(instruction);
      if (advance.kind == Advance::Stop) return hand_over(end.offset);
      if (advance.kind == Advance::Throw) return throw_at(instruction);
      if (cpy::has_requests(thread_) && !serve_requests()) return throw_at(instruction);
      advance = go_on_natively(advance.offset);
      if (advance.kind == Advance::Throw) return throw_at(code_.at(advance.offset));
      offset = advance.offset;
      if (cpy::is_traced(thread_)) return hand_over(offset);
    }
  }

  bool serve_requests() const {
    const HookPause pause;
    return cpy::serve_requests(thread_);
  }

  PyObject* hand_over(int32_t offset) {
    link_.unlink();
    frame_.set_next(offset);
    return cpy::evaluate(thread_, frame_);
  }

  PyObject* throw_at(const Instruction& instruction) {
    return cpy::throw_into(thread_, frame_, link_, instruction.at);
  }

  // Performs MakeCell and CopyFreeVars, so that every segment finds the cells in their places.
  bool run_prologue() {
    PyObject** locals = frame_.slots();
    for (int32_t i = 0; i < code_.entry; ++i) {
      const Instruction& instruction = code_.instructions[size_t(i)];
      if (instruction.op == Op::MakeCell) {
        PyObject* cell = PyCell_New(locals[instruction.arg]);
        if (cell == nullptr) return false;
        Py_XDECREF(std::exchange(locals[instruction.arg], cell));
      } else {
        PyObject* closure = PyFunction_GET_CLOSURE(frame_.function());
        const int32_t first = frame_.code()->co_nlocalsplus - instruction.arg;
        for (int32_t k = 0; k < instruction.arg; ++k)
          locals[first + k] = Py_NewRef(PyTuple_GET_ITEM(closure, k));
      }
    }
    return true;
  }

  FrameState load(int32_t offset) const {
    FrameState state;
    state.code = frame_.code();
    state.function = frame_.function();
    state.globals = frame_.globals();
    state.builtins = frame_.builtins();
    state.names = frame_.names();
    state.offset = offset;
    PyObject** slots = frame_.slots();
    const int locals = state.code->co_nlocalsplus, all = frame_.slot_count();
    state.locals.reserve(size_t(locals));
    for (int i = 0; i < locals; ++i) state.locals.push_back(cpy::Ref::borrow(slots[i]));
    state.stack.reserve(size_t(state.code->co_stacksize));
    for (int i = locals; i < all; ++i) state.stack.push_back(cpy::Ref::borrow(slots[i]));
    return state;
  }

  // Writes locals and stack back into the frame. `state` gets the old references, which are dropped once the
  // frame is complete.
  void store(FrameState& state) const {
    PyObject** slots = frame_.slots();
    const int locals = state.code->co_nlocalsplus, old_all = frame_.slot_count();
    check(state.locals.size() == size_t(locals), "a segment changed the number of locals");
    check(state.stack.size() <= size_t(state.code->co_stacksize),
          "a segment's stack is too deep for its frame");
    std::vector<cpy::Ref> old_stack;
    for (int i = locals; i < old_all; ++i) old_stack.push_back(cpy::Ref::steal(slots[i]));
    for (int i = 0; i < locals; ++i)
      state.locals[size_t(i)] = cpy::Ref::steal(std::exchange(slots[i], state.locals[size_t(i)].release()));
    int all = locals;
    for (cpy::Ref& entry : state.stack) slots[all++] = entry.release();
    frame_.set_slot_count(all);
    state.stack = std::move(old_stack);
  }

  // A failure inside the compiler leaves the frame as it was: CPython goes on from the segment's start.
  SegmentEnd run_segment(int32_t offset) {
    frame_.set_executing(code_.at(offset).at);
    try {
      FrameState state = load(offset);
      SegmentEnd end;
      {
        const HookPause pause;
        end = runner_.run(state);
      }
      check(end.offset >= 0 && size_t(end.offset) < code_.index_of_offset.size() &&
                code_.index_of_offset[size_t(end.offset)] >= 0,
            "a segment ends at no instruction");
      check((end.kind == EndKind::Raise) == (PyErr_Occurred() != nullptr),
            "a segment ends with an error that it does not name");
      const cpy::SavedError error;
      // RETURN_CONST brings its own value, and its frame may have no room for another.
      if (end.kind == EndKind::Return && code_.at(end.offset).op == Op::LoadConst) state.stack.clear();
      store(state);
      return end;
    } catch (const InternalError& error) {
      PyErr_Clear();
      if (strict()) {
        PyErr_Format(PyExc_SystemError, "internal error of oxyfuel: %s", error.what());
        return {EndKind::Raise, offset};
      }
      warn(fmt::format("internal error, '{}' goes on in eager: {}",
                       PyUnicode_AsUTF8(frame_.code()->co_qualname), error.what()));
    } catch (const std::exception& error) {
      PyErr_Clear();
      log(Channel::Breaks, "{} is handed over at {}: {}", PyUnicode_AsUTF8(frame_.code()->co_qualname),
          offset, error.what());
    }
    return {EndKind::HandOver, offset};
  }

  // Performs the instruction and all others with its offset.
  Advance perform_break(const Instruction& first) {
    frame_.set_executing(first.at);
    const Machine machine(thread_, frame_);
    auto index = size_t(code_.index_of_offset[size_t(first.offset)]);
    const std::vector<Instruction>& instructions = code_.instructions;
    bool started = false;
    do {
      const Instruction& instruction = instructions[index];
      const Outcome outcome = ends_frame(index) ? Outcome::Refused : perform(machine, instruction);
      switch (outcome) {
        case Outcome::Next:
          ++index;
          break;
        case Outcome::Jump:
          index = size_t(instruction.arg);
          break;
        case Outcome::Raised:
          return {Advance::Throw};
        case Outcome::Refused:
          if (!started) return {Advance::Stop};
          PyErr_SetString(PyExc_SystemError, "half of an instruction cannot be performed");
          return {Advance::Throw};
      }
      started = true;
    } while (instructions[index].continues);
    return {Advance::GoOn, instructions[index].offset};
  }

  bool ends_frame(size_t index) const {
    const std::vector<Instruction>& instructions = code_.instructions;
    return instructions[index].op == Op::ReturnValue ||
           (index + 1 < instructions.size() && instructions[index + 1].continues &&
            instructions[index + 1].op == Op::ReturnValue);
  }

  PyThreadState* thread_;
  cpy::Frame frame_;
  SegmentRunner& runner_;
  const Code& code_;
  cpy::FrameLink link_;
};

}  // namespace

PyObject* run_frame(PyThreadState* thread, cpy::Frame frame, SegmentRunner& runner) {
  std::shared_ptr<const Code> code;
  try {
    code = bytecode::decode(frame.code());
  } catch (const std::exception&) {
    return cpy::evaluate(thread, frame);
  }
  // CPython's own check raises its RecursionError.
  if (!cpy::can_recurse(thread)) return cpy::evaluate(thread, frame);
  return FrameLoop(thread, frame, runner, *code).run();
}

}  // namespace oxy::hook
