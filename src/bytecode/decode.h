// The decoder: CPython's bytecode becomes canonical instructions.
#pragma once

#include <Python.h>

#include <memory>

#include "bytecode/instruction.h"

namespace oxy::bytecode {

// The instructions of a code object as the compiler of Python made them: adaptive and instrumented forms are
// undone, prefixes and caches are folded away. The result is cached with the code object; the pointer keeps
// it alive for longer. Needs the GIL. Throws InternalError for an opcode that the running version does not
// have.
std::shared_ptr<const Code> decode(PyCodeObject* code);

// The same, decoded anew.
Code decode_uncached(PyCodeObject* code);

}  // namespace oxy::bytecode
