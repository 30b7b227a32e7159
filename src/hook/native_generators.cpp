// Instructions by which generators and coroutines wait for another one. Yielding itself is left to CPython.
#include "cpy/ref.h"
#include "hook/native.h"

namespace oxy::hook {
namespace {

using bytecode::Instruction;
using bytecode::Op;
using cpy::Ref;

constexpr bool kReceiverStays = PY_VERSION_HEX >= 0x030C0000;  // for EndSend to pop

bool is_coroutine(PyObject* object) {
  if (PyCoro_CheckExact(object)) return true;
  if (!PyGen_CheckExact(object)) return false;
  const Ref code = Ref::steal(PyObject_GetAttrString(object, "gi_code"));
  return code && (reinterpret_cast<PyCodeObject*>(code.get())->co_flags & CO_ITERABLE_COROUTINE) != 0;
}

bool has_await(PyObject* object) {
  const PyAsyncMethods* methods = Py_TYPE(object)->tp_as_async;
  return methods != nullptr && methods->am_await != nullptr;
}

// The result of object.__await__(), a new reference; null: an error is set. Precondition: has_await().
PyObject* awaitable_iterator(PyObject* object) {
  Ref iterator = Ref::steal(Py_TYPE(object)->tp_as_async->am_await(object));
  if (!iterator) return nullptr;
  if (is_coroutine(iterator.get())) {
    PyErr_SetString(PyExc_TypeError, "__await__() returned a coroutine");
    return nullptr;
  }
  if (!PyIter_Check(iterator.get())) {
    PyErr_Format(PyExc_TypeError, "__await__() returned non-iterator of type '%.100s'",
                 Py_TYPE(iterator.get())->tp_name);
    return nullptr;
  }
  return iterator.release();
}

// receiver, value -> receiver, what it yields; or, behind the jump, what it returned
Outcome send(const Machine& machine, const Instruction&) {
  const Ref value = Ref::steal(machine.pop());
  PyObject* result = nullptr;
  switch (PyIter_Send(machine.peek(1), value.get(), &result)) {
    case PYGEN_ERROR:
      return Outcome::Raised;
    case PYGEN_NEXT:
      machine.push(result);
      return Outcome::Next;
    case PYGEN_RETURN:
      break;
  }
  if (!kReceiverStays) machine.drop(1);
  machine.push(result);
  return Outcome::Jump;
}

// receiver, value -> value
Outcome end_send(const Machine& machine, const Instruction&) {
  PyObject* value = machine.pop();
  machine.drop(1);
  machine.push(value);
  return Outcome::Next;
}

Outcome get_yield_from_iter(const Machine& machine, const Instruction&) {
  PyObject* object = machine.peek(1);
  if (is_coroutine(object)) return Outcome::Refused;  // allowed in some code only
  if (PyGen_CheckExact(object)) return Outcome::Next;
  return replace(machine, 1, PyObject_GetIter(object));
}

Outcome get_awaitable(const Machine& machine, const Instruction&) {
  PyObject* object = machine.peek(1);
  if (PyCoro_CheckExact(object)) {
    const Ref awaited = Ref::steal(PyObject_GetAttrString(object, "cr_await"));
    return awaited == Py_None ? Outcome::Next : Outcome::Refused;  // one that is awaited already is an error
  }
  if (is_coroutine(object)) return Outcome::Next;
  if (!has_await(object)) return Outcome::Refused;
  PyObject* iterator = awaitable_iterator(object);
  return iterator != nullptr ? replace(machine, 1, iterator) : Outcome::Raised;
}

// Calls __aiter__(). An asynchronous generator is its own iterator.
Outcome get_aiter(const Machine& machine, const Instruction&) {
  PyObject* object = machine.peek(1);
  if (PyAsyncGen_CheckExact(object)) return Outcome::Next;
  const PyAsyncMethods* methods = Py_TYPE(object)->tp_as_async;
  if (methods == nullptr || methods->am_aiter == nullptr) return Outcome::Refused;
  PyObject* iterator = methods->am_aiter(object);
  if (iterator == nullptr) return Outcome::Raised;
  const PyAsyncMethods* own = Py_TYPE(iterator)->tp_as_async;
  if (own == nullptr || own->am_anext == nullptr) {
    PyErr_Format(PyExc_TypeError,
                 "'async for' received an object from __aiter__ that does not implement __anext__: %.100s",
                 Py_TYPE(iterator)->tp_name);
    Py_DECREF(iterator);
    return Outcome::Raised;
  }
  return replace(machine, 1, iterator);
}

// iterator -> iterator, awaitable
Outcome get_anext(const Machine& machine, const Instruction&) {
  PyObject* iterator = machine.peek(1);
  const PyAsyncMethods* methods = Py_TYPE(iterator)->tp_as_async;
  if (methods == nullptr || methods->am_anext == nullptr) return Outcome::Refused;
  Ref next = Ref::steal(methods->am_anext(iterator));
  if (!next) return Outcome::Raised;
  if (PyAsyncGen_CheckExact(iterator) || is_coroutine(next.get())) {
    machine.push(next.release());
    return Outcome::Next;
  }
  if (!has_await(next.get()))
    PyErr_Format(PyExc_TypeError, "object %.100s can't be used in 'await' expression",
                 Py_TYPE(next.get())->tp_name);
  PyObject* awaitable = has_await(next.get()) ? awaitable_iterator(next.get()) : nullptr;
  if (awaitable == nullptr) {
    PyObject *type = nullptr, *cause = nullptr, *traceback = nullptr;
    PyErr_Fetch(&type, &cause, &traceback);
    PyErr_NormalizeException(&type, &cause, &traceback);
    if (traceback != nullptr) PyException_SetTraceback(cause, traceback);
    PyErr_Format(PyExc_TypeError, "'async for' received an invalid object from __anext__: %.100s",
                 Py_TYPE(next.get())->tp_name);
    PyObject *new_type = nullptr, *error = nullptr, *new_traceback = nullptr;
    PyErr_Fetch(&new_type, &error, &new_traceback);
    PyErr_NormalizeException(&new_type, &error, &new_traceback);
    PyException_SetContext(error, Py_NewRef(cause));
    PyException_SetCause(error, cause);
    PyErr_Restore(new_type, error, new_traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return Outcome::Raised;
  }
  machine.push(awaitable);
  return Outcome::Next;
}

constexpr NativeEntry kEntries[] = {
    {Op::Send, send},
    {Op::EndSend, end_send},
    {Op::GetYieldFromIter, get_yield_from_iter},
    {Op::GetAwaitable, get_awaitable},
    {Op::GetAiter, get_aiter},
    {Op::GetAnext, get_anext},
};

}  // namespace

std::span<const NativeEntry> native_generators() {
  return kEntries;
}

}  // namespace oxy::hook
