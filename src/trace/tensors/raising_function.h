// Finds the Python function in which a Python exception was raised.
#pragma once

#include <exception>
#include <string>

namespace oxy::trace {

// The name of the Python function that raised `error`, a PyTorch python_error; empty for other errors, or if
// it is not known. Takes the GIL.
std::string raising_function(const std::exception& error);

}  // namespace oxy::trace
