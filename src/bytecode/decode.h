// CPython's bytecode -> canonical instructions.
#pragma once

#include <Python.h>

#include <memory>

#include "bytecode/instruction.h"

namespace oxy::bytecode {

// The instructions of a code object as its author's source compiled to them: adaptive and instrumented forms
// undone, prefixes and caches folded away. Kept with the code object and freed with it; a holder of the
// result may outlive both. Needs the GIL. Throws InternalError on an opcode that the running version does not
// have.
std::shared_ptr<const Code> decode(PyCodeObject* code);

// The same, decoded anew.
Code decode_uncached(PyCodeObject* code);

}  // namespace oxy::bytecode
