// Calls and function objects.
#include "eval/machine/step_call.h"

#include <fmt/format.h>

#include "eval/externals/external_containers.h"
#include "eval/externals/type_lookup.h"
#include "eval/numbers/varying_number.h"
#include "eval/objects/instance_checks.h"
#include "eval/objects/taking_items.h"
#include "eval/python/objects.h"
#include "eval/state/evaluation.h"
#include "eval/state/interpreter.h"
#include "eval/state/stack.h"

namespace oxy::eval {

using bytecode::Instruction;
using bytecode::Op;

Flow step_call(Interpreter& interpreter, Frame& frame, const Instruction& in) {
  auto& stack = frame.stack;
  auto push = [&](Ref value) {
    if (!value) return Flow::Raised;
    stack.push_back(std::move(value));
    return Flow::Next;
  };
  switch (in.op) {
    case Op::Call: {
      Ref names;
      if (in.arg2 == -2)
        names = pop(frame);
      else if (in.arg2 >= 0)
        names = Ref::borrow(PyTuple_GET_ITEM(frame.pycode()->co_consts, in.arg2));
      const size_t keyword_count = names ? static_cast<size_t>(PyTuple_GET_SIZE(names.get())) : 0;
      const auto count = static_cast<size_t>(in.arg);
      const size_t base = stack.size() - count - 2;
      Arguments arguments;
      Ref callable;
      Ref &lower = stack[base], &upper = stack[base + 1];
      Ref self;
      if constexpr (kCallableFirst) {
        callable = std::move(lower);
        self = std::move(upper);
      } else if (lower) {
        callable = std::move(lower);
        self = std::move(upper);
      } else {
        callable = std::move(upper);
      }
      if (self && trace::is_trace_tensor(self.get()) && Py_IS_TYPE(callable.get(), &PyMethodDescr_Type)) {
        auto* const type = reinterpret_cast<PyObject*>(Py_TYPE(self.get()));
        callable = Ref::steal(PyMethodDescr_Type.tp_descr_get(callable.get(), self.get(), type));
        if (!callable) return Flow::Raised;
        self = {};
      }
      if (self) arguments.positional.push_back(std::move(self));
      for (size_t i = 0; i < count; ++i) {
        Ref& value = stack[base + 2 + i];
        if (i < count - keyword_count)
          arguments.positional.push_back(std::move(value));
        else
          arguments.keywords.emplace_back(
              Ref::borrow(
                  PyTuple_GET_ITEM(names.get(), static_cast<Py_ssize_t>(i - (count - keyword_count)))),
              std::move(value));
      }
      stack.resize(base);
      return push(call(interpreter, callable.get(), std::move(arguments)));
    }
    case Op::CallFunctionEx: {
      Ref keywords = in.arg ? pop(frame) : Ref();
      Ref args = pop(frame);
      Ref callable;
      if constexpr (kCallableFirst) {
        pop(frame);
        callable = pop(frame);
      } else {
        callable = pop(frame);
        pop(frame);
      }
      Arguments arguments;
      Ref items = drain(interpreter, args.get(), true);
      if (!items && PyErr_ExceptionMatches(PyExc_TypeError) && !Py_TYPE(args.get())->tp_iter &&
          !PySequence_Check(args.get())) {
        PyErr_Clear();
        interpreter.stop(
            "calls with * of what cannot be iterated over");  // CPython's error names the function
      }
      if (!items) return Flow::Raised;
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i)
        arguments.positional.push_back(Ref::borrow(PyList_GET_ITEM(items.get(), i)));
      if (keywords) {
        Ref dict = materialize(interpreter, keywords.get());
        if (!PyDict_Check(dict.get())) interpreter.stop("calls with ** of an object that is not a dict");
        PyObject *key = nullptr, *value = nullptr;
        Py_ssize_t position = 0;
        while (PyDict_Next(dict.get(), &position, &key, &value)) {
          if (!PyUnicode_Check(key)) {
            PyErr_SetString(PyExc_TypeError, "keywords must be strings");
            return Flow::Raised;
          }
          arguments.keywords.emplace_back(Ref::borrow(key), Ref::borrow(value));
        }
      }
      return push(call(interpreter, callable.get(), std::move(arguments)));
    }
    case Op::MakeFunction: {
      Ref code = pop(frame);
      Ref function = Ref::steal(PyFunction_New(code.get(), frame.globals.get()));
      if (!function) return Flow::Raised;
      auto* object = reinterpret_cast<PyFunctionObject*>(function.get());
      // Defaults that an earlier segment has left on the stack may be external. They become part of a
      // function without a source, so they are read now.
      const auto pop_known = [&] { return materialize(interpreter, pop(frame).get()).release(); };
      if (in.arg & 8) object->func_closure = pop_known();
      if (in.arg & 4) object->func_annotations = pop_known();
      if (in.arg & 2) object->func_kwdefaults = pop_known();
      if (in.arg & 1) object->func_defaults = pop_known();
      interpreter.calls.fresh_functions.insert(function.get());
      interpreter.externals.keep_alive.push_back(function);
      return push(std::move(function));
    }
    case Op::SetFunctionAttribute: {
      Ref function = pop(frame), value = pop(frame);
      if (!interpreter.calls.fresh_functions.contains(function.get()))
        interpreter.stop("completes a function that was made before");
      auto* object = reinterpret_cast<PyFunctionObject*>(function.get());
      PyObject** field = in.arg == 8   ? &object->func_closure
                         : in.arg == 4 ? &object->func_annotations
                         : in.arg == 2 ? &object->func_kwdefaults
                                       : &object->func_defaults;
      Py_XSETREF(*field, materialize(interpreter, value.get()).release());
      return push(std::move(function));
    }
    default:
      interpreter.stop(fmt::format("instruction {} is not captured", bytecode::name(in.op)));
  }
}

