// A Python frame that is being interpreted, the outcome of an instruction, and the arguments of a call.
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
  // By local, in the outermost frame only: the source of a local that was not read yet. It is not admitted
  // and nothing of it is guarded. kNoSource: it was read or written.
  std::vector<SourceId> unread;
  std::vector<Ref> stack;  // null entries are pushed NULLs
  // By stack entry, from the bottom: the same. Entries beyond its end have been read. An unread entry may be
  // moved. It is admitted before an instruction uses it as an operand.
  std::vector<SourceId> unread_stack;
  size_t next = 0;     // index of the next instruction
  size_t current = 0;  // index of the instruction that is under way
  Frame* back = nullptr;
  std::vector<PyObject*> caught;  // the exceptions that its handlers got; Calls::raised keeps them alive

  PyCodeObject* pycode() const { return reinterpret_cast<PyCodeObject*>(code_object.get()); }
  const bytecode::Instruction& instruction() const { return code->instructions[current]; }
};

// How an instruction, or a whole frame, ended. Returned: the value is on top of the stack. Raised: a Python
// exception is set. Yielded: a generator yields the value on top, or the outermost frame's capture ends here.
enum class Flow : uint8_t { Next, Jumped, Returned, Raised, Yielded };

struct Arguments {
  std::vector<Ref> positional;
  std::vector<std::pair<Ref, Ref>> keywords;  // (name, value) in call order
};

}  // namespace oxy::eval
