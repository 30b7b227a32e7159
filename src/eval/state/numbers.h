// Varying numbers: ints and floats that change from call to call, so that they are no constants of the
// capture (numbers/varying_number.h).
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
  // By the object that stands for the number in the program. Externals::keep_alive keeps the keys alive.
  std::unordered_map<PyObject*, Varying> varying;
  // Trace tensors of those numbers that are graph inputs: float64 or int64, without dimensions.
  std::unordered_map<guards::SourceId, cpy::Ref> inputs;
  int calculations = 0;  // how many sources of kind Calculated were made
};

}  // namespace oxy::eval
