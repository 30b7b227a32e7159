// Lists, tuples, dicts, sets and iteration.
#include "eval/objects/containers.h"

#include <fmt/format.h>

#include <array>

#include "cpy/dict.h"
#include "cpy/set.h"
#include "eval/externals/admission.h"
#include "eval/externals/constants.h"
#include "eval/externals/external_containers.h"
#include "eval/externals/hashing.h"
#include "eval/externals/own_code.h"
#include "eval/externals/plain.h"
#include "eval/externals/type_lookup.h"
#include "eval/numbers/number_operands.h"
#include "eval/numbers/numpy_scalars.h"
#include "eval/numbers/symbolic_integer.h"
#include "eval/numbers/symbolic_size.h"
#include "eval/numbers/varying_number.h"
#include "eval/objects/attributes.h"
#include "eval/objects/comparisons.h"
#include "eval/objects/container_methods.h"
#include "eval/objects/operators.h"
#include "eval/objects/taking_items.h"
#include "eval/python/objects.h"
#include "eval/state/evaluation.h"
#include "eval/state/generator.h"
#include "eval/state/interpreter.h"
#include "eval/torch/tensor_keys.h"
#include "eval/torch/torch_call.h"
#include "eval/treatment/library_code.h"
#include "guards/constants.h"
#include "runtime/values/tensor_object.h"
#include "trace/tensors/trace_tensor.h"

