// Calls of functools.lru_cache: made while capturing, as the cache gives later calls the same object. What
// the function does besides it does once, in eager too.
#include <optional>

#include "cpy/object_dict.h"
#include "eval/evaluator.h"
#include "eval/objects.h"
#include "eval/varying_number.h"
#include "guards/constants.h"

namespace oxy::eval {

using guards::CheckKind;

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

// Where a cache keeps an answer.
struct Answer {
  Ref cache;  // a dict
  Ref key;
  PyObject* entry;  // borrowed: the answer, or what holds it
};

// What the C code of functools makes a key of: the arguments, behind a mark the keywords, and the types of
// all if the cache tells them apart. Null, no error: it cannot be said.
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

// None if the cache has none, or it is not known. A cache shows itself to the garbage collector alone.
std::optional<Answer> find_answer(PyObject* cached, const Arguments& arguments) {
  const Ref held =
      Ref::steal(PyObject_CallFunctionObjArgs(well_known("gc", "get_referents"), cached, nullptr));
  PyErr_Clear();
  if (!held) return std::nullopt;
  const Ref key = cache_key(cached, held.get(), arguments);
  if (!key) return std::nullopt;
  PyObject* const attributes = cpy::existing_dict(cached);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(held.get()); ++i) {
    PyObject* const candidate = PyList_GET_ITEM(held.get(), i);
    if (!PyDict_CheckExact(candidate) || candidate == attributes) continue;
    if (PyObject* entry = PyDict_GetItem(candidate, key.get()))
      return Answer{Ref::borrow(candidate), key, entry};
  }
  return std::nullopt;
}

// Whether another answer takes the place of one that the region may have had.
bool is_full(PyObject* cached) {
  const Ref info = Ref::steal(PyObject_CallMethod(cached, "cache_info", nullptr));
  const Ref most = info ? Ref::steal(PyObject_GetAttrString(info.get(), "maxsize")) : Ref();
  const Ref size = info ? Ref::steal(PyObject_GetAttrString(info.get(), "currsize")) : Ref();
  PyErr_Clear();
  return most && size && most != Py_None && PyObject_RichCompareBool(size.get(), most.get(), Py_GE) == 1;
}

}  // namespace

// The answer is that for these arguments: these values, and of others these objects.
void Evaluator::rely_on(PyObject* argument) {
  if (PyTuple_Check(argument)) {
    const Ref items = materialize(argument);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i) rely_on(PyTuple_GET_ITEM(items.get(), i));
  } else if (is_external(argument) && !guards::is_constant(argument) && !is_varying_number(argument)) {
    guards().require(source_of(argument), CheckKind::Identity, argument);
  }
}

Ref Evaluator::call_cached(PyObject* callable, Arguments arguments) {
  pin(callable);
  for (const Ref& value : arguments.positional)
    if (!is_hashable(*this, value.get())) return {};
  for (const auto& [name, value] : arguments.keywords)
    if (!is_hashable(*this, value.get())) return {};
  const auto rely_on_key = [this](Ref& value) {
    value = key_of(value.get());
    rely_on(value.get());
  };
  for (Ref& value : arguments.positional) rely_on_key(value);
  for (auto& [name, value] : arguments.keywords) rely_on_key(value);
  // What runs now would not see what the region has done, nor do its own behind it.
  if (!find_answer(callable, arguments)) {
    // Such as warning_once() of transformers.
    const bool only_tells = !arguments.positional.empty() && is_logger(arguments.positional[0].get());
    if (has_written() && !only_tells)
      stop("calls a cached function that has no answer yet, after the region has changed something");
    if (is_full(callable)) stop("calls a cached function that has no answer, and no room for it");
  }
  Ref result = call_for_constant(callable, arguments);
  if (!result) return {};
  // Until the cache is cleared or the answer makes room for another.
  const std::optional<Answer> answer = find_answer(callable, arguments);
  if (!answer) stop("calls a cached function whose answer is not found in its cache");
  guards().require(guards().dict_item(guards().pinned(answer->cache.get()), answer->key.get()),
                   CheckKind::Identity, answer->entry);
  return result;
}

}  // namespace oxy::eval
