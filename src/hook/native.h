// Native forms of instructions: one instruction, performed on a real frame as CPython would perform it.
#pragma once

#include <Python.h>

#include <cstdint>
#include <span>
#include <utility>

#include "bytecode/instruction.h"
#include "cpy/frame.h"

namespace oxy::hook {

// Access to a frame's value stack and locals, in place. As in CPython, they own the references that they
// hold.
class Machine {
 public:
  Machine(PyThreadState* thread, cpy::Frame frame)
      : thread_(thread), frame_(frame), slots_(frame.slots()), locals_(frame.code()->co_nlocalsplus) {}

  PyThreadState* thread() const { return thread_; }
  cpy::Frame frame() const { return frame_; }
  PyCodeObject* code() const { return frame_.code(); }
  PyObject*& local(int32_t index) const { return slots_[index]; }
  PyObject* constant(int32_t index) const { return PyTuple_GET_ITEM(code()->co_consts, index); }
  PyObject* name(int32_t index) const { return PyTuple_GET_ITEM(code()->co_names, index); }

  // Entries on the value stack.
  int depth() const { return frame_.slot_count() - locals_; }
  // Entry number n from the top of the stack, beginning with 1.
  PyObject*& peek(int n) const { return slots_[frame_.slot_count() - n]; }
  std::span<PyObject* const> stack() const { return {slots_ + locals_, size_t(depth())}; }

  // Takes the reference.
  void push(PyObject* value) const {
    const int count = frame_.slot_count();
    slots_[count] = value;
    frame_.set_slot_count(count + 1);
  }
  // Gives the reference.
  [[nodiscard]] PyObject* pop() const {
    const int count = frame_.slot_count() - 1;
    frame_.set_slot_count(count);
    return slots_[count];
  }
  void drop(int n) const {
    for (; n > 0; --n) Py_XDECREF(pop());
  }

 private:
  PyThreadState* thread_;
  cpy::Frame frame_;
  PyObject** slots_;
  int locals_;
};

enum class Outcome : uint8_t {
  Next,     // go on with the next instruction
  Jump,     // go on at the instruction's arg
  Raised,   // a Python error is set; operands that are left on the stack are dropped by unwinding
  Refused,  // nothing was done: there is no native form, or CPython has to raise the error in its own words
};

using Native = Outcome (*)(const Machine&, const bytecode::Instruction&);

struct NativeEntry {
  bytecode::Op op;
  Native perform;
};

// One table per family of instructions.
std::span<const NativeEntry> native_moves();       // stack, locals, cells, names
std::span<const NativeEntry> native_operators();   // arithmetic, comparison, attributes, items
std::span<const NativeEntry> native_containers();  // building, extending, unpacking, formatting
std::span<const NativeEntry> native_control();     // jumps, iteration, calls, functions, with, import
std::span<const NativeEntry> native_generators();  // waiting for another generator or coroutine

// Performs the instruction; Refused if no table has it. May run any Python code.
Outcome perform(const Machine& machine, const bytecode::Instruction& instruction);

// Replaces the `count` operands on top of the stack by `result`, and takes over its reference. Null: a Python
// error is set, and the outcome is Raised.
inline Outcome replace(const Machine& machine, int count, PyObject* result) {
  machine.drop(count);
  if (result == nullptr) return Outcome::Raised;
  machine.push(result);
  return Outcome::Next;
}

}  // namespace oxy::hook
