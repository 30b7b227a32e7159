// Calls of functools.lru_cache: made while capturing, as the cache gives later calls the same object. What
// the function does besides it does once, in eager too.
#include "eval/evaluator.h"
#include "eval/objects.h"

namespace oxy::eval {

namespace {

// Each is part of the key: false with a TypeError set if it cannot be.
bool is_hashable(Evaluator& evaluator, PyObject* object) {
  if (PyTuple_CheckExact(object)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i)
      if (!is_hashable(evaluator, PyTuple_GET_ITEM(object, i))) return false;
    return true;
  }
  if (Py_TYPE(object)->tp_hash == PyObject_HashNotImplemented) {
    PyErr_Format(PyExc_TypeError, "unhashable type: '%.200s'", Py_TYPE(object)->tp_name);
    return false;
  }
  if (trace::is_trace_tensor(object))
    evaluator.stop("gives a tensor to a cached function",
                   "what it returned for this tensor may be out of date");
  if (evaluator.hashes_itself(object) || evaluator.has_python_special(object, "__eq__"))
    evaluator.stop("gives a cached function an object that hashes itself");
  return true;
}

}  // namespace

Ref Evaluator::call_cached(PyObject* callable, Arguments arguments) {
  pin(callable);
  // Such as warning_once() of transformers.
  if (!arguments.positional.empty() && is_logger(arguments.positional[0].get()))
    return record_call_effect(callable, std::move(arguments));
  for (const Ref& value : arguments.positional)
    if (!is_hashable(*this, value.get())) return {};
  for (const auto& [name, value] : arguments.keywords)
    if (!is_hashable(*this, value.get())) return {};
  return call_for_constant(callable, arguments);
}

}  // namespace oxy::eval
