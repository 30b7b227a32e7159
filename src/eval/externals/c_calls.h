// Calls C code for real, during the capture. The caller makes sure that it has no effects and reads only its
// arguments.
#pragma once

#include "eval/externals/plain.h"
#include "eval/state/interpreter.h"

namespace oxy::eval {

// Passes the arguments as they are, except that varying numbers become constants, guarded.
Ref call_real(Interpreter& interpreter, PyObject* callable, const Arguments& arguments);
// Varying numbers are passed too: for C code that looks at no value, as that of a container which keeps it.
Ref call_as_it_is(PyObject* callable, const Arguments& arguments);
// Passes the arguments in the form that plain() gives them. Notes the call in the log of torch calls.
Ref call_real_plain(Interpreter& interpreter, PyObject* callable, const Arguments& arguments,
                    ShownAs ints = ShownAs::Constants);
// Runs a ufunc of NumPy's on constants and NumPy scalars. Nothing: it is another function, or has other
// arguments.
std::optional<Ref> call_on_scalars(Interpreter& interpreter, PyObject* callable, const Arguments& arguments);

}  // namespace oxy::eval
