// Generators that the evaluator runs: Python objects that only the evaluator can advance.
#pragma once

#include <Python.h>

#include <memory>

#include "eval/evaluator.h"

namespace oxy::eval {

enum class GeneratorState : uint8_t { Created, Suspended, Running, Finished };

struct GeneratorData {
  Frame frame;
  GeneratorState state = GeneratorState::Created;
  Ref returned;  // the value of its return statement, once finished
};

// A new generator object over a frame whose arguments are bound.
Ref make_generator(std::unique_ptr<GeneratorData> data);
bool is_generator(PyObject* object);
// Whether a generator died inside a try or with block since the last time this was asked, on this thread: CPython
// would have closed it, which runs its handlers.
bool take_abandoned();
GeneratorData& generator_data(PyObject* object);

}  // namespace oxy::eval
