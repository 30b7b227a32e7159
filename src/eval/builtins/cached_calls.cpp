// Calls of functions with a functools.lru_cache. If the cache has the answer, the call is made during the
// capture: later calls get the same object. Without an answer it is a break, so that the function runs where
// the program calls it.
#include "eval/builtins/cached_calls.h"

#include <algorithm>
#include <optional>
#include <ranges>

#include "cpy/object_dict.h"
#include "eval/builtins/treated_calls.h"
#include "eval/externals/admission.h"
#include "eval/externals/constants.h"
#include "eval/externals/external_containers.h"
#include "eval/externals/hashing.h"
#include "eval/externals/type_lookup.h"
#include "eval/numbers/varying_number.h"
#include "eval/python/loggers.h"
#include "eval/python/objects.h"
#include "eval/state/interpreter.h"
#include "guards/constants.h"

namespace oxy::eval {

using guards::CheckKind;

namespace {

// Arguments are parts of the key. False with a TypeError set if one is not hashable.
bool is_hashable(Interpreter& interpreter, PyObject* object) {
  if (PyTuple_CheckExact(object)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i)
      if (!is_hashable(interpreter, PyTuple_GET_ITEM(object, i))) return false;
    return true;
  }
  if (Py_TYPE(object)->tp_hash == PyObject_HashNotImplemented) {
    PyErr_Format(PyExc_TypeError, "unhashable type: '%.200s'", Py_TYPE(object)->tp_name);
    return false;
  }
  if (trace::is_trace_tensor(object))
    interpreter.stop("gives a tensor to a cached function",
                     "what it returned for this tensor may be out of date");
  if (compares_in_library(object)) return true;
  if (hashes_itself(interpreter, object) || has_python_special(interpreter, object, "__eq__"))
    interpreter.stop("gives a cached function an object that hashes itself");
  return true;
}

// The place where a cache keeps the answer for some arguments.
struct Place {
  Ref cache;  // a dict
  Ref key;

  // The entry, borrowed: the answer, or an object that holds it; null if there is none yet.
  PyObject* entry() const {
    PyObject* const found = PyDict_GetItemWithError(cache.get(), key.get());
    PyErr_Clear();
    return found;
  }
};

// The key, as the C code of functools makes it: the arguments, a mark and the keywords, and the types of all
// if the cache tells them apart. Null, without an exception, if it cannot be told.
Ref cache_key(PyObject* cached, PyObject* held, const Arguments& arguments) {
  const Ref parameters = Ref::steal(PyObject_CallMethod(cached, "cache_parameters", nullptr));
  PyObject* const typed = parameters ? PyDict_GetItemString(parameters.get(), "typed") : nullptr;
  PyErr_Clear();
  if (typed != Py_False && typed != Py_True) return {};
  Ref parts = Ref::steal(PyList_New(0)), types = Ref::steal(PyList_New(0));
  const auto add = [&](PyObject* value) {
    PyList_Append(parts.get(), value);
    PyList_Append(types.get(), reinterpret_cast<PyObject*>(Py_TYPE(value)));
  };
  for (const Ref& value : arguments.positional) add(value.get());
  if (!arguments.keywords.empty()) {
    PyObject* mark = nullptr;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(held); ++i)
      if (Py_IS_TYPE(PyList_GET_ITEM(held, i), &PyBaseObject_Type)) mark = PyList_GET_ITEM(held, i);
    if (!mark) return {};
    PyList_Append(parts.get(), mark);
    for (const auto& [name, value] : arguments.keywords) {
      PyList_Append(parts.get(), name.get());
      add(value.get());
    }
  }
  if (typed == Py_True) {
    PyList_SetSlice(parts.get(), PyList_GET_SIZE(parts.get()), PyList_GET_SIZE(parts.get()), types.get());
  } else if (PyList_GET_SIZE(parts.get()) == 1) {
    PyObject* const only = PyList_GET_ITEM(parts.get(), 0);
    if (PyUnicode_CheckExact(only) || PyLong_CheckExact(only)) return Ref::borrow(only);
  }
  return Ref::steal(PyList_AsTuple(parts.get()));
}

// Nothing if the place is not found. Only the garbage collector is shown the dict of a cache.
std::optional<Place> place_of_answer(PyObject* cached, const Arguments& arguments) {
  const Ref held =
      Ref::steal(PyObject_CallFunctionObjArgs(well_known("gc", "get_referents"), cached, nullptr));
  PyErr_Clear();
  if (!held) return std::nullopt;
  Place place;
  place.key = cache_key(cached, held.get(), arguments);
  if (!place.key) return std::nullopt;
  PyObject* const attributes = cpy::existing_dict(cached);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(held.get()); ++i) {
    PyObject* const candidate = PyList_GET_ITEM(held.get(), i);
    if (!PyDict_CheckExact(candidate) || candidate == attributes) continue;
    if (place.cache) return std::nullopt;
    place.cache = Ref::borrow(candidate);
  }
  if (!place.cache) return std::nullopt;
  return place;
}

