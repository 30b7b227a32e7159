#include "eval/rebuild/perform.h"

#include "cpy/ref.h"
#include "eval/python/objects.h"

namespace oxy::eval {

using cpy::Ref;

namespace {

// For removals of something that may be missing: it is no error if the region has both added and removed it.
bool tolerate(int status) {
  if (status == 0) return true;
  if (!PyErr_ExceptionMatches(PyExc_KeyError) && !PyErr_ExceptionMatches(PyExc_AttributeError)) return false;
  PyErr_Clear();
  return true;
}

Ref list_of(const std::vector<Template>& items, Rebuilder& rebuilder, bool backwards = false) {
  Ref list = Ref::steal(PyList_New(static_cast<Py_ssize_t>(items.size())));
  for (size_t i = 0; list && i < items.size(); ++i) {
    Ref item = rebuilder.build(items[i]);
    if (!item) return {};
    const size_t place = backwards ? items.size() - 1 - i : i;
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(place), item.release());
  }
  return list;
}

// Calls the method of the builtin type, since a subclass may have another one of the same name.
bool call(PyObject* object, const char* method, PyObject* argument = nullptr) {
  auto* type = reinterpret_cast<PyObject*>(native_base(Py_TYPE(object)));
  Ref function = Ref::steal(PyObject_GetAttrString(type, method));
  return function && Ref::steal(PyObject_CallFunctionObjArgs(function.get(), object, argument, nullptr));
}

bool perform_window(const Effect& effect, Rebuilder& rebuilder, PyObject* deque) {
  for (Py_ssize_t i = 0; i < effect.begin; ++i)
    if (!call(deque, "popleft")) return false;
  for (Py_ssize_t i = 0; i < effect.end; ++i)
    if (!call(deque, "pop")) return false;
  Ref front = list_of(effect.front, rebuilder, true), items = list_of(effect.items, rebuilder);
  return front && items && call(deque, "extendleft", front.get()) && call(deque, "extend", items.get());
}

// Changes a deque and puts it back, so that iterators see a change.
bool touch(PyObject* deque) {
  const Py_ssize_t size = PyObject_Size(deque);
  if (size > 1) return call(deque, "rotate", Ref::steal(PyLong_FromLong(0)).get());
  Ref item = size == 1 ? Ref::steal(PySequence_GetItem(deque, 0)) : Ref::borrow(Py_None);
  if (size == 1) return call(deque, "pop") && call(deque, "append", item.get());
  return call(deque, "append", item.get()) && call(deque, "clear");
}

}  // namespace

bool perform(const Effect& effect, Rebuilder& rebuilder) {
  Ref object = rebuilder.build(effect.object), key = rebuilder.build(effect.key),
      value = rebuilder.build(effect.value);
  if (PyErr_Occurred()) return false;
  PyObject* o = object.get();
  switch (effect.kind) {
    case EffectKind::SetAttribute:
      return PyObject_GenericSetAttr(o, key.get(), value.get()) == 0;
    case EffectKind::DeleteAttribute:
      return tolerate(PyObject_GenericSetAttr(o, key.get(), nullptr));
    case EffectKind::SetCell:
      return PyCell_Set(o, value.get()) == 0;
    case EffectKind::SetItem:
      return (PyODict_Check(o) ? PyODict_SetItem(o, key.get(), value.get())
                               : PyDict_SetItem(o, key.get(), value.get())) == 0;
    case EffectKind::DeleteItem:
      return tolerate(PyODict_Check(o) ? PyODict_DelItem(o, key.get()) : PyDict_DelItem(o, key.get()));
    case EffectKind::Clear:
      return call(o, "clear");
    case EffectKind::Slice:
    case EffectKind::Extend: {
      Ref items = list_of(effect.items, rebuilder);
      if (!items) return false;
      if (!PyList_Check(o)) return call(o, "extend", items.get());
      const bool behind = effect.kind == EffectKind::Extend;
      return PyList_SetSlice(o, behind ? PY_SSIZE_T_MAX : effect.begin, behind ? PY_SSIZE_T_MAX : effect.end,
                             items.get()) == 0;
    }
    case EffectKind::SetPlace:
      return PySequence_SetItem(o, effect.begin, rebuilder.build(effect.items.front()).get()) == 0;
    case EffectKind::Touch:
      return touch(o);
    case EffectKind::Window:
      return perform_window(effect, rebuilder, o);
    case EffectKind::Add:
      return PySet_Add(o, key.get()) == 0;
    case EffectKind::Discard:
      return PySet_Discard(o, key.get()) >= 0;
  }
  return true;
}

}  // namespace oxy::eval
