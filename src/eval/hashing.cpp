// What C code hashes, and compares with what it has hashed: nothing in it may be looked at unguarded, and no
// code of the program's may run.
#include <fmt/format.h>

#include "eval/evaluator.h"
#include "eval/objects.h"
#include "eval/varying_number.h"
#include "guards/constants.h"

namespace oxy::eval {

bool Evaluator::hashes_itself(PyObject* object) {
  return !trace::is_trace_tensor(object) && !is_enum_member(object) && !compares_in_library(object) &&
         has_python_special(object, "__hash__");
}

Ref Evaluator::key_of(PyObject* key) {
  if (is_varying_number(key)) return constant_of(key);
  if (hashes_itself(key)) stop("hashes an object with its own __hash__");
  if (is_known_by_code(key)) require_identity(key);
  if (!PyTuple_Check(key)) {
    // Objects that are equal to themselves alone are told apart by guard_identities().
    const bool is_hashed = Py_TYPE(key)->tp_hash != PyObject_HashNotImplemented;
    const bool by_value = is_hashed && is_external(key) && !trace::is_trace_tensor(key) &&
                          !is_identity_object(key) && !compares_identity(key);
    Ref value = by_value ? plain(key, "a hash") : Ref::borrow(key);
    // The key itself is put in, which may be of a derived class.
    return PyFrozenSet_Check(key) ? Ref::borrow(key) : value;
  }
  const Ref items = materialize(key);
  const Py_ssize_t count = PyTuple_GET_SIZE(items.get());
  Ref hashed = Ref::steal(PyTuple_New(count));
  bool same = true;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* const item = PyTuple_GET_ITEM(items.get(), i);
    Ref part = key_of(item);
    // C code would see the real tensor, where the program sees what stands for it.
    if (is_external(key) && trace::is_trace_tensor(item)) stop("hashes a tuple that holds a tensor");
    if (!trace::is_trace_tensor(item) && !is_enum_member(item) && !compares_in_library(item) &&
        has_python_special(item, "__eq__"))
      stop("hashes a tuple of objects with their own __eq__");
    same = same && part == item;
    PyTuple_SET_ITEM(hashed.get(), i, part.release());
  }
  if (same || is_external(key)) return Ref::borrow(key);
  if (!PyTuple_CheckExact(key)) stop("hashes a tuple of a subclass that holds a number that varies");
  return hashed;
}

Ref Evaluator::items_for_set(PyObject* iterable) {
  refuse_own_iteration(iterable);
  if (PyAnySet_Check(iterable)) return materialize(iterable);
  if (PyDict_CheckExact(iterable)) {
    Ref dict = materialize(iterable);
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t position = 0;
    while (PyDict_Next(dict.get(), &position, &key, &value)) key_of(key);
    return dict;
  }
  Ref list = Ref::steal(PyList_New(0));
  const auto hash = [&](const Ref& item) {
    const Ref key = key_of(item.get());
    return PyObject_Hash(key.get()) != -1 && PyList_Append(list.get(), key.get()) == 0;
  };
  return take_items(iterable, hash) ? list : Ref();
}

}  // namespace oxy::eval