namespace oxy::eval {

using guards::CheckKind;
using guards::kNoSource;

Ref make_slice(Interpreter& interpreter, PyObject* start, PyObject* stop, PyObject* step) {
  std::array<Ref, 3> parts;
  std::ranges::transform(std::array{start, stop, step}, parts.begin(), [&](PyObject* part) {
    if (!part) return Ref();
    // What is sliced decides whether it takes symbols.
    return is_symbolic_integer(interpreter, part) ? Ref::borrow(part) : known(interpreter, part, "a slice");
  });
  return Ref::steal(PySlice_New(parts[0].get(), parts[1].get(), parts[2].get()));
}

bool truth(Interpreter& interpreter, PyObject* object, bool* error) {
  if (object == Py_True) return true;
  if (object == Py_False || object == Py_None) return false;
  if (const std::optional<sym::Condition> condition = undecided_truth(interpreter, object))
    return decide(interpreter, *condition);
  if (is_varying_number(object)) {
    const Arguments arguments{{Ref::borrow(object)}, {}};
    if (const auto known = call_on_varying(interpreter, reinterpret_cast<PyObject*>(&PyBool_Type), arguments))
      return *known == Py_True;
    return PyObject_IsTrue(constant_of(interpreter, object).get()) == 1;
  }
  if (trace::is_trace_tensor(object)) {
    Ref result = torch_result(interpreter, [&] {
      const int value = PyObject_IsTrue(object);
      return value < 0 ? Ref() : Ref::borrow(value ? Py_True : Py_False);
    });
    return result == Py_True;
  }
  if (interpreter.externals.is_external(object) && is_builtin_container(object))
    return size_of(interpreter, object) != 0;
  if (guards::is_numpy_scalar(object)) return PyObject_IsTrue(known_scalar(interpreter, object).get()) == 1;
  for (const char* name : {"__bool__", "__len__"}) {
    if (!has_python_special(interpreter, object, name)) continue;
    const bool is_length = std::string_view(name) == "__len__";
    const auto* number = Py_TYPE(object)->tp_as_number;
    if (is_length && number && number->nb_bool) break;  // nb_bool goes before the length
    const Ref result =
        is_length ? length_of(interpreter, object) : call_special(interpreter, object, name, &PyBool_Type);
    if (!result) {
      *error = true;
      return false;
    }
    return truth(interpreter, result.get(), error);
  }
  if (interpreter.externals.is_external(object) && !is_identity_object(object) &&
      (Py_TYPE(object)->tp_as_sequence || Py_TYPE(object)->tp_as_mapping || Py_TYPE(object)->tp_as_number)) {
    auto* number = Py_TYPE(object)->tp_as_number;
    auto* sequence = Py_TYPE(object)->tp_as_sequence;
    auto* mapping = Py_TYPE(object)->tp_as_mapping;
    if ((number && number->nb_bool) || (sequence && sequence->sq_length) || (mapping && mapping->mp_length)) {
      if (is_container(object)) return size_of(interpreter, object) != 0;
      interpreter.stop(fmt::format("the truth of an object of type {}", Py_TYPE(object)->tp_name));
    }
  }
  const int value = PyObject_IsTrue(object);
  if (value < 0) *error = true;
  return value > 0;
}

namespace {

// An index in the form in which C code may use it for a sequence.
Ref known_index(Interpreter& interpreter, PyObject* sequence, PyObject* index) {
  refuse_own_code(interpreter, index, "indexing");
  if (PySlice_Check(index) && is_deque_type(Py_TYPE(sequence))) interpreter.stop("takes a slice of a deque");
  return known(interpreter, index, "indexing");
}

}  // namespace

Ref get_item(Interpreter& interpreter, PyObject* object, PyObject* key) {
  if (trace::is_trace_tensor(object)) {
    guard_tensor_special(interpreter, object, "__getitem__");
    refuse_own_code(interpreter, key, "indexing");
    const Ref numbers = with_numbers_of_tensors(interpreter, key);
    if (!numbers) return {};
    const IndexedTensor indexed = without_symbolic_integers(interpreter, object, numbers.get());
    if (!indexed.tensor || !indexed.key) return indexed.tensor;
    const Ref index = plain(interpreter, indexed.key.get(), "indexing", ShownAs::Symbols);
    return torch_result(interpreter, "operator", "getitem", {indexed.tensor.get(), index.get()},
                        [&] { return Ref::steal(PyObject_GetItem(indexed.tensor.get(), index.get())); });
  }
  const SourceId source = interpreter.externals.source_of(object);
  if (has_python_special(interpreter, object, "__getitem__")) {
    Ref method = special_method(interpreter, object, "__getitem__");
    return method ? call_positional(interpreter, method.get(), {Ref::borrow(key)}) : Ref();
  }
  if (is_varying_number(key)) return get_item(interpreter, object, constant_of(interpreter, key).get());
  if (!PySlice_Check(object) && has_varying_part(object)) {
    const Ref index = known(interpreter, key, "indexing");
    return run_on_sizes(interpreter, object, index.get(), &PyObject_GetItem);
  }
  Ref index;
  if (!PyDict_Check(object) && !PyType_Check(object))
    key = (index = known_index(interpreter, object, key)).get();
  if (PyType_Check(object)) {
    if (has_python_special(interpreter, object, "__getitem__")) interpreter.stop("indexes a class");
    if (finds_attributes_itself(interpreter, object))
      interpreter.stop("indexes a class whose metaclass finds its attributes");
    if (any_tensor(key, [](PyObject*) { return true; })) interpreter.stop("indexes a class with a tensor");
    const Ref maker = type_lookup(interpreter, reinterpret_cast<PyTypeObject*>(object),
                                  interned("__class_getitem__").get());
    if (maker && Py_TYPE(maker.get()) == &PyClassMethod_Type) {
      const Ref bound =
          bind_descriptor(interpreter, maker.get(), nullptr, reinterpret_cast<PyTypeObject*>(object));
      PyObject* const function =
          bound && PyMethod_Check(bound.get()) ? PyMethod_GET_FUNCTION(bound.get()) : nullptr;
      if (function && PyFunction_Check(function) &&
          !is_library_code(reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function))))
        return call_positional(interpreter, bound.get(), {Ref::borrow(key)});
    }
    const Ref parameter = known(interpreter, key, "a class");
    Ref made = Ref::steal(PyObject_GetItem(object, parameter.get()));
    if (!made || !is_type_expression(made.get())) return made;
    // typing caches expressions with hashable parameters, and gives later calls the same object.
    const bool is_remembered = lasts(interpreter, parameter.get()) && PyObject_Hash(parameter.get()) != -1;
    PyErr_Clear();
    if (!is_remembered) interpreter.stop("makes a type expression that is another one at each call");
    return pin(interpreter, made.get());
  }
  if (PyDict_Check(object)) {
    if (source != kNoSource) return read_entry_or_make(interpreter, object, key);
    Ref own = own_key(interpreter, key);
    if (!is_dict_like(object) && has_python_special(interpreter, object, "__missing__")) {
      if (PyObject* value = PyDict_GetItemWithError(object, own.get())) return Ref::borrow(value);
      if (PyErr_Occurred()) return {};
      Ref method = special_method(interpreter, object, "__missing__");
      return call_positional(interpreter, method.get(), {Ref::borrow(key)});
    }
    if (is_defaultdict_type(Py_TYPE(object))) {
      if (PyObject* value = PyDict_GetItemWithError(object, own.get())) return Ref::borrow(value);
      if (PyErr_Occurred()) return {};
      Ref factory = Ref::steal(PyObject_GetAttrString(object, "default_factory"));
      if (factory != Py_None) {
        Ref value = call_positional(interpreter, factory.get(), {});
        return value && set_item(interpreter, object, key, value.get()) ? value : Ref();
      }
    }
    return Ref::steal(PyObject_GetItem(object, own.get()));
  }
  const Shadow* changed = source == kNoSource ? nullptr : interpreter.shadows.find(object);
  const bool sequence = PyList_Check(object) || is_deque_type(Py_TYPE(object));
  if (sequence && source != kNoSource && (!PyList_Check(object) || (changed && changed->copy))) {
    if (PySlice_Check(key)) return Ref::steal(PyObject_GetItem(materialize(interpreter, object).get(), key));
    // Items that were appended to a list leave the others in their places.
    const Py_ssize_t index = PyLong_Check(key) ? PyLong_AsSsize_t(key) : -1;
    PyErr_Clear();
    const bool untouched = PyList_Check(object) && !changed->whole && !changed->emptied && index >= 0 &&
                           index < PyList_GET_SIZE(object);
    if (!untouched) {
      Ref item = Ref::steal(PyObject_GetItem(known_length(interpreter, object).copy.get(), key));
      return item ? read_item(interpreter, item.get()) : Ref();
    }
  }
  if ((PyList_Check(object) || PyTuple_Check(object)) && source != kNoSource && !guards::is_value(object)) {
    if (PyLong_Check(key) || PyIndex_Check(key)) {
      if (changed && changed->emptied) {
        PyErr_SetString(PyExc_IndexError, "list index out of range");
        return {};
      }
      const Py_ssize_t size = PySequence_Fast_GET_SIZE(object);
      Py_ssize_t index = PyNumber_AsSsize_t(key, PyExc_IndexError);
      if (index == -1 && PyErr_Occurred()) return {};
      if (index < 0 || index >= size) interpreter.guards().require(source, CheckKind::Length, nullptr, size);
      if (index < 0) index += size;
      if (index < 0 || index >= size) {
        PyErr_SetString(PyExc_IndexError,
                        PyList_Check(object) ? "list index out of range" : "tuple index out of range");
        return {};
      }
      const auto i = static_cast<int32_t>(index);
      return admit(interpreter, PySequence_Fast_GET_ITEM(object, index),
                   PyList_Check(object) ? interpreter.guards().list_item(source, i)
                                        : interpreter.guards().tuple_item(source, i));
    }
    Ref copy = materialize(interpreter, object);
    Ref part = Ref::steal(PyObject_GetItem(copy.get(), key));
    return part == copy && PyTuple_CheckExact(object) ? Ref::borrow(object) : part;
  }
  if (source != kNoSource && !is_identity_object(object))
    interpreter.stop(fmt::format("indexes an object of type {}", Py_TYPE(object)->tp_name));
  Ref plain_key = PyTuple_Check(key) ? plain(interpreter, key, "indexing") : Ref::borrow(key);
  return Ref::steal(PyObject_GetItem(object, plain_key.get()));
}