bool keeps_answers(PyObject* cached) {
  const Ref parameters = Ref::steal(PyObject_CallMethod(cached, "cache_parameters", nullptr));
  PyObject* const most = parameters ? PyDict_GetItemString(parameters.get(), "maxsize") : nullptr;
  PyErr_Clear();
  return most && (!PyLong_Check(most) || PyLong_AsLong(most) != 0);
}

// Whether it is one of typing's caches, for List[int] and the like. Its function has no effects.
bool makes_type_expression(PyObject* cached) {
  const Ref wrapped = Ref::steal(PyObject_GetAttrString(cached, "__wrapped__"));
  PyErr_Clear();
  if (!wrapped || !PyFunction_Check(wrapped.get())) return false;
  PyObject* const module = PyDict_GetItemString(PyFunction_GET_GLOBALS(wrapped.get()), "__name__");
  const std::string_view name = text_of_str(module);
  return name == "typing" || name == "typing_extensions";
}

}  // namespace

namespace {

// Guards that the argument is the same at every call: constants by value, others by identity.
void rely_on(Interpreter& interpreter, PyObject* argument) {
  if (PyTuple_Check(argument)) {
    const Ref items = materialize(interpreter, argument);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i)
      rely_on(interpreter, PyTuple_GET_ITEM(items.get(), i));
  } else if (interpreter.externals.is_external(argument) && !guards::is_value(argument) &&
             !is_varying_number(argument)) {
    interpreter.guards().require(interpreter.externals.source_of(argument), CheckKind::Identity, argument);
  }
}

}  // namespace

Ref call_cached(Interpreter& interpreter, PyObject* callable, Arguments arguments) {
  pin(interpreter, callable);
  for (const Ref& value : arguments.positional)
    if (!is_hashable(interpreter, value.get())) return {};
  for (const auto& [name, value] : arguments.keywords)
    if (!is_hashable(interpreter, value.get())) return {};
  const auto rely_on_key = [&interpreter](Ref& value) {
    value = key_of(interpreter, value.get());
    rely_on(interpreter, value.get());
  };
  for (Ref& value : arguments.positional) rely_on_key(value);
  for (auto& [name, value] : arguments.keywords) rely_on_key(value);
  const std::optional<Place> place = place_of_answer(callable, arguments);
  if (!place) interpreter.stop("calls a cached function whose cache is not found");
  // A function that only logs, such as warning_once() of transformers, may log at the capture.
  const bool only_tells = !arguments.positional.empty() && is_logger(arguments.positional[0].get());
  // What was written before is not in the objects yet, so that nobody may look at them.
  const auto is_constant = [](const Ref& value) { return guards::is_constant(value.get()); };
  const auto looks_at_arguments_alone = [&] {
    return logs_by_library_alone(arguments.positional[0].get()) &&
           std::all_of(arguments.positional.begin() + 1, arguments.positional.end(), is_constant) &&
           std::ranges::all_of(arguments.keywords | std::views::values, is_constant);
  };
  if (!place->entry() && only_tells && interpreter.shadows.has_written() && !looks_at_arguments_alone())
    interpreter.stop("tells something, once, behind writes");
  if (!place->entry() && !only_tells) {
    constexpr const char* kReason = "calls a cached function that has no answer yet";
    bool is_asked_again = keeps_answers(callable);
    const auto look_at = [&](PyObject* argument) { is_asked_again &= lasts(interpreter, argument); };
    for (const Ref& value : arguments.positional) look_at(value.get());
    for (const auto& [name, value] : arguments.keywords) look_at(value.get());
    const bool is_expression = makes_type_expression(callable);
    if (!is_asked_again && is_expression)
      interpreter.stop("makes a type expression of a class or type variable that is made anew at each call",
                       "such types can be made once, outside of the function");
    if (!is_asked_again) interpreter.stop(kReason);
    if (!is_expression)
      throw Break{kReason, "a later call finds the answer in the cache", BreakKind::MissingAnswer,
                  MissingAnswer{place->cache, place->key}};
  }
  const bool runs_code = place->entry() == nullptr;
  Ref result = call_for_constant(interpreter, callable, arguments, runs_code);
  if (!result) return {};
  // The answer stays until the cache is cleared, or another answer takes its place.
  PyObject* const entry = place->entry();
  if (!entry) interpreter.stop("calls a cached function whose answer is not found in its cache");
  interpreter.guards().require(
      interpreter.guards().dict_item(interpreter.guards().pinned(place->cache.get()), place->key.get()),
      CheckKind::Identity, entry);
  return result;
}

}  // namespace oxy::eval
