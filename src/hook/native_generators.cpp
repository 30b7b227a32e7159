// What generators and coroutines do besides yielding, which is CPython's: waiting for another.
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
  const PyAsyncMethods* methods = Py_TYPE(object)->tp_as_async;
  if (methods == nullptr || methods->am_await == nullptr) return Outcome::Refused;
  Ref iterator = Ref::steal(methods->am_await(object));
  if (!iterator) return Outcome::Raised;
  if (is_coroutine(iterator.get())) {
    PyErr_SetString(PyExc_TypeError, "__await__() returned a coroutine");
    return Outcome::Raised;
  }
  if (!PyIter_Check(iterator.get())) {
    PyErr_Format(PyExc_TypeError, "__await__() returned non-iterator of type '%.100s'",
                 Py_TYPE(iterator.get())->tp_name);
    return Outcome::Raised;
  }
  return replace(machine, 1, iterator.release());
}

// An asynchronous generator is its own iterator.
Outcome get_aiter(const Machine& machine, const Instruction&) {
  return PyAsyncGen_CheckExact(machine.peek(1)) ? Outcome::Next : Outcome::Refused;
}

// iterator -> iterator, awaitable
Outcome get_anext(const Machine& machine, const Instruction&) {
  PyObject* iterator = machine.peek(1);
  if (!PyAsyncGen_CheckExact(iterator)) return Outcome::Refused;
  PyObject* awaitable = Py_TYPE(iterator)->tp_as_async->am_anext(iterator);
  if (awaitable == nullptr) return Outcome::Raised;
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
