// Instructions that move values: stack, locals, cells, names.
#include "bytecode/calls.h"
#include "hook/native.h"

namespace oxy::hook {
namespace {

using bytecode::Instruction;
using bytecode::Op;

Outcome nothing(const Machine&, const Instruction&) {
  return Outcome::Next;
}

Outcome pop_top(const Machine& machine, const Instruction&) {
  machine.drop(1);
  return Outcome::Next;
}

Outcome copy(const Machine& machine, const Instruction& instruction) {
  machine.push(Py_XNewRef(machine.peek(instruction.arg)));
  return Outcome::Next;
}

Outcome swap(const Machine& machine, const Instruction& instruction) {
  std::swap(machine.peek(1), machine.peek(instruction.arg));
  return Outcome::Next;
}

Outcome push_null(const Machine& machine, const Instruction&) {
  machine.push(nullptr);
  return Outcome::Next;
}

Outcome load_const(const Machine& machine, const Instruction& instruction) {
  machine.push(Py_NewRef(machine.constant(instruction.arg)));
  return Outcome::Next;
}

// Here and below, an instruction that meets an unbound variable is refused, so that CPython raises the error.
Outcome load_fast(const Machine& machine, const Instruction& instruction) {
  PyObject* value = machine.local(instruction.arg);
  if (value == nullptr) return Outcome::Refused;
  machine.push(Py_NewRef(value));
  return Outcome::Next;
}

Outcome load_fast_and_clear(const Machine& machine, const Instruction& instruction) {
  machine.push(std::exchange(machine.local(instruction.arg), nullptr));
  return Outcome::Next;
}

Outcome store_fast(const Machine& machine, const Instruction& instruction) {
  PyObject* value = machine.pop();
  Py_XDECREF(std::exchange(machine.local(instruction.arg), value));
  return Outcome::Next;
}

Outcome delete_fast(const Machine& machine, const Instruction& instruction) {
  if (machine.local(instruction.arg) == nullptr) return Outcome::Refused;
  Py_DECREF(std::exchange(machine.local(instruction.arg), nullptr));
  return Outcome::Next;
}

// Outside of the prologue, which the frame loop performs, this belongs to an inlined comprehension.
Outcome make_cell(const Machine& machine, const Instruction& instruction) {
  PyObject* cell = PyCell_New(machine.local(instruction.arg));
  if (cell == nullptr) return Outcome::Raised;
  Py_XDECREF(std::exchange(machine.local(instruction.arg), cell));
  return Outcome::Next;
}

Outcome load_deref(const Machine& machine, const Instruction& instruction) {
  PyObject* value = PyCell_GET(machine.local(instruction.arg));
  if (value == nullptr) return Outcome::Refused;
  machine.push(Py_NewRef(value));
  return Outcome::Next;
}

Outcome store_deref(const Machine& machine, const Instruction& instruction) {
  PyObject* cell = machine.local(instruction.arg);
  PyObject* old = PyCell_GET(cell);
  PyCell_SET(cell, machine.pop());
  Py_XDECREF(old);
  return Outcome::Next;
}

Outcome delete_deref(const Machine& machine, const Instruction& instruction) {
  PyObject* cell = machine.local(instruction.arg);
  PyObject* old = PyCell_GET(cell);
  if (old == nullptr) return Outcome::Refused;
  PyCell_SET(cell, nullptr);
  Py_DECREF(old);
  return Outcome::Next;
}

// Looks the name up in a dict that has no __missing__ or __getitem__ of its own.
PyObject* find(PyObject* dict, PyObject* name) {
  return PyDict_GetItemWithError(dict, name);
}

Outcome push_found(const Machine& machine, PyObject* value, bool with_null) {
  if (value == nullptr) return PyErr_Occurred() ? Outcome::Raised : Outcome::Refused;
  Py_INCREF(value);
  if (!with_null) {
    machine.push(value);
  } else if (bytecode::kCallLayout == bytecode::CallLayout::NullBelow) {
    machine.push(nullptr);
    machine.push(value);
  } else {
    machine.push(value);
    machine.push(nullptr);
  }
  return Outcome::Next;
}

Outcome load_global(const Machine& machine, const Instruction& instruction) {
  PyObject* globals = machine.frame().globals();
  PyObject* builtins = machine.frame().builtins();
  if (!PyDict_CheckExact(globals) || !PyDict_CheckExact(builtins)) return Outcome::Refused;
  PyObject* name = machine.name(instruction.arg);
  PyObject* value = find(globals, name);
  if (value == nullptr && !PyErr_Occurred()) value = find(builtins, name);
  return push_found(machine, value, instruction.arg2);
}

Outcome load_name(const Machine& machine, const Instruction& instruction) {
  PyObject* names = machine.frame().names();
  if (names == nullptr || !PyDict_CheckExact(names)) return Outcome::Refused;
  if (PyObject* value = find(names, machine.name(instruction.arg))) return push_found(machine, value, false);
  if (PyErr_Occurred()) return Outcome::Raised;
  return load_global(machine, instruction);
}

Outcome store_name(const Machine& machine, const Instruction& instruction) {
  PyObject* names = machine.frame().names();
  if (names == nullptr) return Outcome::Refused;
  const int failed = PyDict_CheckExact(names)
                         ? PyDict_SetItem(names, machine.name(instruction.arg), machine.peek(1))
                         : PyObject_SetItem(names, machine.name(instruction.arg), machine.peek(1));
  machine.drop(1);
  return failed ? Outcome::Raised : Outcome::Next;
}

Outcome store_global(const Machine& machine, const Instruction& instruction) {
  const int failed =
      PyDict_SetItem(machine.frame().globals(), machine.name(instruction.arg), machine.peek(1));
  machine.drop(1);
  return failed ? Outcome::Raised : Outcome::Next;
}

Outcome delete_global(const Machine& machine, const Instruction& instruction) {
  PyObject* name = machine.name(instruction.arg);
  const int found = PyDict_Contains(machine.frame().globals(), name);
  if (found < 0) return Outcome::Raised;
  if (!found) return Outcome::Refused;
  return PyDict_DelItem(machine.frame().globals(), name) < 0 ? Outcome::Raised : Outcome::Next;
}

constexpr NativeEntry kEntries[] = {
    {Op::Nop, nothing},
    {Op::Resume, nothing},
    {Op::PopTop, pop_top},
    {Op::Copy, copy},
    {Op::Swap, swap},
    {Op::PushNull, push_null},
    {Op::LoadConst, load_const},
    {Op::LoadFast, load_fast},
    {Op::LoadFastAndClear, load_fast_and_clear},
    {Op::StoreFast, store_fast},
    {Op::DeleteFast, delete_fast},
    {Op::MakeCell, make_cell},
    {Op::LoadClosure, load_fast},
    {Op::LoadDeref, load_deref},
    {Op::StoreDeref, store_deref},
    {Op::DeleteDeref, delete_deref},
    {Op::LoadGlobal, load_global},
    {Op::LoadName, load_name},
    {Op::StoreName, store_name},
    {Op::StoreGlobal, store_global},
    {Op::DeleteGlobal, delete_global},
};

}  // namespace

std::span<const NativeEntry> native_moves() {
  return kEntries;
}

}  // namespace oxy::hook
