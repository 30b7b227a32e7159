// The main loop: one canonical instruction after the other. The simple ones are here, families are in
// step_*.cpp.
#include "eval/machine/run.h"

#include <fmt/format.h>
#include <torch/csrc/Size.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "bytecode/operations.h"
#include "cpy/thread.h"
#include "eval/externals/constants.h"
#include "eval/externals/identity.h"
#include "eval/externals/type_lookup.h"
#include "eval/externals/variables.h"
#include "eval/machine/assertion_messages.h"
#include "eval/machine/checked_branch.h"
#include "eval/machine/generators.h"
#include "eval/machine/step_build.h"
#include "eval/machine/step_call.h"
#include "eval/machine/step_exception.h"
#include "eval/machine/step_generator.h"
#include "eval/machine/step_names.h"
#include "eval/machine/unread.h"
#include "eval/numbers/symbolic_integer.h"
#include "eval/numbers/varying_number.h"
#include "eval/objects/attribute_writes.h"
#include "eval/objects/containers.h"
#include "eval/objects/operators.h"
#include "eval/python/objects.h"
#include "eval/python/pending_error.h"
#include "eval/state/evaluation.h"
#include "eval/state/generator.h"
#include "eval/state/interpreter.h"
#include "eval/state/stack.h"
#include "eval/torch/torch_call.h"
#include "eval/treatment/code_gate.h"
#include "eval/treatment/prelude.h"
#include "sym/environment/data_dependence.h"
#include "trace/tensors/trace_error.h"