Flow step_match(Interpreter& interpreter, Frame& frame, const Instruction& in) {
  auto& stack = frame.stack;
  PyObject* subject = stack.back().get();
  switch (in.op) {
    case Op::GetLen: {
      Ref copy = materialize(interpreter, subject);
      const Py_ssize_t length = PyObject_Size(copy.get());
      if (length < 0) return Flow::Raised;
      stack.push_back(Ref::steal(PyLong_FromSsize_t(length)));
      return Flow::Next;
    }
    case Op::MatchMapping:
    case Op::MatchSequence: {
      const unsigned long flag = in.op == Op::MatchMapping ? Py_TPFLAGS_MAPPING : Py_TPFLAGS_SEQUENCE;
      stack.push_back(Ref::borrow(PyType_HasFeature(Py_TYPE(subject), flag) ? Py_True : Py_False));
      return Flow::Next;
    }
    case Op::MatchKeys: {
      PyObject* keys = subject;
      PyObject* mapping = stack[stack.size() - 2].get();
      if (has_python_special(interpreter, mapping, "get"))
        interpreter.stop("matches a mapping with a get() of its own");
      Ref copy = materialize(interpreter, mapping);
      if (!PyDict_Check(copy.get())) interpreter.stop("matches a mapping that is not a dict");
      Ref values = Ref::steal(PyTuple_New(PyTuple_GET_SIZE(keys)));
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keys); ++i) {
        PyObject* value = PyDict_GetItemWithError(copy.get(), PyTuple_GET_ITEM(keys, i));
        if (!value) {
          if (PyErr_Occurred()) return Flow::Raised;
          stack.push_back(Ref::borrow(Py_None));
          return Flow::Next;
        }
        PyTuple_SET_ITEM(values.get(), i, Py_NewRef(value));
      }
      stack.push_back(std::move(values));
      return Flow::Next;
    }
    case Op::MatchClass: {
      Ref names = pop(frame), type = pop(frame), object = pop(frame);
      const int match = instance_of(interpreter, object.get(), type.get());
      if (match < 0) return Flow::Raised;
      if (!match) {
        stack.push_back(Ref::borrow(Py_None));
        return Flow::Next;
      }
      auto* const matched = reinterpret_cast<PyTypeObject*>(type.get());
      std::vector<Ref> values;
      Ref match_args;
      if (in.arg > 0) {
        match_args = get_attribute(interpreter, type.get(), interned("__match_args__").get());
        if (!match_args && !PyErr_ExceptionMatches(PyExc_AttributeError)) return Flow::Raised;
        PyErr_Clear();
        if (match_args && !PyTuple_CheckExact(match_args.get())) {
          PyErr_Format(PyExc_TypeError, "%s.__match_args__ must be a tuple (got %s)", matched->tp_name,
                       Py_TYPE(match_args.get())->tp_name);
          return Flow::Raised;
        }
        const Py_ssize_t allowed = match_args ? PyTuple_GET_SIZE(match_args.get())
                                              : PyType_HasFeature(matched, _Py_TPFLAGS_MATCH_SELF);
        if (allowed < in.arg) {
          PyErr_Format(PyExc_TypeError, "%s() accepts %zd positional sub-pattern%s (%d given)",
                       matched->tp_name, allowed, allowed == 1 ? "" : "s", in.arg);
          return Flow::Raised;
        }
        if (!match_args) values.push_back(object);
      }
      const Ref seen = Ref::steal(PySet_New(nullptr));
      auto add = [&](PyObject* name) {
        if (!PyUnicode_CheckExact(name)) {
          PyErr_Format(PyExc_TypeError, "__match_args__ elements must be strings (got %s)",
                       Py_TYPE(name)->tp_name);
          return false;
        }
        if (PySet_Contains(seen.get(), name) == 1) {
          PyErr_Format(PyExc_TypeError, "%s() got multiple sub-patterns for attribute %R", matched->tp_name,
                       name);
          return false;
        }
        PySet_Add(seen.get(), name);
        Ref value = get_attribute(interpreter, object.get(), name);
        if (!value) return false;
        values.push_back(std::move(value));
        return true;
      };
      bool missing = false;
      if (match_args)
        for (Py_ssize_t i = 0; i < in.arg && !missing; ++i)
          missing = !add(PyTuple_GET_ITEM(match_args.get(), i));
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names.get()) && !missing; ++i)
        missing = !add(PyTuple_GET_ITEM(names.get(), i));
      if (missing) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return Flow::Raised;
        PyErr_Clear();
        stack.push_back(Ref::borrow(Py_None));
        return Flow::Next;
      }
      Ref tuple = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(values.size())));
      for (size_t i = 0; i < values.size(); ++i)
        PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), values[i].release());
      stack.push_back(std::move(tuple));
      return Flow::Next;
    }
    default:
      interpreter.stop(fmt::format("instruction {} is not captured", bytecode::name(in.op)));
  }
}

}  // namespace oxy::eval
