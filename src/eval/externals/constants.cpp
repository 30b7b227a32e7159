#include "eval/externals/constants.h"

#include "eval/state/interpreter.h"
#include "guards/constants.h"

namespace oxy::eval {

void note_code_constant(Interpreter& interpreter, PyObject* constant) {
  if (!PyTuple_CheckExact(constant) && !PyFrozenSet_CheckExact(constant)) return;
  if (!interpreter.externals.code_constants.insert(constant).second || !PyTuple_CheckExact(constant)) return;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(constant); ++i)
    note_code_constant(interpreter, PyTuple_GET_ITEM(constant, i));
}

bool lasts(Interpreter& interpreter, PyObject* argument) {
  if (PyTuple_CheckExact(argument)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(argument); ++i)
      if (!lasts(interpreter, PyTuple_GET_ITEM(argument, i))) return false;
    return true;
  }
  return guards::is_constant(argument) || interpreter.externals.is_external(argument);
}

}  // namespace oxy::eval
