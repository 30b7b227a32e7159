#include "hook/arguments.h"

#include <utility>

#include "cpy/type.h"

namespace oxy::hook {
namespace {

struct Announced {
  PyObject* function = nullptr;  // borrowed
  PyObject** first = nullptr;
  size_t count = 0;
};
thread_local Announced announced;

PyObject* plain_function(PyObject* callable) {
  if (PyMethod_Check(callable)) callable = PyMethod_GET_FUNCTION(callable);
  return cpy::is_called_plainly(callable) ? callable : nullptr;
}

}  // namespace

PassedArguments::PassedArguments(PyObject* callable, PyObject** first, size_t count) {
  announced = {plain_function(callable), first, count};
}

PassedArguments::~PassedArguments() {
  announced = {};
}

void give_up_arguments(cpy::Frame started) {
  const Announced arguments = std::exchange(announced, {});
  if (arguments.function == nullptr || arguments.function != started.function()) return;
  for (size_t i = 0; i < arguments.count; ++i) Py_DECREF(std::exchange(arguments.first[i], nullptr));
}

}  // namespace oxy::hook
