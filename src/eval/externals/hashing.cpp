// Keys for C code, which hashes them and compares them with other keys: everything that it looks at has to be
// guarded, and no code of the program's may run.
#include "eval/externals/hashing.h"

#include <fmt/format.h>

#include "eval/externals/external_containers.h"
#include "eval/externals/identity.h"
#include "eval/externals/own_code.h"
#include "eval/externals/plain.h"
#include "eval/externals/type_lookup.h"
#include "eval/numbers/varying_number.h"
#include "eval/python/objects.h"
#include "eval/state/evaluation.h"
#include "eval/state/interpreter.h"
#include "guards/constants.h"

namespace oxy::eval {

bool hashes_itself(Interpreter& interpreter, PyObject* object) {
  return !trace::is_trace_tensor(object) && !is_enum_member(object) && !compares_in_library(object) &&
         has_python_special(interpreter, object, "__hash__");
}

Ref key_of(Interpreter& interpreter, PyObject* key) {
  if (is_varying_number(key)) return constant_of(interpreter, key);
  if (hashes_itself(interpreter, key)) interpreter.stop("hashes an object with its own __hash__");
  if (interpreter.externals.is_known_by_code(key)) require_identity(interpreter, key);
  if (!PyTuple_Check(key)) {
    // Objects that are equal to themselves alone are told apart by guard_identities(interpreter).
    const bool is_hashed = Py_TYPE(key)->tp_hash != PyObject_HashNotImplemented;
    const bool by_value = is_hashed && interpreter.externals.is_external(key) &&
                          !trace::is_trace_tensor(key) && !is_identity_object(key) && !compares_identity(key);
    Ref value = by_value ? plain(interpreter, key, "a hash") : Ref::borrow(key);
    // The container keeps the key itself, which may be of a derived class.
    return PyFrozenSet_Check(key) ? Ref::borrow(key) : value;
  }
  const Ref items = materialize(interpreter, key);
  const Py_ssize_t count = PyTuple_GET_SIZE(items.get());
  Ref hashed = Ref::steal(PyTuple_New(count));
  bool same = true;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* const item = PyTuple_GET_ITEM(items.get(), i);
    Ref part = key_of(interpreter, item);
    // C code would see the external tensor, but the program has its trace tensor.
    if (interpreter.externals.is_external(key) && trace::is_trace_tensor(item))
      interpreter.stop("hashes a tuple that holds a tensor");
    if (!trace::is_trace_tensor(item) && !is_enum_member(item) && !compares_in_library(item) &&
        has_python_special(interpreter, item, "__eq__"))
      interpreter.stop("hashes a tuple of objects with their own __eq__");
    same = same && part == item;
    PyTuple_SET_ITEM(hashed.get(), i, part.release());
  }
  if (same || interpreter.externals.is_external(key)) return Ref::borrow(key);
  if (!PyTuple_CheckExact(key))
    interpreter.stop("hashes a tuple of a subclass that holds a number that varies");
  return hashed;
}

Ref items_for_set(Interpreter& interpreter, PyObject* iterable) {
  refuse_own_iteration(interpreter, iterable);
  if (PyAnySet_Check(iterable)) return materialize(interpreter, iterable);
  if (PyDict_CheckExact(iterable)) {
    Ref dict = materialize(interpreter, iterable);
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t position = 0;
    while (PyDict_Next(dict.get(), &position, &key, &value)) key_of(interpreter, key);
    return dict;
  }
  Ref list = Ref::steal(PyList_New(0));
  const auto hash = [&](const Ref& item) {
    const Ref key = key_of(interpreter, item.get());
    return PyObject_Hash(key.get()) != -1 && PyList_Append(list.get(), key.get()) == 0;
  };
  return take_items(interpreter, iterable, hash) ? list : Ref();
}

}  // namespace oxy::eval