namespace {

bool set_elements(Interpreter& interpreter, PyObject* tensor, PyObject* key, PyObject* value) {
  const Ref numbers = with_numbers_of_tensors(interpreter, key);
  if (!numbers) return false;
  const auto& [target, rest] = without_symbolic_integers(interpreter, tensor, numbers.get());
  if (!target) return false;
  const Ref index =
      rest ? plain(interpreter, rest.get(), "indexing", ShownAs::Symbols) : Ref::borrow(Py_Ellipsis);
  std::optional<Ref> item;
  if (is_varying_number(value)) item = as_element(interpreter, value, runtime::tensor_of(tensor));
  if (!item) item = plain(interpreter, value, "assignment to elements");
  return static_cast<bool>(
      torch_result(interpreter, "operator", "setitem", {target.get(), index.get(), item->get()}, [&] {
        const trace::StorageIsAskedFor asked;  // PyTorch asks whether the item shares the tensor's storage
        return PyObject_SetItem(target.get(), index.get(), item->get()) < 0 ? Ref() : Ref::borrow(Py_None);
      }));
}

}  // namespace

bool set_item(Interpreter& interpreter, PyObject* object, PyObject* key, PyObject* value) {
  if (trace::is_trace_tensor(object)) return set_elements(interpreter, object, key, value);
  if (has_python_special(interpreter, object, "__setitem__")) {
    Ref method = special_method(interpreter, object, "__setitem__");
    return method && call_positional(interpreter, method.get(), {Ref::borrow(key), Ref::borrow(value)});
  }
  if (is_varying_number(key))
    return set_item(interpreter, object, constant_of(interpreter, key).get(), value);
  Ref index;
  if (!PyDict_Check(object)) key = (index = known_index(interpreter, object, key)).get();
  if (interpreter.externals.is_external(object)) {
    Arguments arguments{{Ref::borrow(key), Ref::borrow(value)}, {}};
    if (auto done = call_container_method(interpreter, object, "__setitem__", arguments))
      return static_cast<bool>(*done);
    interpreter.stop(
        fmt::format("writes to an object of type {} made before the call", Py_TYPE(object)->tp_name));
  }
  if (PyDict_Check(object)) {
    const Ref own = key_of(interpreter, key);
    if (own != key) return set_item(interpreter, object, own.get(), value);
  }
  if (PyList_Check(object) && PySlice_Check(key)) return assign_slice(interpreter, object, key, value);
  return PyObject_SetItem(object, key, value) == 0;
}

