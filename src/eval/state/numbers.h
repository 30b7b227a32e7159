// Numbers that are no constants of the capture: they vary from call to call.
#pragma once

#include <Python.h>

#include <unordered_map>

#include "cpy/ref.h"
#include "guards/source.h"

namespace oxy::eval {

struct Numbers {
  struct Varying {
    cpy::Ref value;  // at this call
    guards::SourceId source;
  };
  std::unordered_map<PyObject*, Varying> varying;  // kept alive by Externals::keep_alive
  // Tensors of the graph: float64 or int64, no dimensions.
  std::unordered_map<guards::SourceId, cpy::Ref> inputs;
  int calculations = 0;
};

}  // namespace oxy::eval