namespace oxy::eval {

namespace {

Flow step(Interpreter& interpreter, Frame& frame, const bytecode::Instruction& instruction);

constexpr int64_t kInstructionsBetweenRequests = 1024;

// Parts of error texts that differ because our interpreter calls C code in another way than CPython does.
// They name our class for generators, or the class of the object where a method of a base refuses its number
// of arguments.
constexpr std::array<std::string_view, 4> kTextsOfOurs = {kGeneratorClassName, "() takes no arguments (",
                                                          "() takes no keyword arguments",
                                                          "() takes exactly one argument ("};

// Whether the error that is set has such a text.
bool tells_of_evaluator() {
  const PendingError pending;
  const Ref args = pending.value() ? exception_arguments(pending.value()) : Ref();
  if (!args || PyTuple_GET_SIZE(args.get()) == 0) return false;
  PyObject* const text = PyTuple_GET_ITEM(args.get(), 0);
  const char* utf8 = PyUnicode_CheckExact(text) ? PyUnicode_AsUTF8(text) : nullptr;
  if (!utf8) PyErr_Clear();
  return utf8 && std::ranges::any_of(kTextsOfOurs, [&](std::string_view part) {
           return std::string_view(utf8).find(part) != std::string_view::npos;
         });
}

}  // namespace

using bytecode::Instruction;
using bytecode::Op;
using bytecode::SymbolicForm;

namespace {

void arm_gate(Interpreter& interpreter, bool armed) {
  if (interpreter.options.gate) interpreter.options.gate->arm(armed);
}

}  // namespace

bool jump(Frame& frame, int32_t target) {
  frame.next = static_cast<size_t>(target);
  return true;
}

namespace {

Flow run_instructions(Interpreter& interpreter, Frame& frame) {
  // Whether the recursion limit is reached is left to CPython.
  if (interpreter.depth > interpreter.options.max_depth) interpreter.stop("calls nest too deep");
  const bool outermost = &frame == interpreter.outermost;
  const auto& instructions = frame.code->instructions;
  while (true) {
    frame.current = frame.next;
    const Instruction& instruction = instructions[frame.current];
    if (outermost && !instruction.continues) {
      if (interpreter.executed == interpreter.stop_at) return Flow::Yielded;
      ++interpreter.executed;
    }
    if (interpreter.total_executed % kInstructionsBetweenRequests == 0) {
      if (!cpy::serve_exceptions(PyThreadState_Get())) throw Interrupted{};
      if (interpreter.total_executed > interpreter.options.max_instructions ||
          interpreter.recorder.node_count() > interpreter.options.max_nodes)
        throw Break{.reason = "the capture is too long",
                    .hint = "a loop over data runs too often to be unrolled",
                    .kind = BreakKind::TooLong,
                    .missing = {}};
    }
    ++interpreter.total_executed;
    frame.next = frame.current + 1;
    if (outermost) {
      if (move_unread(interpreter, frame, instruction)) continue;
      admit_operands(interpreter, frame, instruction);
    }
    const Flow flow = step(interpreter, frame, instruction);
    if (interpreter.options.gate && !interpreter.options.gate->refused().empty()) {
      PyErr_Clear();
      interpreter.stop(fmt::format("C code calls {}", interpreter.options.gate->refused()));
    }
    if (!interpreter.calls.abandoned->empty()) close_abandoned(interpreter);
    switch (flow) {
      case Flow::Next:
      case Flow::Jumped:
        break;
      case Flow::Raised:
        // The recorder has refused an operator. No handler of the program's may see that error.
        if (PyErr_ExceptionMatches(trace::trace_error())) stop_on_torch_error(interpreter);
        check(PyErr_Occurred() != nullptr, fmt::format("{} fails without an exception at {}",
                                                       bytecode::name(instruction.op), line_text(frame)));
        if (tells_of_evaluator()) {
          PyErr_Clear();
          interpreter.stop("an error is raised whose text depends on how C code is called");
        }
        // An exception in the segment's own frame is left to CPython, since its traceback has to name this
        // frame.
        if (outermost) {
          PyErr_Clear();
          throw Break{"an exception is raised here", "", BreakKind::Raised, {}};
        }
        if (!unwind(interpreter, frame)) return Flow::Raised;
        break;
      case Flow::Returned:
        refuse_what_tracebacks_hold(interpreter, frame);
        return flow;
      case Flow::Yielded:
        return flow;
    }
  }
}

}  // namespace

Flow run(Interpreter& interpreter, Frame& frame) {
  struct Link {
    Interpreter& interpreter;
    Frame& frame;
    Link(Interpreter& i, Frame& f) : interpreter(i), frame(f) {
      frame.back = interpreter.frame;
      interpreter.frame = &frame;
      if (++interpreter.depth == 1) arm_gate(interpreter, true);
    }
    ~Link() {
      interpreter.frame = frame.back;
      if (--interpreter.depth == 0) arm_gate(interpreter, false);
    }
  } link(interpreter, frame);
  try {
    return run_instructions(interpreter, frame);
  } catch (const sym::DataDependence& dependence) {
    interpreter.break_lines.push_back(line_text(frame));
    interpreter.stop(dependence.reason(), dependence.hint());
  } catch (...) {
    interpreter.break_lines.push_back(line_text(frame));
    throw;
  }
}

Ref run_to_return(Interpreter& interpreter, Frame& frame) {
  const Flow flow = run(interpreter, frame);
  if (flow == Flow::Raised) return {};
  return pop(frame);
}

namespace {

Flow pushed(Frame& frame, Ref value) {
  if (!value) return Flow::Raised;
  frame.stack.push_back(std::move(value));
  return Flow::Next;
}

Flow step_simple(Interpreter& interpreter, Frame& frame, const Instruction& in) {
  auto& stack = frame.stack;
  switch (in.op) {
    case Op::Nop:
      return Flow::Next;
    case Op::PopTop:
      drop(interpreter, frame, stack.back().get());
      stack.pop_back();
      return Flow::Next;
    case Op::Copy:
      stack.push_back(stack[stack.size() - static_cast<size_t>(in.arg)]);
      return Flow::Next;
    case Op::Swap:
      std::swap(stack.back(), stack[stack.size() - static_cast<size_t>(in.arg)]);
      return Flow::Next;
    case Op::PushNull:
      stack.emplace_back();
      return Flow::Next;
    case Op::LoadConst: {
      PyObject* constant = PyTuple_GET_ITEM(frame.pycode()->co_consts, in.arg);
      note_code_constant(interpreter, constant);
      stack.push_back(Ref::borrow(constant));
      return Flow::Next;
    }
    case Op::LoadFast: {
      const Ref& value = local(interpreter, frame, in.arg);
      if (!value) {
        PyErr_Format(PyExc_UnboundLocalError,
                     "cannot access local variable '%U' where it is not associated with a value",
                     PyTuple_GET_ITEM(frame.pycode()->co_localsplusnames, in.arg));
        return Flow::Raised;
      }
      stack.push_back(value);
      return Flow::Next;
    }
    case Op::LoadFastAndClear:
      stack.push_back(std::move(local(interpreter, frame, in.arg)));
      return Flow::Next;
    case Op::StoreFast:
      overwrite_local(interpreter, frame, in.arg, pop(frame));
      return Flow::Next;
    case Op::DeleteFast:
      if (!local(interpreter, frame, in.arg)) {
        PyErr_Format(PyExc_UnboundLocalError,
                     "cannot access local variable '%U' where it is not associated with a value",
                     PyTuple_GET_ITEM(frame.pycode()->co_localsplusnames, in.arg));
        return Flow::Raised;
      }
      overwrite_local(interpreter, frame, in.arg, {});
      return Flow::Next;
    case Op::BinaryOp: {
      Ref right = pop(frame), left = pop(frame);
      return pushed(frame, binary(interpreter, static_cast<bytecode::BinaryKind>(in.arg), in.arg2 != 0,
                                  left.get(), right.get()));
    }
    case Op::UnaryNegative:
    case Op::UnaryInvert:
    case Op::UnaryPositive: {
      Ref operand = pop(frame);
      return pushed(frame, unary(interpreter, in.op, operand.get()));
    }
    case Op::UnaryNot:
    case Op::ToBool: {
      Ref operand = pop(frame);
      if (const auto undecided = undecided_truth(interpreter, operand.get())) {
        stack.push_back(truth_of(interpreter, in.op == Op::ToBool ? *undecided : !*undecided));
        return Flow::Next;
      }
      bool error = false;
      const bool value = truth(interpreter, operand.get(), &error);
      if (error) return Flow::Raised;
      stack.push_back(Ref::borrow(value == (in.op == Op::ToBool) ? Py_True : Py_False));
      return Flow::Next;
    }
    case Op::CompareOp: {
      Ref right = pop(frame), left = pop(frame);
      Ref result = compare(interpreter, left.get(), right.get(), in.arg);
      if (result && in.arg2 && !undecided_truth(interpreter, result.get())) {
        bool error = false;
        const bool value = truth(interpreter, result.get(), &error);
        if (error) return Flow::Raised;
        result = Ref::borrow(value ? Py_True : Py_False);
      }
      return pushed(frame, std::move(result));
    }
    case Op::IsOp: {
      Ref right = pop(frame), left = pop(frame);
      if (left != Py_None && right != Py_None) {
        left = constant_of(interpreter, left.get());
        right = constant_of(interpreter, right.get());
      }
      compare_identity(interpreter, left.get(), right.get());
      stack.push_back(Ref::borrow((left == right) != (in.arg != 0) ? Py_True : Py_False));
      return Flow::Next;
    }
    case Op::ContainsOp: {
      Ref right = pop(frame), left = pop(frame);
      const int found = contains(interpreter, right.get(), left.get());
      if (found < 0) return Flow::Raised;
      stack.push_back(Ref::borrow((found != 0) != (in.arg != 0) ? Py_True : Py_False));
      return Flow::Next;
    }
    case Op::BinarySubscr: {
      Ref key = pop(frame), object = pop(frame);
      return pushed(frame, get_item(interpreter, object.get(), key.get()));
    }
    case Op::StoreSubscr: {
      Ref key = pop(frame), object = pop(frame), value = pop(frame);
      return set_item(interpreter, object.get(), key.get(), value.get()) ? Flow::Next : Flow::Raised;
    }
    case Op::DeleteSubscr: {
      Ref key = pop(frame), object = pop(frame);
      return delete_item(interpreter, object.get(), key.get()) ? Flow::Next : Flow::Raised;
    }
    case Op::BinarySlice: {
      Ref end = pop(frame), begin = pop(frame), object = pop(frame);
      Ref slice = make_slice(interpreter, begin.get(), end.get(), nullptr);
      return pushed(frame, get_item(interpreter, object.get(), slice.get()));
    }
    case Op::StoreSlice: {
      Ref end = pop(frame), begin = pop(frame), object = pop(frame), value = pop(frame);
      Ref slice = make_slice(interpreter, begin.get(), end.get(), nullptr);
      return set_item(interpreter, object.get(), slice.get(), value.get()) ? Flow::Next : Flow::Raised;
    }
    case Op::LoadAttr: {
      Ref object = pop(frame);
      return pushed(frame, get_attribute(interpreter, object.get(), name_at(frame, in.arg)));
    }
    case Op::LoadMethod: {
      Ref object = pop(frame);
      Ref method = get_attribute(interpreter, object.get(), name_at(frame, in.arg));
      if (!method) return Flow::Raised;
      if (PyObject* descriptor = method_descriptor(object.get(), method.get()))
        push_method(frame, Ref::borrow(descriptor), std::move(object));
      else
        push_callable(frame, std::move(method));
      return Flow::Next;
    }
    case Op::StoreAttr: {
      Ref object = pop(frame), value = pop(frame);
      return set_attribute(interpreter, object.get(), name_at(frame, in.arg), value.get()) ? Flow::Next
                                                                                           : Flow::Raised;
    }
    case Op::DeleteAttr: {
      Ref object = pop(frame);
      return set_attribute(interpreter, object.get(), name_at(frame, in.arg), nullptr) ? Flow::Next
                                                                                       : Flow::Raised;
    }
    case Op::Jump:
      jump(frame, in.arg);
      return Flow::Jumped;
    case Op::PopJumpIfTrue:
    case Op::PopJumpIfFalse: {
      Ref condition = pop(frame);
      bool error = false;
      const std::optional<bool> checked =
          checked_branch(interpreter, frame, in, in.op == Op::PopJumpIfTrue, condition.get());
      const bool value = checked ? *checked : truth(interpreter, condition.get(), &error);
      if (error) return Flow::Raised;
      if (value == (in.op == Op::PopJumpIfTrue)) jump(frame, in.arg);
      return Flow::Jumped;
    }
    case Op::JumpIfTrueOrPop:
    case Op::JumpIfFalseOrPop: {
      bool error = false;
      const bool value = truth(interpreter, stack.back().get(), &error);
      if (error) return Flow::Raised;
      if (value == (in.op == Op::JumpIfTrueOrPop)) {
        jump(frame, in.arg);
        return Flow::Jumped;
      }
      stack.pop_back();
      return Flow::Next;
    }
    case Op::PopJumpIfNone:
    case Op::PopJumpIfNotNone: {
      Ref condition = pop(frame);
      if ((condition == Py_None) == (in.op == Op::PopJumpIfNone)) jump(frame, in.arg);
      return Flow::Jumped;
    }
    case Op::GetIter: {
      Ref object = pop(frame);
      if (has_python_special(interpreter, object.get(), "__next__") && is_prelude_code(frame.pycode()))
        return pushed(frame, std::move(object));
      return pushed(frame, get_iterator(interpreter, object.get()));
    }
    case Op::ForIter: {
      bool error = false;
      Ref item = iterate(interpreter, stack.back().get(), &error);
      if (error) return Flow::Raised;
      if (item) {
        stack.push_back(std::move(item));
        return Flow::Next;
      }
      if (!in.arg2) stack.pop_back();
      jump(frame, in.arg);
      return Flow::Jumped;
    }
    case Op::ReturnValue:
      return Flow::Returned;
    case Op::ConvertValue: {
      Ref value = pop(frame);
      return pushed(frame, convert(interpreter, value.get(), in.arg));
    }
    case Op::FormatValue: {
      Ref spec = in.arg2 ? pop(frame) : Ref();
      Ref value = pop(frame);
      const bool is_size = is_varying_number(value.get()) || THPSize_Check(value.get());
      if (is_size && is_message_of_true_assertion(frame)) return pushed(frame, interned(""));
      return pushed(frame, format(interpreter, value.get(), in.arg, spec.get()));
    }
    default:
      interpreter.stop(fmt::format("instruction {} is not captured", bytecode::name(in.op)));
  }
}

Flow step(Interpreter& interpreter, Frame& frame, const Instruction& in) {
  switch (bytecode::operation(in.op).symbolic) {
    case SymbolicForm::Simple:
      return step_simple(interpreter, frame, in);
    case SymbolicForm::Names:
      return step_names(interpreter, frame, in);
    case SymbolicForm::Build:
      return step_build(interpreter, frame, in);
    case SymbolicForm::Call:
      return step_call(interpreter, frame, in);
    case SymbolicForm::Exception:
      return step_exception(interpreter, frame, in);
    case SymbolicForm::Generator:
      return step_generator(interpreter, frame, in);
    case SymbolicForm::Match:
      return step_match(interpreter, frame, in);
    case SymbolicForm::None:
      break;
  }
  if (in.op == Op::LoadBuildClass)
    interpreter.stop("defines a class", "classes that stay the same can be defined outside of the function");
  interpreter.stop(fmt::format("instruction {} is not captured", bytecode::name(in.op)));
}

}  // namespace

}  // namespace oxy::eval
