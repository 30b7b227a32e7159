// Raising, catching, and with blocks.
#include "eval/machine/step_exception.h"

#include <fmt/format.h>

#include "cpy/generator.h"
#include "eval/externals/external_containers.h"
#include "eval/externals/type_lookup.h"
#include "eval/python/traceback.h"
#include "eval/state/evaluation.h"
#include "eval/state/interpreter.h"
#include "eval/state/stack.h"

namespace oxy::eval {

using bytecode::Instruction;
using bytecode::Op;

bool unwind(Interpreter& interpreter, Frame& frame) {
  const int32_t offset = frame.instruction().at;
  for (const bytecode::ExceptionEntry& entry : frame.code->exception_table) {
    if (offset < entry.begin || offset >= entry.end) continue;
    frame.stack.resize(static_cast<size_t>(entry.depth));
    if (entry.push_lasti) frame.stack.push_back(Ref::steal(PyLong_FromLong(offset)));
    PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback && value) PyException_SetTraceback(value, traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    if (value && interpreter.calls.raised.insert(value).second)
      interpreter.externals.keep_alive.push_back(Ref::borrow(value));
    frame.caught.push_back(value);
    frame.stack.push_back(Ref::steal(value));
    frame.next = static_cast<size_t>(frame.code->index_of_offset[static_cast<size_t>(entry.target)]);
    return true;
  }
  return false;
}

bool instantiate(Interpreter& interpreter, Ref& exception) {
  if (!PyExceptionClass_Check(exception.get())) return true;
  Ref made = call_positional(interpreter, exception.get(), {});
  if (made && !PyExceptionInstance_Check(made.get())) {
    PyErr_Format(PyExc_TypeError, "calling %R should have returned an instance of BaseException, not %R",
                 exception.get(), reinterpret_cast<PyObject*>(Py_TYPE(made.get())));
    return false;
  }
  exception = std::move(made);
  return static_cast<bool>(exception);
}

Flow step_exception(Interpreter& interpreter, Frame& frame, const Instruction& in) {
  auto& stack = frame.stack;
  switch (in.op) {
    case Op::RaiseVarargs: {
      Ref cause = in.arg >= 2 ? pop(frame) : Ref();
      Ref exception = in.arg >= 1 ? pop(frame) : Ref::steal(PyErr_GetHandledException());
      if (!exception || exception == Py_None) {
        PyErr_SetString(PyExc_RuntimeError, "No active exception to reraise");
        return Flow::Raised;
      }
      if (exception == interpreter.handled_before)
        interpreter.stop("raises again an exception caught before the captured region");
      if (!instantiate(interpreter, exception)) return Flow::Raised;
      if (!PyExceptionInstance_Check(exception.get())) {
        PyErr_SetString(PyExc_TypeError, "exceptions must derive from BaseException");
        return Flow::Raised;
      }
      if (interpreter.externals.is_external(exception.get()))
        interpreter.stop("raises an exception object made before the call");
      if (cause) {
        if (cause != Py_None && !instantiate(interpreter, cause)) return Flow::Raised;
        if (cause != Py_None && !PyExceptionInstance_Check(cause.get())) {
          PyErr_SetString(PyExc_TypeError, "exception causes must derive from BaseException");
          return Flow::Raised;
        }
        if (interpreter.externals.is_external(cause.get()))
          interpreter.stop("raises from an exception object made before the call");
        PyException_SetCause(exception.get(), cause == Py_None ? nullptr : cause.release());
      }
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.get())), exception.get());
      return Flow::Raised;
    }
    case Op::Reraise: {
      Ref exception = pop(frame);
      PyErr_Restore(Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(exception.get()))),
                    exception.new_reference(), PyException_GetTraceback(exception.get()));
      return Flow::Raised;
    }
    case Op::PushExcInfo: {
      Ref exception = pop(frame);
      Ref previous = cpy::handled_here();
      stack.push_back(previous ? std::move(previous) : Ref::borrow(Py_None));
      PyErr_SetHandledException(exception.get());
      stack.push_back(std::move(exception));
      return Flow::Next;
    }
    case Op::PopExcept: {
      Ref previous = pop(frame);
      PyErr_SetHandledException(previous == Py_None ? nullptr : previous.get());
      return Flow::Next;
    }
    case Op::CheckExcMatch: {
      const Ref classes = materialize(interpreter, pop(frame).get());
      const bool is_tuple = PyTuple_Check(classes.get());
      const Py_ssize_t count = is_tuple ? PyTuple_GET_SIZE(classes.get()) : 1;
      PyObject* exception = stack.back().get();
      guard_resolution_order(interpreter, Py_TYPE(exception));
      for (Py_ssize_t i = 0; i < count; ++i) {
        PyObject* const each = is_tuple ? PyTuple_GET_ITEM(classes.get(), i) : classes.get();
        if (PyExceptionClass_Check(each)) continue;
        PyErr_SetString(PyExc_TypeError,
                        "catching classes that do not inherit from BaseException is not allowed");
        return Flow::Raised;
      }
      stack.push_back(
          Ref::borrow(PyErr_GivenExceptionMatches(exception, classes.get()) ? Py_True : Py_False));
      return Flow::Next;
    }
    case Op::BeforeWith: {
      Ref manager = pop(frame);
      Ref enter = special_method(interpreter, manager.get(), "__enter__");
      Ref exit = enter ? special_method(interpreter, manager.get(), "__exit__") : Ref();
      if (!exit) {
        if (!PyErr_Occurred())
          PyErr_Format(PyExc_TypeError, "'%.200s' object does not support the context manager protocol%s",
                       Py_TYPE(manager.get())->tp_name, enter ? " (missed __exit__ method)" : "");
        return Flow::Raised;
      }
      Ref entered = call_positional(interpreter, enter.get(), {});
      if (!entered) return Flow::Raised;
      stack.push_back(std::move(exit));
      stack.push_back(std::move(entered));
      return Flow::Next;
    }
    case Op::WithExceptStart: {
      // exit, lasti, previous exception, exception
      Ref exception = stack.back();
      Ref exit = stack[stack.size() - 4];
      std::vector<Ref> args;
      args.push_back(Ref::borrow(reinterpret_cast<PyObject*>(Py_TYPE(exception.get()))));
      args.push_back(exception);
      args.push_back(Ref::borrow(unknown_traceback()));
      Ref result = call_positional(interpreter, exit.get(), std::move(args));
      if (!result) return Flow::Raised;
      stack.push_back(std::move(result));
      return Flow::Next;
    }
    default:
      interpreter.stop(fmt::format("instruction {} is not captured", bytecode::name(in.op)));
  }
}

}  // namespace oxy::eval