// Before Python 3.13 the bounds are computed before the new items are taken.
bool assign_slice(Interpreter& interpreter, PyObject* list, PyObject* slice, PyObject* iterable) {
  constexpr bool kItemsFirst = PY_VERSION_HEX >= 0x030D0000;
  Py_ssize_t start = 0, stop_at = 0, step = 0;
  if (PySlice_Unpack(slice, &start, &stop_at, &step) < 0) return false;
  const Py_ssize_t size = PyList_GET_SIZE(list);
  PySlice_AdjustIndices(size, &start, &stop_at, step);
  const Ref items =
      iterable == list ? Ref::steal(PyList_GetSlice(list, 0, size)) : fast_sequence(interpreter, iterable);
  if (!items) return false;
  if (kItemsFirst) return PyObject_SetItem(list, slice, items.get()) == 0;
  if (step == 1) return PyList_SetSlice(list, start, std::max(start, stop_at), items.get()) == 0;
  if (PyList_GET_SIZE(list) != size)
    interpreter.stop("a list changes while items are taken for a slice of it");
  return PyObject_SetItem(list, slice, items.get()) == 0;
}

bool delete_item(Interpreter& interpreter, PyObject* object, PyObject* key) {
  if (has_python_special(interpreter, object, "__delitem__")) {
    Ref method = special_method(interpreter, object, "__delitem__");
    return method && call_positional(interpreter, method.get(), {Ref::borrow(key)});
  }
  if (is_varying_number(key)) return delete_item(interpreter, object, constant_of(interpreter, key).get());
  Ref index;
  if (!PyDict_Check(object)) key = (index = known_index(interpreter, object, key)).get();
  if (interpreter.externals.is_external(object)) {
    Arguments arguments{{Ref::borrow(key)}, {}};
    if (auto done = call_container_method(interpreter, object, "__delitem__", arguments))
      return static_cast<bool>(*done);
    interpreter.stop(
        fmt::format("deletes from an object of type {} made before the call", Py_TYPE(object)->tp_name));
  }
  return PyObject_DelItem(object, PyDict_Check(object) ? key_of(interpreter, key).get() : key) == 0;
}

namespace {

// Whether items of the container are compared with a number that varies, one by one: guards say no more of
// the number then. An own set holds ints alone.
bool compares_items(Interpreter& interpreter, PyObject* container) {
  constexpr Py_ssize_t kFew = 16;
  const bool is_sequence = PyTuple_CheckExact(container) || PyList_CheckExact(container);
  const bool is_set = PyAnySet_CheckExact(container) && !interpreter.externals.is_external(container);
  if ((!is_sequence && !is_set) || PyObject_Size(container) > kFew) return false;
  if (is_sequence) return true;
  const Ref items = Ref::steal(PySequence_List(container));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i)
    if (!PyLong_CheckExact(PyList_GET_ITEM(items.get(), i))) return false;
  return true;
}

}  // namespace

