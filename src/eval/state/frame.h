// A Python frame that is being interpreted.
#pragma once

#include <Python.h>

#include <memory>
#include <utility>
#include <vector>

#include "bytecode/decode.h"
#include "bytecode/instruction.h"
#include "cpy/ref.h"
#include "guards/source.h"

namespace oxy::eval {

using cpy::Ref;
using guards::SourceId;

struct Frame {
  Ref code_object;  // PyCodeObject
  std::shared_ptr<const bytecode::Code> code;
  Ref function;  // null for the outermost frame of a segment
  Ref globals;
  Ref builtins;
  std::vector<Ref> locals;  // localsplus; null: unbound
  // Only in the outermost frame: the source of a local that was not read so far (it is not admitted
  // yet, so nothing is guarded of it), kNoSource for the others.
  std::vector<SourceId> unread;
  std::vector<Ref> stack;  // null entries are pushed NULLs
  // The same for the stack, from the bottom; entries beyond its end have been read. An unread entry may be
  // moved, and is admitted before an instruction has it as an operand.
  std::vector<SourceId> unread_stack;
  size_t next = 0;  // index of the next instruction
  size_t current = 0;
  Frame* back = nullptr;
  std::vector<PyObject*> caught;  // exceptions that its handlers were given; kept alive

  PyCodeObject* pycode() const { return reinterpret_cast<PyCodeObject*>(code_object.get()); }
  const bytecode::Instruction& instruction() const { return code->instructions[current]; }
};

enum class Flow : uint8_t { Next, Jumped, Returned, Raised, Yielded };

struct Arguments {
  std::vector<Ref> positional;
  std::vector<std::pair<Ref, Ref>> keywords;  // (name, value) in call order
};

}  // namespace oxy::eval
