#include "eval/state/shadow.h"

namespace oxy::eval {

using cpy::Ref;

std::optional<Ref> Shadow::find(PyObject* key) const {
  PyObject* index = last_write ? PyDict_GetItem(last_write.get(), key) : nullptr;
  if (!index) return std::nullopt;
  return writes[PyLong_AsSize_t(index)].second;
}

void Shadow::write(PyObject* key, PyObject* value) {
  written = true;
  if (!last_write) last_write = Ref::steal(PyDict_New());
  if (PyObject* index = PyDict_GetItem(last_write.get(), key)) {
    Ref& last = writes[PyLong_AsSize_t(index)].second;
    // A key that is written after it was deleted goes behind all others, so its old write cannot be replaced.
    // An item that a set held for a moment has an influence on the order of the others.
    const bool replaces = PyAnySet_Check(object.get()) ? !last == !value : last || !value;
    if (replaces) {
      last = Ref::borrow(value);
      return;
    }
  }
  PyDict_SetItem(last_write.get(), key, Ref::steal(PyLong_FromSize_t(writes.size())).get());
  writes.emplace_back(Ref::borrow(key), Ref::borrow(value));
}

}  // namespace oxy::eval