int contains(Interpreter& interpreter, PyObject* container, PyObject* item) {
  if (trace::is_trace_tensor(container))
    interpreter.stop("tests whether a tensor contains a value", "the answer depends on data");
  const SourceId source = interpreter.externals.source_of(container);
  if (has_python_special(interpreter, container, "__contains__")) {
    Ref method = special_method(interpreter, container, "__contains__");
    Ref result = method ? call_positional(interpreter, method.get(), {Ref::borrow(item)}) : Ref();
    if (!result) return -1;
    bool error = false;
    const bool found = truth(interpreter, result.get(), &error);
    return error ? -1 : found;
  }
  const bool varies = is_varying_number(item);
  if (varies && !compares_items(interpreter, container))
    return contains(interpreter, container, constant_of(interpreter, item).get());
  if (PyAnySet_Check(container) && PySet_Check(item)) interpreter.stop("looks for a set in a set");
  if ((PyDict_Check(container) || PySet_Check(container)) && source != kNoSource)
    return has_key(interpreter, container, item);
  Ref copy = materialize(interpreter, container);
  bool error = false;
  const auto matches = [&](const Ref& element) { return is_or_equals(interpreter, element.get(), item); };
  if (varies && PyAnySet_Check(copy.get())) copy = Ref::steal(PySequence_List(copy.get()));
  if (is_deque_type(Py_TYPE(copy.get())) && !has_python_special(interpreter, copy.get(), "__iter__"))
    copy = Ref::steal(PySequence_List(copy.get()));
  if (PyList_Check(copy.get()) || PyTuple_Check(copy.get())) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(copy.get()); ++i)
      if (const int found = matches(Ref::borrow(PySequence_Fast_GET_ITEM(copy.get(), i))); found != 0)
        return found;
    return 0;
  }
  if (is_coroutine(copy.get())) interpreter.stop("tests membership in a coroutine");
  const auto* sequence = Py_TYPE(copy.get())->tp_as_sequence;
  const bool tests_itself = sequence && sequence->sq_contains;
  if (is_generator(copy.get()) || is_builtin_iterator(copy.get()) || PyDictValues_Check(copy.get()) ||
      (has_python_special(interpreter, copy.get(), "__iter__") && !tests_itself)) {
    const Ref iterator = get_iterator(interpreter, copy.get());
    if (!iterator && PyErr_ExceptionMatches(PyExc_TypeError))
      PyErr_Format(PyExc_TypeError, "argument of type '%.200s' is not iterable",
                   Py_TYPE(copy.get())->tp_name);
    if (!iterator) return -1;
    while (const Ref element = iterate(interpreter, iterator.get(), &error))
      if (const int found = matches(element); found != 0) return found;
    return error ? -1 : 0;
  }
  if (has_python_special(interpreter, copy.get(), "__getitem__"))
    interpreter.stop("tests membership in an object by its __getitem__");
  if (interpreter.externals.is_external(copy.get()) && !is_identity_object(copy.get()) &&
      !guards::is_constant(copy.get()))
    interpreter.stop(fmt::format("tests membership in an object of type {}", Py_TYPE(container)->tp_name));
  if (hashes_itself(interpreter, item) ||
      (!compares_in_library(item) && has_python_special(interpreter, item, "__eq__")))
    interpreter.stop("tests membership of an object that hashes itself");
  return PySequence_Contains(copy.get(), key_of(interpreter, item).get());
}

Ref get_iterator(Interpreter& interpreter, PyObject* object) {
  if (is_generator(object) || is_builtin_iterator(object)) return Ref::borrow(object);
  if (is_coroutine(object)) interpreter.stop("iterates over a coroutine");
  if (trace::is_trace_tensor(object)) {  // what Tensor.__iter__ does
    Ref unbind = Ref::steal(PyObject_GetAttrString(object, "unbind"));
    Ref parts = call_torch(interpreter, unbind.get(), {});
    return Ref::steal(PyObject_GetIter(parts.get()));
  }
  if (has_python_special(interpreter, object, "__iter__")) {
    Ref method = special_method(interpreter, object, "__iter__");
    Ref iterator = method ? call_positional(interpreter, method.get(), {}) : Ref();
    if (iterator && !is_generator(iterator.get()) && !PyIter_Check(iterator.get()) &&
        !has_python_special(interpreter, iterator.get(), "__next__")) {
      PyErr_Format(PyExc_TypeError, "iter() returned non-iterator of type '%.100s'",
                   Py_TYPE(iterator.get())->tp_name);
      return {};
    }
    return iterator;
  }
  Ref copy = materialize(interpreter, object);
  if (Shadow* s = interpreter.shadows.find(object)) s->iterated = true;
  if (interpreter.externals.is_external(copy.get()) && !guards::is_constant(copy.get()) &&
      !PyRange_Check(copy.get()) && !PyType_Check(copy.get()) && !is_value_object(copy.get()))
    interpreter.stop(fmt::format("iterates over an object of type {}", Py_TYPE(object)->tp_name));
  if (!Py_TYPE(copy.get())->tp_iter && has_python_special(interpreter, object, "__getitem__"))
    interpreter.stop("iterates over an object by its __getitem__");
  return Ref::steal(PyObject_GetIter(copy.get()));
}

