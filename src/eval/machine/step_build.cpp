// Building and unpacking containers.
#include "eval/machine/step_build.h"

#include <fmt/format.h>

#include "eval/externals/external_containers.h"
#include "eval/externals/hashing.h"
#include "eval/externals/own_code.h"
#include "eval/externals/type_lookup.h"
#include "eval/numbers/varying_number.h"
#include "eval/objects/container_methods.h"
#include "eval/objects/containers.h"
#include "eval/objects/merging.h"
#include "eval/objects/taking_items.h"
#include "eval/python/objects.h"
#include "eval/state/evaluation.h"
#include "eval/state/interpreter.h"
#include "eval/state/stack.h"

namespace oxy::eval {

using bytecode::Instruction;
using bytecode::Op;

Flow step_build(Interpreter& interpreter, Frame& frame, const Instruction& in) {
  auto& stack = frame.stack;
  const auto count = static_cast<size_t>(in.arg);
  auto push = [&](Ref value) {
    if (!value) return Flow::Raised;
    stack.push_back(std::move(value));
    return Flow::Next;
  };
  auto take = [&](size_t n) {
    std::vector<Ref> items(std::make_move_iterator(stack.end() - static_cast<std::ptrdiff_t>(n)),
                           std::make_move_iterator(stack.end()));
    stack.resize(stack.size() - n);
    return items;
  };
  auto container = [&]() { return stack[stack.size() - count].get(); };
  // Adds to an external container: a display that was begun before the segment.
  auto add_to_external = [&](const char* method, Ref value) {
    Arguments arguments{{std::move(value)}, {}};
    auto done = call_container_method(interpreter, container(), method, arguments);
    if (!done) interpreter.stop("adds to a container made before the captured region");
    return *done ? Flow::Next : Flow::Raised;
  };
  switch (in.op) {
    case Op::BuildTuple:
    case Op::BuildList: {
      std::vector<Ref> items = take(count);
      const bool tuple = in.op == Op::BuildTuple;
      Ref result = Ref::steal(tuple ? PyTuple_New(in.arg) : PyList_New(in.arg));
      for (size_t i = 0; i < count; ++i) {
        if (tuple)
          PyTuple_SET_ITEM(result.get(), i, items[i].release());
        else
          PyList_SET_ITEM(result.get(), i, items[i].release());
      }
      return push(std::move(result));
    }
    case Op::BuildSet: {
      std::vector<Ref> items = take(count);
      Ref result = Ref::steal(PySet_New(nullptr));
      for (Ref& item : items) {
        item = key_of(interpreter, item.get());
        if (PySet_Add(result.get(), item.get()) < 0) return Flow::Raised;
      }
      return push(std::move(result));
    }
    case Op::BuildMap: {
      std::vector<Ref> items = take(2 * count);
      Ref result = Ref::steal(PyDict_New());
      for (size_t i = 0; i < count; ++i)
        if (!set_item(interpreter, result.get(), items[2 * i].get(), items[2 * i + 1].get()))
          return Flow::Raised;
      return push(std::move(result));
    }
    case Op::BuildConstKeyMap: {
      Ref keys = pop(frame);
      std::vector<Ref> items = take(count);
      Ref result = Ref::steal(PyDict_New());
      for (size_t i = 0; i < count; ++i)
        if (PyDict_SetItem(result.get(), PyTuple_GET_ITEM(keys.get(), i), items[i].get()) < 0)
          return Flow::Raised;
      return push(std::move(result));
    }
    case Op::BuildString: {
      std::vector<Ref> items = take(count);
      Ref list = Ref::steal(PyList_New(in.arg));
      for (size_t i = 0; i < count; ++i) PyList_SET_ITEM(list.get(), i, items[i].release());
      Ref empty = Ref::steal(PyUnicode_FromStringAndSize("", 0));
      return push(Ref::steal(PyUnicode_Join(empty.get(), list.get())));
    }
    case Op::BuildSlice: {
      std::vector<Ref> items = take(count);
      return push(
          make_slice(interpreter, items[0].get(), items[1].get(), count == 3 ? items[2].get() : nullptr));
    }
    case Op::ListAppend: {
      Ref item = pop(frame);
      if (interpreter.externals.is_external(container())) return add_to_external("append", std::move(item));
      return PyList_Append(container(), item.get()) == 0 ? Flow::Next : Flow::Raised;
    }
    case Op::SetAdd: {
      Ref item = constant_of(interpreter, pop(frame).get());
      if (interpreter.externals.is_external(container())) return add_to_external("add", std::move(item));
      item = key_of(interpreter, item.get());
      return PySet_Add(container(), item.get()) == 0 ? Flow::Next : Flow::Raised;
    }
    case Op::MapAdd: {
      Ref value = pop(frame), key = pop(frame);
      return set_item(interpreter, container(), key.get(), value.get()) ? Flow::Next : Flow::Raised;
    }
    case Op::ListExtend: {
      Ref iterable = pop(frame);
      if (interpreter.externals.is_external(container()))
        return add_to_external("extend", std::move(iterable));
      Ref items = drain(interpreter, iterable.get(), true);
      if (!items) {
        if (PyErr_ExceptionMatches(PyExc_TypeError) && !Py_TYPE(iterable.get())->tp_iter &&
            !PySequence_Check(iterable.get()))
          PyErr_Format(PyExc_TypeError, "Value after * must be an iterable, not %.200s",
                       Py_TYPE(iterable.get())->tp_name);
        return Flow::Raised;
      }
      PyObject* list = container();
      return PyList_SetSlice(list, PyList_GET_SIZE(list), PyList_GET_SIZE(list), items.get()) == 0
                 ? Flow::Next
                 : Flow::Raised;
    }
    case Op::SetUpdate: {
      Ref iterable = pop(frame);
      if (interpreter.externals.is_external(container()))
        return add_to_external("update", std::move(iterable));
      return update_set(interpreter, container(), iterable.get(), true) ? Flow::Next : Flow::Raised;
    }
    case Op::DictUpdate:
    case Op::DictMerge: {
      Ref mapping = pop(frame);
      refuse_own_iteration(interpreter, mapping.get());
      Ref copy = materialize(interpreter, mapping.get());
      const auto is_own = [&](const char* name) {
        return has_python_special(interpreter, mapping.get(), name);
      };
      const bool is_asked = PyODict_Check(mapping.get()) &&
                            (is_own("keys") || is_own("__getitem__") || is_own("__getattribute__"));
      if (is_asked) copy = mapping;
      if (!PyDict_Check(copy.get()) || is_asked) {
        if (!is_asked && !is_own("keys")) interpreter.stop("unpacks an object that is not a dict with **");
        Ref keys_method = get_attribute(interpreter, copy.get(), interned("keys").get());
        Ref keys = keys_method ? call_positional(interpreter, keys_method.get(), {}) : Ref();
        Ref key_list = keys ? drain(interpreter, keys.get()) : Ref();
        if (!key_list) return Flow::Raised;
        Ref merged = Ref::steal(PyDict_New());
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(key_list.get()); ++i) {
          PyObject* key = PyList_GET_ITEM(key_list.get(), i);
          Ref value = get_item(interpreter, copy.get(), key);
          if (!value || PyDict_SetItem(merged.get(), key, value.get()) < 0) return Flow::Raised;
        }
        copy = std::move(merged);
      }
      PyObject* dict = container();
      if (interpreter.externals.is_external(dict)) {
        if (in.op == Op::DictMerge) interpreter.stop("merges into a dict made before the captured region");
        return add_to_external("update", std::move(copy));
      }
      if (in.op == Op::DictMerge) {
        PyObject* key = nullptr;
        Py_ssize_t position = 0;
        while (PyDict_Next(copy.get(), &position, &key, nullptr)) {
          if (PyDict_Contains(dict, key) == 1)
            interpreter.stop("gives a keyword twice");  // CPython's error names the function
        }
      }
      return PyDict_Update(dict, copy.get()) == 0 ? Flow::Next : Flow::Raised;
    }
    case Op::ListToTuple: {
      Ref list = pop(frame);
      return push(Ref::steal(PyList_AsTuple(materialize(interpreter, list.get()).get())));
    }
    case Op::UnpackSequence:
    case Op::UnpackEx: {
      Ref sequence = pop(frame);
      const auto after = in.op == Op::UnpackEx ? std::optional<Py_ssize_t>(in.arg2) : std::nullopt;
      std::vector<Ref> items;
      if (!unpack(interpreter, sequence.get(), in.arg, after, &items)) return Flow::Raised;
      for (size_t i = items.size(); i-- > 0;) stack.push_back(std::move(items[i]));
      return Flow::Next;
    }
    default:
      interpreter.stop(fmt::format("instruction {} is not captured", bytecode::name(in.op)));
  }
}

}  // namespace oxy::eval
