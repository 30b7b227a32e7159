// What interpreted calls have made and what goes on around them.
#pragma once

#include <Python.h>

#include <memory>
#include <unordered_set>
#include <utility>
#include <vector>

#include "cpy/ref.h"

namespace oxy::eval {

struct GeneratorData;
using AbandonedGenerators = std::vector<std::unique_ptr<GeneratorData>>;

struct Calls {
  std::unordered_set<PyObject*> fresh_functions;  // made while interpreting; kept alive
  std::unordered_set<PyObject*> raised;           // exceptions that were caught; kept alive
  // The generators that were made, while they live.
  std::vector<std::pair<std::weak_ptr<void>, PyObject*>> generators;
  std::shared_ptr<AbandonedGenerators> abandoned;
  std::vector<cpy::Ref> function_contexts;  // of torch.autograd.Function
  std::vector<cpy::Ref> hooked;             // tensors that the program has registered a hook on
  int32_t checkpoint = 0;                   // graph::Location::checkpoint of what is recorded
  int32_t checkpoints = 0;
  // The program was told that it is being compiled. If it then raises, it may be for that alone: the region
  // is left to eager as a whole, which tells it otherwise.
  bool told_that_it_compiles = false;

  bool is_fresh_function(PyObject* function) const { return fresh_functions.contains(function); }
  bool in_checkpoint() const { return checkpoint > 0; }
  // What a call of checkpoint() is recorded as: a new one, unless it is inside of another or of a backward
  // pass.
  int32_t new_checkpoint() { return checkpoint == 0 ? ++checkpoints : checkpoint; }
};

}  // namespace oxy::eval
