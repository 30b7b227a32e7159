// The main loop: one canonical instruction after the other; families live in step_*.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "cpy/thread.h"
#include "eval/code_gate.h"
#include "eval/evaluator.h"
#include "eval/generator.h"
#include "eval/objects.h"
#include "eval/pending_error.h"
#include "eval/prelude.h"
#include "eval/stack.h"
#include "eval/torch_call.h"
#include "trace/trace_error.h"

namespace oxy::eval {

namespace {

constexpr int64_t kInstructionsBetweenRequests = 1024;

// What the text of an error names when C code is called as the evaluator does it, and not as the interpreter
// does: the class that stands for generators; the object's class where a method of a base refuses its number
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

void Evaluator::stop(std::string reason, std::string hint) const {
  throw Break{std::move(reason), std::move(hint), {}};
}

void Evaluator::arm_gate(bool armed) {
  if (options_.gate) options_.gate->arm(armed);
}

bool Evaluator::jump(Frame& frame, int32_t target) {
  frame.next = static_cast<size_t>(target);
  return true;
}

Ref& Evaluator::local(Frame& frame, int32_t index) {
  const auto i = static_cast<size_t>(index);
  if (!frame.unread.empty() && frame.unread[i] != guards::kNoSource) {
    const SourceId source = std::exchange(frame.unread[i], guards::kNoSource);
    if (frame.locals[i])
      frame.locals[i] = admit(frame.locals[i].get(), source);
    else
      guards().require(source, guards::CheckKind::Unbound, nullptr);
  }
  return frame.locals[i];
}

void Evaluator::drop(const Frame& frame, PyObject* object, SourceId unread) {
  // The interpreter's own frame holds it until the segment has ended: what its finalizer does would come
  // late.
  if (&frame != outermost_) return;
  const auto given = external_of_.find(object);
  if (object && guards::end_is_seen(given == external_of_.end() ? object : given->second))
    stop("drops an object whose end can be seen");
  const SourceId source = unread == guards::kNoSource && object ? source_of(object) : unread;
  if (source != guards::kNoSource) guards().require(source, guards::CheckKind::Unfinalized, nullptr);
}

void Evaluator::overwrite_local(Frame& frame, int32_t index, Ref value) {
  const auto i = static_cast<size_t>(index);
  drop(frame, frame.locals[i].get(), frame.unread.empty() ? guards::kNoSource : frame.unread[i]);
  if (!frame.unread.empty()) frame.unread[i] = guards::kNoSource;
  frame.locals[i] = std::move(value);
}

Flow Evaluator::run(Frame& frame) {
  struct Link {
    Evaluator& evaluator;
    Frame& frame;
    Link(Evaluator& e, Frame& f) : evaluator(e), frame(f) {
      f.back = e.frame_;
      e.frame_ = &f;
      if (++e.depth_ == 1) e.arm_gate(true);
    }
    ~Link() {
      if (std::uncaught_exceptions() > 0) evaluator.break_lines_.push_back(evaluator.line_text(frame));
      evaluator.frame_ = frame.back;
      if (--evaluator.depth_ == 0) evaluator.arm_gate(false);
    }
  } link(*this, frame);
  // Where the recursion limit lies is CPython's business.
  if (depth_ > options_.max_depth) stop("calls nest too deep");
  const bool outermost = &frame == outermost_;
  const auto& instructions = frame.code->instructions;
  while (true) {
    frame.current = frame.next;
    const Instruction& instruction = instructions[frame.current];
    if (outermost && !instruction.continues) {
      if (executed_ == stop_at_) return Flow::Yielded;
      ++executed_;
    }
    if (total_executed_ % kInstructionsBetweenRequests == 0) {
      if (!cpy::serve_exceptions(PyThreadState_Get())) throw Interrupted{};
      if (total_executed_ > options_.max_instructions || recorder().node_count() > options_.max_nodes)
        throw Break{.reason = "the capture is too long",
                    .hint = "a loop over data runs too often to be unrolled",
                    .missing = {},
                    .is_too_long = true};
    }
    ++total_executed_;
    frame.next = frame.current + 1;
    if (outermost) {
      if (move_unread(frame, instruction)) continue;
      admit_operands(frame, instruction);
    }
    const Flow flow = step(frame, instruction);
    if (options_.gate && !options_.gate->refused().empty()) {
      PyErr_Clear();
      stop(fmt::format("C code calls {}", options_.gate->refused()));
    }
    if (!abandoned_->empty()) close_abandoned();
    switch (flow) {
      case Flow::Next:
      case Flow::Jumped:
        break;
      case Flow::Raised:
        // No handler of the program's may see it.
        if (PyErr_ExceptionMatches(trace::trace_error())) stop_on_torch_error(*this);
        check(PyErr_Occurred() != nullptr, fmt::format("{} fails without an exception at {}",
                                                       bytecode::name(instruction.op), line_text(frame)));
        if (tells_of_evaluator()) {
          PyErr_Clear();
          stop("an error is raised whose text depends on how C code is called");
        }
        // An exception that reaches the segment's own frame is left to CPython: its traceback has to name
        // this frame.
        if (outermost) {
          PyErr_Clear();
          if (told_that_it_compiles_) throw Unsupported("raises after it asked whether it is being compiled");
          stop("an exception is raised here");
        }
        if (!unwind(frame)) return Flow::Raised;
        break;
      case Flow::Returned:
        refuse_what_tracebacks_hold(frame);
        return flow;
      case Flow::Yielded:
        return flow;
    }
  }
}

Ref Evaluator::run_to_return(Frame& frame) {
  const Flow flow = run(frame);
  if (flow == Flow::Raised) return {};
  return pop(frame);
}

namespace {

Flow pushed(Frame& frame, Ref value) {
  if (!value) return Flow::Raised;
  frame.stack.push_back(std::move(value));
  return Flow::Next;
}

}  // namespace

Flow Evaluator::step(Frame& frame, const Instruction& in) {
  auto& stack = frame.stack;
  switch (in.op) {
    case Op::Nop:
      return Flow::Next;
    case Op::PopTop:
      drop(frame, stack.back().get());
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
      note_code_constant(constant);
      stack.push_back(Ref::borrow(constant));
      return Flow::Next;
    }
    case Op::LoadFast: {
      const Ref& value = local(frame, in.arg);
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
      stack.push_back(std::move(local(frame, in.arg)));
      return Flow::Next;
    case Op::StoreFast:
      overwrite_local(frame, in.arg, pop(frame));
      return Flow::Next;
    case Op::DeleteFast:
      if (!local(frame, in.arg)) {
        PyErr_Format(PyExc_UnboundLocalError,
                     "cannot access local variable '%U' where it is not associated with a value",
                     PyTuple_GET_ITEM(frame.pycode()->co_localsplusnames, in.arg));
        return Flow::Raised;
      }
      overwrite_local(frame, in.arg, {});
      return Flow::Next;
    case Op::BinaryOp: {
      Ref right = pop(frame), left = pop(frame);
      return pushed(frame,
                    binary(static_cast<bytecode::BinaryKind>(in.arg), in.arg2 != 0, left.get(), right.get()));
    }
    case Op::UnaryNegative:
    case Op::UnaryInvert:
    case Op::UnaryPositive: {
      Ref operand = pop(frame);
      return pushed(frame, unary(in.op, operand.get()));
    }
    case Op::UnaryNot:
    case Op::ToBool: {
      Ref operand = pop(frame);
      bool error = false;
      const bool value = truth(operand.get(), &error);
      if (error) return Flow::Raised;
      stack.push_back(Ref::borrow(value == (in.op == Op::ToBool) ? Py_True : Py_False));
      return Flow::Next;
    }
    case Op::CompareOp: {
      Ref right = pop(frame), left = pop(frame);
      Ref result = compare(left.get(), right.get(), in.arg);
      if (result && in.arg2) {
        bool error = false;
        const bool value = truth(result.get(), &error);
        if (error) return Flow::Raised;
        result = Ref::borrow(value ? Py_True : Py_False);
      }
      return pushed(frame, std::move(result));
    }
    case Op::IsOp: {
      Ref right = pop(frame), left = pop(frame);
      if (left != Py_None && right != Py_None) {
        left = constant_of(left.get());
        right = constant_of(right.get());
      }
      compare_identity(left.get(), right.get());
      stack.push_back(Ref::borrow((left == right) != (in.arg != 0) ? Py_True : Py_False));
      return Flow::Next;
    }
    case Op::ContainsOp: {
      Ref right = pop(frame), left = pop(frame);
      const int found = contains(right.get(), left.get());
      if (found < 0) return Flow::Raised;
      stack.push_back(Ref::borrow((found != 0) != (in.arg != 0) ? Py_True : Py_False));
      return Flow::Next;
    }
    case Op::BinarySubscr: {
      Ref key = pop(frame), object = pop(frame);
      return pushed(frame, get_item(object.get(), key.get()));
    }
    case Op::StoreSubscr: {
      Ref key = pop(frame), object = pop(frame), value = pop(frame);
      return set_item(object.get(), key.get(), value.get()) ? Flow::Next : Flow::Raised;
    }
    case Op::DeleteSubscr: {
      Ref key = pop(frame), object = pop(frame);
      return delete_item(object.get(), key.get()) ? Flow::Next : Flow::Raised;
    }
    case Op::BinarySlice: {
      Ref end = pop(frame), begin = pop(frame), object = pop(frame);
      Ref slice = make_slice(begin.get(), end.get(), nullptr);
      return pushed(frame, get_item(object.get(), slice.get()));
    }
    case Op::StoreSlice: {
      Ref end = pop(frame), begin = pop(frame), object = pop(frame), value = pop(frame);
      Ref slice = make_slice(begin.get(), end.get(), nullptr);
      return set_item(object.get(), slice.get(), value.get()) ? Flow::Next : Flow::Raised;
    }
    case Op::LoadAttr: {
      Ref object = pop(frame);
      return pushed(frame, get_attribute(object.get(), name_at(frame, in.arg)));
    }
    case Op::LoadMethod: {
      Ref object = pop(frame);
      Ref method = get_attribute(object.get(), name_at(frame, in.arg));
      if (!method) return Flow::Raised;
      if (PyObject* descriptor = method_descriptor(object.get(), method.get()))
        push_method(frame, Ref::borrow(descriptor), std::move(object));
      else
        push_callable(frame, std::move(method));
      return Flow::Next;
    }
    case Op::StoreAttr: {
      Ref object = pop(frame), value = pop(frame);
      return set_attribute(object.get(), name_at(frame, in.arg), value.get()) ? Flow::Next : Flow::Raised;
    }
    case Op::DeleteAttr: {
      Ref object = pop(frame);
      return set_attribute(object.get(), name_at(frame, in.arg), nullptr) ? Flow::Next : Flow::Raised;
    }
    case Op::Jump:
      jump(frame, in.arg);
      return Flow::Jumped;
    case Op::PopJumpIfTrue:
    case Op::PopJumpIfFalse: {
      Ref condition = pop(frame);
      bool error = false;
      const bool value = truth(condition.get(), &error);
      if (error) return Flow::Raised;
      if (value == (in.op == Op::PopJumpIfTrue)) jump(frame, in.arg);
      return Flow::Jumped;
    }
    case Op::JumpIfTrueOrPop:
    case Op::JumpIfFalseOrPop: {
      bool error = false;
      const bool value = truth(stack.back().get(), &error);
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
      if (has_python_special(object.get(), "__next__") && is_prelude_code(frame.pycode()))
        return pushed(frame, std::move(object));
      return pushed(frame, get_iterator(object.get()));
    }
    case Op::ForIter: {
      bool error = false;
      Ref item = iterate(stack.back().get(), &error);
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
      return pushed(frame, convert(value.get(), in.arg));
    }
    case Op::FormatValue: {
      Ref spec = in.arg2 ? pop(frame) : Ref();
      Ref value = pop(frame);
      return pushed(frame, format(value.get(), in.arg, spec.get()));
    }
    case Op::LoadGlobal:
    case Op::LoadName:
    case Op::StoreName:
    case Op::DeleteName:
    case Op::StoreGlobal:
    case Op::DeleteGlobal:
    case Op::MakeCell:
    case Op::CopyFreeVars:
    case Op::LoadClosure:
    case Op::LoadDeref:
    case Op::StoreDeref:
    case Op::DeleteDeref:
    case Op::LoadClassDeref:
    case Op::LoadSuperAttr:
    case Op::LoadSuperMethod:
    case Op::ImportName:
    case Op::ImportFrom:
    case Op::LoadAssertionError:
      return step_names(frame, in);
    case Op::BuildTuple:
    case Op::BuildList:
    case Op::BuildSet:
    case Op::BuildMap:
    case Op::BuildConstKeyMap:
    case Op::BuildString:
    case Op::BuildSlice:
    case Op::ListExtend:
    case Op::SetUpdate:
    case Op::DictUpdate:
    case Op::DictMerge:
    case Op::ListAppend:
    case Op::SetAdd:
    case Op::MapAdd:
    case Op::ListToTuple:
    case Op::UnpackSequence:
    case Op::UnpackEx:
      return step_build(frame, in);
    case Op::Call:
    case Op::CallFunctionEx:
    case Op::MakeFunction:
    case Op::SetFunctionAttribute:
      return step_call(frame, in);
    case Op::RaiseVarargs:
    case Op::Reraise:
    case Op::PushExcInfo:
    case Op::PopExcept:
    case Op::CheckExcMatch:
    case Op::BeforeWith:
    case Op::WithExceptStart:
      return step_exception(frame, in);
    case Op::ReturnGenerator:
    case Op::YieldValue:
    case Op::AsyncGenWrap:
    case Op::GetAwaitable:
    case Op::Send:
    case Op::GetYieldFromIter:
    case Op::EndSend:
    case Op::Resume:
    case Op::EndFor:
    case Op::CleanupThrow:
    case Op::StopIterationError:
      return step_generator(frame, in);
    case Op::GetLen:
    case Op::MatchMapping:
    case Op::MatchSequence:
    case Op::MatchKeys:
    case Op::MatchClass:
      return step_match(frame, in);
    case Op::LoadBuildClass:
      stop("defines a class", "classes that stay the same can be defined outside of the function");
    default:
      stop(fmt::format("instruction {} is not captured", bytecode::name(in.op)));
  }
}

std::string Evaluator::line_text(const Frame& frame) const {
  const char* file = PyUnicode_AsUTF8(frame.pycode()->co_filename);
  const char* name = PyUnicode_AsUTF8(frame.pycode()->co_name);
  return fmt::format("{}:{} in {}", file ? file : "?", frame.instruction().line, name ? name : "?");
}

int32_t Evaluator::location(graph::Graph& graph) {
  if (!frame_) return -1;
  const char* file = PyUnicode_AsUTF8(frame_->pycode()->co_filename);
  const char* name = PyUnicode_AsUTF8(frame_->pycode()->co_name);
  std::string_view path = file ? file : "?";
  if (const size_t slash = path.rfind('/'); slash != std::string_view::npos) path.remove_prefix(slash + 1);
  std::string text = fmt::format("{}:{} in {}", path, frame_->instruction().line, name ? name : "?");
  auto [it, inserted] =
      locations_.try_emplace({std::move(text), checkpoint_}, static_cast<int32_t>(graph.locations.size()));
  if (inserted) graph.locations.push_back({it->first.first, checkpoint_});
  return it->second;
}

}  // namespace oxy::eval
