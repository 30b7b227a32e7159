#include "eval/machine/generators.h"

#include <fmt/format.h>

#include <algorithm>

#include "cpy/generator.h"
#include "eval/builtins/prelude_iterators.h"
#include "eval/machine/run.h"
#include "eval/machine/step_exception.h"
#include "eval/python/objects.h"
#include "eval/python/pending_error.h"
#include "eval/state/evaluation.h"
#include "eval/state/generator.h"
#include "eval/state/interpreter.h"
#include "eval/state/stack.h"
#include "eval/treatment/library_code.h"
#include "eval/treatment/prelude.h"

namespace oxy::eval {

namespace {

// The context of an error that is thrown into a generator is the exception that the generator is handling.
void chain_to_handled() {
  if (!cpy::handled_here()) return;
  Ref value;
  {
    PendingError pending;
    value = Ref::borrow(pending.value());
  }
  PyErr_Clear();
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(value.get())), value.get());
}

void end_frame(Frame& frame) {
  const std::vector<Ref> locals = std::move(frame.locals), stack = std::move(frame.stack);
  frame.locals.clear();
  frame.stack.clear();
}

}  // namespace

const char* name_of(PyTypeObject* type) {
  if (type == &PyCoro_Type) return "coroutine";
  return type == &PyAsyncGen_Type ? "async generator" : "generator";
}

void raise_runtime_error(const std::string& text) {
  Ref cause;
  {
    PendingError pending;
    cause = Ref::borrow(pending.value());
  }
  PyErr_Clear();
  PyErr_SetString(PyExc_RuntimeError, text.c_str());
  PendingError pending;
  PyException_SetCause(pending.value(), cause.new_reference());
  PyException_SetContext(pending.value(), cause.release());
}

namespace {

Ref throw_into_receiver(Interpreter& interpreter, GeneratorData& data, Ref* returned);

}  // namespace

// Code of libraries is left out: contextlib gives the exceptions that it keeps another traceback.
void refuse_what_tracebacks_hold(Interpreter& interpreter, const Frame& frame) {
  if (frame.caught.empty() || is_library_code(frame.pycode())) return;
  const bool holds_one = std::ranges::any_of(frame.locals, [&](const Ref& local) {
    PyObject* const value = local && PyCell_Check(local.get()) ? PyCell_GET(local.get()) : local.get();
    return std::ranges::find(frame.caught, value) != frame.caught.end();
  });
  const auto has_work = [](const auto& made) {
    return !made.first.expired() && has_cleanup(generator_data(made.second));
  };
  if (holds_one && std::ranges::any_of(interpreter.calls.generators, has_work))
    interpreter.stop(
        "a frame ends whose exceptions hold it, and with it a generator with something left to do");
}

void close_abandoned(Interpreter& interpreter) {
  Ref type, value, traceback;
  PyErr_Fetch(type.out(), value.out(), traceback.out());
  // CPython's traceback holds the frame, and with it the generator, until the exception is handled.
  if (type) interpreter.stop("an exception leaves a frame that holds a generator with something left to do");
  while (!interpreter.calls.abandoned->empty()) {
    std::unique_ptr<GeneratorData> data = std::move(interpreter.calls.abandoned->front());
    interpreter.calls.abandoned->erase(interpreter.calls.abandoned->begin());
    Frame& frame = data->frame;
    if (data->state == GeneratorState::Created) interpreter.stop("a coroutine is never awaited");
    if (class_of(*data) == &PyAsyncGen_Type)
      interpreter.stop("an asynchronous generator is dropped before its end");
    // In CPython the traceback of that exception holds the frames through which it went. They die when the
    // garbage collector finds the cycle.
    if (data->handled && data->handled != Py_None)
      interpreter.stop("a generator that handles an exception is dropped");
    PyErr_SetNone(PyExc_GeneratorExit);
    if (waits_for_another(*data)) {
      Ref returned;
      throw_into_receiver(interpreter, *data, &returned);
    }
    // No object refers to the data any more, so nothing can reach the generator while it runs.
    Flow flow = Flow::Raised;
    {
      const cpy::HandledItem item(data->handled);
      frame.stack.push_back(Ref::borrow(Py_None));
      chain_to_handled();
      if (unwind(interpreter, frame)) flow = run(interpreter, frame);
    }
    if (flow == Flow::Yielded) interpreter.stop("a generator that is dropped yields");
    if (flow == Flow::Raised) {
      const bool closed =
          PyErr_ExceptionMatches(PyExc_GeneratorExit) || PyErr_ExceptionMatches(PyExc_StopIteration);
      PyErr_Clear();
      if (!closed) interpreter.stop("a generator that is dropped raises");
    }
  }
  PyErr_Restore(type.release(), value.release(), traceback.release());
}

