// Tensors of numbers that vary: torch.tensor() and torch.as_tensor() of sizes and of what the program
// calculates with them. The graph makes them, so that one capture serves all sizes.
#pragma once

#include <optional>

#include "eval/state/interpreter.h"

namespace oxy::eval {

// A number that is known before the graph runs, or an int of data, as a tensor without dimensions on the
// host: int64 for an int, float64 for a float. Precondition: it is an exact int or float, or a varying number
// that is no float of data.
at::Tensor number_tensor(Interpreter& interpreter, PyObject* number);

// torch.tensor(*arguments) or torch.as_tensor(*arguments) of a number that is known before the graph runs and
// varies, or of a list, or a list of lists, of numbers with such a one among them. Nothing: it is another
// call, or one of a type in which numbers may have no place.
std::optional<Ref> tensor_of_varying(Interpreter& interpreter, const Arguments& arguments);

}  // namespace oxy::eval