Ref iterate(Interpreter& interpreter, PyObject* iterator, bool* error, Ref* value_of_end) {
  Ref hold = Ref::borrow(iterator);
  const auto end = [&](const Ref& value) {
    *error = !value;
    if (value && value_of_end) *value_of_end = value;
  };
  if (is_generator(iterator)) return run_generator(interpreter, iterator, Py_None, error);
  if (is_coroutine(iterator)) interpreter.stop("iterates over a coroutine");
  if (has_python_special(interpreter, iterator, "__next__")) {
    Ref method = special_method(interpreter, iterator, "__next__");
    Ref value = method ? call_positional(interpreter, method.get(), {}) : Ref();
    if (value) return value;
    end(taken_stop_value());
    return {};
  }
  if (interpreter.externals.is_external(iterator))
    interpreter.stop("advances an iterator made before the captured region");
  if (!is_builtin_iterator(iterator))
    interpreter.stop(fmt::format("iterates with an object of type {}", Py_TYPE(iterator)->tp_name));
  if (!Py_TYPE(iterator)->tp_iternext) {
    PyErr_Format(PyExc_TypeError, "'%.200s' object is not an iterator", Py_TYPE(iterator)->tp_name);
    *error = true;
    return {};
  }
  Ref value = Ref::steal(Py_TYPE(iterator)->tp_iternext(iterator));
  if (!value && PyErr_Occurred()) end(taken_stop_value());
  return value;
}

Ref length_of(Interpreter& interpreter, PyObject* object) {
  Ref length = call_special(interpreter, object, "__len__", &PyLong_Type);
  if (!length) return {};
  if (PyLong_CheckExact(length.get())) {
    const bool fits = PyLong_AsSsize_t(length.get()) >= 0;
    PyErr_Clear();
    if (!fits) interpreter.stop("__len__() of an object returns what is no length");
    return length;
  }
  const Ref zero = Ref::steal(PyLong_FromLong(0));
  bool error = false;
  const Ref negative = compare(interpreter, length.get(), zero.get(), Py_LT);
  if (!negative || truth(interpreter, negative.get(), &error))
    interpreter.stop("__len__() of an object returns what is no length");
  return length;
}

bool ask_length_hint(Interpreter& interpreter, PyObject* iterable) {
  const auto is_refused = [&](const Ref& answer) {
    if (answer || !PyErr_ExceptionMatches(PyExc_TypeError)) return false;
    PyErr_Clear();
    return true;
  };
  if (has_python_special(interpreter, iterable, "__len__")) {
    const Ref length = length_of(interpreter, iterable);
    if (!is_refused(length)) return static_cast<bool>(length);
  }
  const auto* sequence = Py_TYPE(iterable)->tp_as_sequence;
  const auto* mapping = Py_TYPE(iterable)->tp_as_mapping;
  const bool has_length = (sequence && sequence->sq_length) || (mapping && mapping->mp_length);
  const bool is_refused_length =
      has_python_special(interpreter, iterable, "__len__");  // which has just raised a TypeError
  if ((has_length && !is_refused_length) || !has_python_special(interpreter, iterable, "__length_hint__"))
    return true;
  const Ref method = special_method(interpreter, iterable, "__length_hint__");
  const Ref hint = method ? call_positional(interpreter, method.get(), {}) : Ref();
  if (is_refused(hint)) return true;
  const bool is_hint = !hint || hint == Py_NotImplemented || is_varying_number(hint.get()) ||
                       (PyLong_CheckExact(hint.get()) && PyLong_AsSsize_t(hint.get()) >= 0);
  if (!is_hint) interpreter.stop("__length_hint__() of an object returns what is no length");
  return static_cast<bool>(hint);
}

}  // namespace oxy::eval