namespace {

// Throws the pending error into the object for which the generator waits. Gives what that yields. Null: the
// generator goes on, with the value `returned` if that is set, else with the error that is set.
Ref throw_into_receiver(Interpreter& interpreter, GeneratorData& data, Ref* returned) {
  Frame& frame = data.frame;
  Ref receiver = frame.stack.back();
  const bool generator = is_generator(receiver.get()) || is_coroutine(receiver.get());
  // A generator of the prelude stands for a C iterator, which has no throw().
  if (generator && is_prelude_code(generator_data(receiver.get()).frame.pycode())) return {};
  if (!generator && is_builtin_iterator(receiver.get())) return {};
  if (!generator) interpreter.stop("an exception is thrown into a generator that waits for another object");
  if (PyErr_ExceptionMatches(PyExc_GeneratorExit)) {
    Ref type, value, traceback;
    PyErr_Fetch(type.out(), value.out(), traceback.out());
    data.state = GeneratorState::Running;
    if (close_generator(interpreter, receiver.get()))
      PyErr_Restore(type.release(), value.release(), traceback.release());
    data.state = GeneratorState::Suspended;
    return {};
  }
  data.state = GeneratorState::Running;
  bool error = false;
  Ref value = run_generator(interpreter, receiver.get(), nullptr, &error);
  data.state = GeneratorState::Suspended;
  if (value) return value;
  if constexpr (PY_VERSION_HEX >= 0x030C0000) {
    // CPython's own handler around the wait takes the result from the StopIteration.
    if (!error) set_stop_iteration(generator_data(receiver.get()).returned);
    return {};
  }
  frame.stack.pop_back();
  if (error) return {};
  *returned = generator_data(receiver.get()).returned;
  jump(frame, frame.code->instructions[frame.current - 1].arg);
  return {};
}

}  // namespace

bool close_generator(Interpreter& interpreter, PyObject* generator) {
  GeneratorData& data = generator_data(generator);
  if (data.state == GeneratorState::Created) {
    data.state = GeneratorState::Finished;
    end_frame(data.frame);
  }
  if (data.state == GeneratorState::Finished) return true;
  PyErr_SetNone(PyExc_GeneratorExit);
  bool error = false;
  if (run_generator(interpreter, generator, nullptr, &error)) {
    PyErr_Format(PyExc_RuntimeError, "%s ignored GeneratorExit", name_of(class_of(data)));
    return false;
  }
  if (error && !PyErr_ExceptionMatches(PyExc_StopIteration) && !PyErr_ExceptionMatches(PyExc_GeneratorExit))
    return false;
  PyErr_Clear();
  return true;
}

Ref run_generator(Interpreter& interpreter, PyObject* generator, PyObject* sent, bool* error) {
  Ref hold = Ref::borrow(generator);
  GeneratorData& data = generator_data(generator);
  if (data.state == GeneratorState::Finished) {
    if (asks_again(data)) interpreter.stop("asks an iterator that has ended once more");
    *error = sent == nullptr;
    if (class_of(data) == &PyCoro_Type) {
      PyErr_SetString(PyExc_RuntimeError, "cannot reuse already awaited coroutine");
      *error = true;
    }
    data.returned = Ref::borrow(Py_None);
    return {};
  }
  if (data.state == GeneratorState::Running) {
    // A generator that resumes itself is an error. The C iterator for which this one stands has no such rule.
    if (is_prelude_code(data.frame.pycode())) interpreter.stop("an iterator asks itself for an item");
    PyErr_Format(PyExc_ValueError, "%s already executing", name_of(class_of(data)));
    *error = true;
    return {};
  }
  Frame& frame = data.frame;
  Flow flow = Flow::Raised;
  Ref returned;
  if (!sent && waits_for_another(data)) {
    if (Ref value = throw_into_receiver(interpreter, data, &returned)) return value;
    sent = returned.get();
  }
  data.state = GeneratorState::Running;
  {
    const cpy::HandledItem item(data.handled);
    frame.stack.push_back(Ref::borrow(sent ? sent : Py_None));
    if (!sent) chain_to_handled();
    if (sent || unwind(interpreter, frame)) flow = run(interpreter, frame);
  }
  if (flow == Flow::Yielded) {
    data.state = GeneratorState::Suspended;
    return pop(frame);
  }
  data.state = GeneratorState::Finished;
  if (flow == Flow::Returned) data.returned = pop(frame);
  end_frame(frame);
  *error = flow == Flow::Raised;
  if (*error && PyErr_ExceptionMatches(PyExc_StopIteration)) {
    if (is_prelude_code(frame.pycode())) {
      // A C iterator ends if the function that it calls raises StopIteration.
      data.returned = taken_stop_value();
      *error = false;
    } else {
      raise_runtime_error(fmt::format("{} raised StopIteration", name_of(class_of(data))));
    }
  }
  if (*error && is_prelude_code(frame.pycode())) {
    PyErr_Clear();
    interpreter.stop("an iterator raises", "an iterator of C's goes on behind the item that raised");
  }
  return {};
}

}  // namespace oxy::eval
