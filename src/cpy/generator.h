// Generator objects from the inside: their frames, and generators that are made in a suspended state.
#pragma once

#include <Python.h>

#include <cstdint>
#include <span>

#include "cpy/frame.h"
#include "cpy/ref.h"

namespace oxy::cpy {

// The frame of a generator, coroutine or asynchronous generator that has not ended.
Frame generator_frame(PyObject* generator);
PyObject* generator_of(Frame frame);  // the generator of such a frame; borrowed
bool has_ended(PyObject* generator);
bool is_running(PyObject* generator);

// A generator over `code`, not started, with no variable bound. Null with an error set on failure.
Ref new_generator(PyCodeObject* code, PyObject* globals);

// The state of a suspended generator.
struct Suspension {
  PyObject* function = nullptr;  // the function that made the generator
  int32_t next = 0;              // where it goes on: the code unit behind the instruction at which it waits
  bool started = false;          // it waits at a yield, not before its first instruction
  bool delegates = false;        // it waits for another generator, which is on top of the stack
  std::span<const Ref> locals;   // in the order of co_localsplusnames; null: unbound
  std::span<const Ref> stack;    // bottom first
  PyObject* handled = nullptr;   // the exception that it is handling, or null
};

// Marks the generator object as suspended at a yield. `delegates`: as in Suspension.
void set_suspended(PyObject* generator, bool delegates);

// Puts a generator from new_generator() into the state. Takes references of its own.
void suspend(PyObject* generator, const Suspension& state);

// The exception that is being handled here, or null. CPython keeps a stack of such exceptions, with an item
// for the thread and one for each running generator. This is the exception of the innermost item alone.
Ref handled_here();

// Pushes an item for a running generator while it lives. `handled` moves into the item and back at the end.
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
