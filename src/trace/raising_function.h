#pragma once

#include <exception>
#include <string>

namespace oxy::trace {

// The name of the Python function that raised a Python error; empty if it is not known. Takes the GIL.
std::string raising_function(const std::exception& error);

}  // namespace oxy::trace
