// What the logging module does with a message.
#pragma once

#include "cpy/ref.h"

namespace oxy::eval {

// Whether nothing of the program's own looks at a message that this logger is given: it, its parents and
// their handlers are of the logging module's classes, without filters, and no method of theirs is replaced.
bool logs_by_library_alone(PyObject* logger);

}  // namespace oxy::eval
