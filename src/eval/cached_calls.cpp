// Calls of functools.lru_cache: made while capturing, as the cache gives later calls the same object. What
// the function does besides it does once, in eager too.
#include <algorithm>

#include "eval/evaluator.h"
#include "eval/objects.h"
#include "eval/varying_number.h"
#include "guards/constants.h"

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

// The same result again and again is told from equal ones only by who changes it.
bool may_change(Evaluator& evaluator, PyObject* result) {
  if (PyTuple_CheckExact(result)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(result); ++i)
      if (may_change(evaluator, PyTuple_GET_ITEM(result, i))) return true;
    return false;
  }
  return !guards::is_constant(result) && !is_varying_number(result) && !is_identity_object(result) &&
         !evaluator.is_external(result);
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
  const auto may_be_written = [&](const Ref& value) {
    return is_external(value.get()) && !is_identity_object(value.get()) && !guards::is_constant(value.get());
  };
  const bool sees_writes = has_written() && (std::ranges::any_of(arguments.positional, may_be_written) ||
                                             std::ranges::any_of(arguments.keywords, may_be_written,
                                                                 [](const auto& k) { return k.second; }));
  if (!sees_writes) return call_for_constant(callable, arguments);
  // The real function would not see what the region has written: it is evaluated, if nobody can tell.
  Ref wrapped = generic_get_attribute(callable, Ref::steal(PyUnicode_InternFromString("__wrapped__")).get());
  if (!wrapped) return {};
  const RecordedAs cached(*this, checkpoint_, "a cached function");
  Ref result = call(wrapped.get(), std::move(arguments));
  if (result && may_change(*this, result.get()))
    stop("a cached function returns what may be changed, after the region has written to what it may read");
  return result;
}

}  // namespace oxy::eval
