// Generator objects from the inside: their frames, and generators made in the middle of their lives.
#pragma once

#include <Python.h>

#include <cstdint>
#include <span>

#include "cpy/frame.h"
#include "cpy/ref.h"

namespace oxy::cpy {

// The frame of a generator, coroutine or asynchronous generator that has not ended.
Frame generator_frame(PyObject* generator);
PyObject* generator_of(Frame frame);  // the other way; borrowed
bool has_ended(PyObject* generator);
bool is_running(PyObject* generator);

// A generator over `code`, not started, with no variable bound. Null with an error set on failure.
Ref new_generator(PyCodeObject* code, PyObject* globals);

struct Suspension {
  PyObject* function = nullptr;  // the function that made the generator
  int32_t next = 0;              // where it goes on: the code unit behind the instruction that it waits at
  bool started = false;          // waits at a yield, not before its first instruction
  bool delegates = false;        // waits for another: the topmost entry of the stack
  std::span<const Ref> locals;   // in the order of co_localsplusnames; null: unbound
  std::span<const Ref> stack;    // bottom first
  PyObject* handled = nullptr;   // the exception that it is handling, or null
};

// How the object says that it has been started. `delegates` as in Suspension.
void set_suspended(PyObject* generator, bool delegates);

// Puts what new_generator() made into a state. Takes references of its own.
void suspend(PyObject* generator, const Suspension& state);

// Exceptions that are being handled lie on a stack with an item for the thread and one for each generator
// that runs: that of the innermost item, or null.
Ref handled_here();

// Makes an item for a running generator: `handled` moves into it and back. Lives in a block; not copied.
class HandledItem {
 public:
  explicit HandledItem(Ref& handled);
  ~HandledItem();
  HandledItem(const HandledItem&) = delete;
  HandledItem& operator=(const HandledItem&) = delete;

 private:
  Ref& handled_;
  _PyErr_StackItem item_;
};

}  // namespace oxy::cpy
