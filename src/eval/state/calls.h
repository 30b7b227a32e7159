// State of the interpreter about calls: functions, exceptions and generators that the program has made, and
// the checkpoint that is under way.
#pragma once

#include <Python.h>

#include <memory>
#include <unordered_set>
#include <utility>
#include <vector>

#include "cpy/ref.h"

namespace oxy::eval {

struct GeneratorData;
// Generators that died while they were suspended in a try or with block. They are still to be closed.
using AbandonedGenerators = std::vector<std::unique_ptr<GeneratorData>>;

struct Calls {
  std::unordered_set<PyObject*> fresh_functions;  // made while interpreting; kept alive
  std::unordered_set<PyObject*> raised;           // exceptions that were caught; kept alive
  // All generators that were made: a token that lives as long as the generator, and the generator (borrowed).
  std::vector<std::pair<std::weak_ptr<void>, PyObject*>> generators;
  std::shared_ptr<AbandonedGenerators> abandoned;
  std::vector<cpy::Ref> function_contexts;  // the `ctx` objects of torch.autograd.Function
  std::vector<cpy::Ref> hooked;             // tensors that the program has registered a hook on
  // The graph::Location::checkpoint that recorded nodes get now; 0: none.
  int32_t checkpoint = 0;
  int32_t checkpoints = 0;  // how many numbers were given out
  // torch.compiler.is_compiling() was asked, and said yes. If the program raises after that, it may be
  // because of the answer. Then the driver tries with the answer that it has in eager.
  bool told_that_it_compiles = false;

  bool is_fresh_function(PyObject* function) const { return fresh_functions.contains(function); }
  bool in_checkpoint() const { return checkpoint > 0; }
  // The number for a call of torch.utils.checkpoint.checkpoint(): the present one inside of another
  // checkpoint or of a backward pass, else a new one.
  int32_t new_checkpoint() { return checkpoint == 0 ? ++checkpoints : checkpoint; }
};

}  // namespace oxy::eval
