#include "eval/externals/c_calls.h"

#include <fmt/format.h>

#include <algorithm>

#include "eval/externals/admission.h"
#include "eval/externals/plain.h"
#include "eval/numbers/numpy_scalars.h"
#include "eval/numbers/varying_number.h"
#include "eval/python/objects.h"
#include "eval/state/interpreter.h"
#include "eval/state/torch_call_log.h"
#include "guards/constants.h"
#include "trace/tensors/trace_error.h"

namespace oxy::eval {

Ref call_real(Interpreter& interpreter, PyObject* callable, const Arguments& arguments) {
  const auto varies = [](const Ref& value) { return is_varying_number(value.get()); };
  if (std::ranges::any_of(arguments.positional, varies) ||
      std::ranges::any_of(arguments.keywords, [&](const auto& keyword) { return varies(keyword.second); })) {
    Arguments constants = arguments;
    for (Ref& value : constants.positional) value = constant_of(interpreter, value.get());
    for (auto& [name, value] : constants.keywords) value = constant_of(interpreter, value.get());
    return call_as_it_is(callable, constants);
  }
  return call_as_it_is(callable, arguments);
}

Ref call_as_it_is(PyObject* callable, const Arguments& arguments) {
  std::vector<PyObject*> values;
  values.reserve(arguments.positional.size() + arguments.keywords.size() + 1);
  values.push_back(nullptr);
  for (const Ref& value : arguments.positional) values.push_back(value.get());
  Ref names;
  if (!arguments.keywords.empty()) {
    names = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(arguments.keywords.size())));
    for (size_t i = 0; i < arguments.keywords.size(); ++i) {
      PyTuple_SET_ITEM(names.get(), static_cast<Py_ssize_t>(i), arguments.keywords[i].first.new_reference());
      values.push_back(arguments.keywords[i].second.get());
    }
  }
  return Ref::steal(PyObject_Vectorcall(callable, values.data() + 1,
                                        arguments.positional.size() | PY_VECTORCALL_ARGUMENTS_OFFSET,
                                        names.get()));
}

Ref call_real_plain(Interpreter& interpreter, PyObject* callable, const Arguments& arguments, ShownAs ints) {
  Arguments shown;
  const std::string what = describe_callable(callable);
  for (const Ref& value : arguments.positional)
    shown.positional.push_back(plain(interpreter, value.get(), what.c_str(), ints));
  for (const auto& [name, value] : arguments.keywords)
    shown.keywords.emplace_back(name, plain(interpreter, value.get(), what.c_str(), ints));
  const auto called = [&] {
    Ref result = call_real(interpreter, callable, shown);
    if (result || PyErr_ExceptionMatches(trace::trace_error())) return result;
    for (size_t i = 0; i < shown.positional.size(); ++i) {
      PyObject* const given = arguments.positional[i].get();
      if (!is_container(given) || Py_TYPE(given) == Py_TYPE(shown.positional[i].get())) continue;
      PyErr_Clear();
      interpreter.stop(
          fmt::format("{} raises, given an object of a subclass", what));  // which its words name
    }
    return result;
  };
  if (!interpreter.torch_calls) return called();
  TorchCallLog::Pending pending = interpreter.torch_calls->begin(callable, shown.positional, shown.keywords);
  Ref result = called();
  if (result) interpreter.torch_calls->end(std::move(pending), result.get());
  return result;
}

std::optional<Ref> call_on_scalars(Interpreter& interpreter, PyObject* callable, const Arguments& arguments) {
  if (c_class_name(Py_TYPE(callable)) != "numpy.ufunc" || !arguments.keywords.empty()) return std::nullopt;
  // numpy.frompyfunc() makes ufuncs of Python functions. They are not entries of the module.
  const Ref name = Ref::steal(PyObject_GetAttrString(callable, "__name__"));
  const char* text = name && PyUnicode_Check(name.get()) ? PyUnicode_AsUTF8(name.get()) : nullptr;
  if (!text || well_known("numpy", text) != callable) {
    PyErr_Clear();
    return std::nullopt;
  }
  for (const Ref& value : arguments.positional) {
    if (!guards::is_numpy_scalar(value.get()) && !guards::is_constant(value.get())) return std::nullopt;
    if (guards::is_numpy_scalar(value.get())) known_scalar(interpreter, value.get());
  }
  pin(interpreter, callable);
  Ref result = run_quietly(interpreter, [&] { return call_real(interpreter, callable, arguments); });
  if (result && !guards::is_numpy_scalar(result.get()) && !guards::is_constant(result.get()))
    return std::nullopt;
  return result;
}

}  // namespace oxy::eval
