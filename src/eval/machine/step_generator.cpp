#include "eval/machine/step_generator.h"

#include <fmt/format.h>

#include "eval/machine/generators.h"
#include "eval/machine/run.h"
#include "eval/objects/containers.h"
#include "eval/python/objects.h"
#include "eval/state/evaluation.h"
#include "eval/state/generator.h"
#include "eval/state/interpreter.h"
#include "eval/state/stack.h"
#include "eval/treatment/prelude.h"

namespace oxy::eval {

Flow step_generator(Interpreter& interpreter, Frame& frame, const bytecode::Instruction& in) {
  using bytecode::Op;
  auto& stack = frame.stack;
  switch (in.op) {
    case Op::Resume:
      return Flow::Next;
    case Op::ReturnGenerator:
    case Op::YieldValue:
      return Flow::Yielded;
    case Op::AsyncGenWrap:
      // A yield of an asynchronous generator begins with this instruction, so a segment ends here.
      if (&frame == interpreter.outermost) return Flow::Yielded;
      interpreter.stop("an asynchronous generator is not captured");
    case Op::GetAwaitable: {
      PyObject* object = stack.back().get();
      if (!is_generator(object) && !is_coroutine(object)) {
        Ref await = special_method(interpreter, object, "__await__");
        if (!await) interpreter.stop(fmt::format("awaits an object of type {}", Py_TYPE(object)->tp_name));
        Ref iterator = call_positional(interpreter, await.get(), {});
        if (!iterator) return Flow::Raised;
        if (!is_generator(iterator.get()) && !is_builtin_iterator(iterator.get()))
          interpreter.stop(fmt::format("awaits an object of type {}", Py_TYPE(object)->tp_name));
        stack.back() = std::move(iterator);
        return Flow::Next;
      }
      const GeneratorData& data = generator_data(object);
      const int flags = data.frame.pycode()->co_flags;
      if (data.state == GeneratorState::Created && (flags & (CO_COROUTINE | CO_ITERABLE_COROUTINE)))
        return Flow::Next;
      interpreter.stop(fmt::format("awaits an object of type {}", class_of(data)->tp_name));
    }
    case Op::GetYieldFromIter: {
      if (is_generator(stack.back().get())) return Flow::Next;
      Ref object = pop(frame);
      Ref iterator = get_iterator(interpreter, object.get());
      if (!iterator) return Flow::Raised;
      stack.push_back(std::move(iterator));
      return Flow::Next;
    }
    case Op::Send: {
      Ref sent = pop(frame);
      PyObject* receiver = stack.back().get();
      bool error = false;
      Ref value;
      Ref returned = Ref::borrow(Py_None);
      if (is_generator(receiver) || is_coroutine(receiver)) {
        value = run_generator(interpreter, receiver, sent.get(), &error);
        if (!value && !error) returned = generator_data(receiver).returned;
      } else if (sent != Py_None) {
        interpreter.stop("sends a value into an iterator");
      } else {
        value = iterate(interpreter, receiver, &error, &returned);
      }
      if (error) return Flow::Raised;
      if (value) {
        stack.push_back(std::move(value));
        return Flow::Next;
      }
      if constexpr (PY_VERSION_HEX < 0x030C0000) stack.pop_back();
      stack.push_back(std::move(returned));
      jump(frame, in.arg);
      return Flow::Jumped;
    }
    case Op::EndSend: {
      Ref value = pop(frame);
      stack.back() = std::move(value);
      return Flow::Next;
    }
    case Op::EndFor:
      stack.pop_back();
      if constexpr (PY_VERSION_HEX < 0x030D0000) stack.pop_back();
      return Flow::Next;
    case Op::StopIterationError: {
      PyObject* exception = stack.back().get();
      PyTypeObject* type = class_of_code(frame.pycode());
      const char* what = nullptr;
      if (PyErr_GivenExceptionMatches(exception, PyExc_StopIteration))
        what = "StopIteration";
      else if (type == &PyAsyncGen_Type && PyErr_GivenExceptionMatches(exception, PyExc_StopAsyncIteration))
        what = "StopAsyncIteration";
      if (!what || is_prelude_code(frame.pycode())) return Flow::Next;
      PyErr_Restore(Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(exception))), Py_NewRef(exception),
                    PyException_GetTraceback(exception));
      raise_runtime_error(fmt::format("{} raised {}", name_of(type), what));
      Ref error_type, error, traceback;
      PyErr_Fetch(error_type.out(), error.out(), traceback.out());
      stack.back() = std::move(error);
      return Flow::Next;
    }
    case Op::CleanupThrow: {
      // Stack: the receiver, the value that was sent into it last, the exception that it raised.
      Ref exception = pop(frame);
      if (!PyErr_GivenExceptionMatches(exception.get(), PyExc_StopIteration)) {
        PyErr_Restore(Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(exception.get()))),
                      exception.new_reference(), PyException_GetTraceback(exception.get()));
        return Flow::Raised;
      }
      pop(frame);
      stack.back() = Ref::borrow(Py_None);
      stack.push_back(Ref::borrow(reinterpret_cast<PyStopIterationObject*>(exception.get())->value));
      return Flow::Next;
    }
    default:
      interpreter.stop("an instruction of a coroutine is not captured");
  }
}

}  // namespace oxy::eval
