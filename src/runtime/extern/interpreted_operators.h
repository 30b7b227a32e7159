// Operators of our own that generated kernels compute, for graphs that run operator by operator.
#pragma once

#include <torch/library.h>

#include <functional>
#include <string>

namespace oxy::runtime {

// The schema of the operator oxyfuel::NAME.
using SchemaOf = std::function<std::string(const char* name)>;

// Defines them in the library "oxyfuel".
void add_interpreted_operators(torch::Library& library, const SchemaOf& schema_of);

}  // namespace oxy::runtime
