// First: it decides what Python.h declares.
#include "cpy/internals.h"

#include <cstddef>
#include <utility>

#include "cpy/generator.h"

namespace oxy::cpy {
namespace {

PyGenObject* object_of(PyObject* generator) {
  return reinterpret_cast<PyGenObject*>(generator);
}

Ref new_cells(int count) {
  Ref cells = Ref::steal(PyTuple_New(count));
  for (int i = 0; cells && i < count; ++i) {
    PyObject* cell = PyCell_New(nullptr);
    if (cell == nullptr) return nullptr;
    PyTuple_SET_ITEM(cells.get(), i, cell);
  }
  return cells;
}

// A call of `function` that binds every parameter to None.
Ref call_with_none(PyObject* function, PyCodeObject* code) {
  const Ref positional = Ref::steal(PyTuple_New(code->co_argcount));
  const Ref keywords = Ref::steal(PyDict_New());
  const Ref names = Ref::steal(PyCode_GetVarnames(code));
  if (!positional || !keywords || !names) return nullptr;
  for (int i = 0; i < code->co_argcount; ++i) PyTuple_SET_ITEM(positional.get(), i, Py_NewRef(Py_None));
  for (int i = 0; i < code->co_kwonlyargcount; ++i)
    if (PyDict_SetItem(keywords.get(), PyTuple_GET_ITEM(names.get(), code->co_argcount + i), Py_None) < 0)
      return nullptr;
  return Ref::steal(PyObject_Call(function, positional.get(), keywords.get()));
}

}  // namespace

Frame generator_frame(PyObject* generator) {
  return Frame(reinterpret_cast<_PyInterpreterFrame*>(object_of(generator)->gi_iframe));
}

PyObject* generator_of(Frame frame) {
  return reinterpret_cast<PyObject*>(reinterpret_cast<char*>(frame.get()) - offsetof(PyGenObject, gi_iframe));
}

bool has_ended(PyObject* generator) {
  return object_of(generator)->gi_frame_state >= FRAME_COMPLETED;
}

bool is_running(PyObject* generator) {
  return object_of(generator)->gi_frame_state == FRAME_EXECUTING;
}

Ref new_generator(PyCodeObject* code, PyObject* globals) {
  const Ref function = Ref::steal(PyFunction_New(reinterpret_cast<PyObject*>(code), globals));
  if (!function) return nullptr;
  const Ref cells = new_cells(code->co_nfreevars);
  if (!cells || (code->co_nfreevars > 0 && PyFunction_SetClosure(function.get(), cells.get()) < 0))
    return nullptr;
  return call_with_none(function.get(), code);
}

void suspend(PyObject* generator, const Suspension& state) {
  const Frame frame = generator_frame(generator);
  PyObject** slots = frame.slots();
  int count = 0;
  const auto put = [&](const Ref& value) {
    PyObject* old = count < frame.slot_count() ? slots[count] : nullptr;
    slots[count++] = Py_XNewRef(value.get());
    Py_XDECREF(old);
  };
  for (const Ref& local : state.locals) put(local);
  for (const Ref& entry : state.stack) put(entry);
  frame.set_slot_count(count);
  frame.set_function(state.function);
  frame.set_next(state.next);
  if (state.started) set_suspended(generator, state.delegates);
  Py_XSETREF(object_of(generator)->gi_exc_state.exc_value, Py_XNewRef(state.handled));
}

Ref handled_here() {
  PyObject* value = PyThreadState_Get()->exc_info->exc_value;
  return value == Py_None ? nullptr : Ref::borrow(value);
}

HandledItem::HandledItem(Ref& handled) : handled_(handled) {
  PyThreadState* thread = PyThreadState_Get();
  item_ = {handled.release(), thread->exc_info};
  thread->exc_info = &item_;
}

HandledItem::~HandledItem() {
  PyThreadState_Get()->exc_info = item_.previous_item;
  handled_ = Ref::steal(item_.exc_value);
  if (handled_ == Py_None) handled_.reset();
}

}  // namespace oxy::cpy
