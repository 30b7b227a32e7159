// Calls, by kind of callable. Python functions are inlined, known C functions run for real, everything else
// is a break.
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cpy/object_dict.h"
#include "eval/builtins/builtins.h"
#include "eval/builtins/cached_calls.h"
#include "eval/builtins/treated_calls.h"
#include "eval/externals/admission.h"
#include "eval/externals/c_calls.h"
#include "eval/externals/identity.h"
#include "eval/externals/own_code.h"
#include "eval/externals/type_lookup.h"
#include "eval/machine/inlining.h"
#include "eval/methods/c_methods.h"
#include "eval/methods/instances.h"
#include "eval/methods/partial.h"
#include "eval/numbers/numpy_scalars.h"
#include "eval/numbers/varying_number.h"
#include "eval/python/objects.h"
#include "eval/python/operator_objects.h"
#include "eval/python/traceback.h"
#include "eval/state/evaluation.h"
#include "eval/state/generator.h"
#include "eval/state/interpreter.h"
#include "eval/torch/default_device.h"
#include "eval/torch/legacy_tensors.h"
#include "eval/torch/operator_calls.h"
#include "eval/torch/torch_call.h"
#include "eval/torch/torch_definitions.h"
#include "eval/treatment/inlined.h"
#include "eval/treatment/prelude.h"
#include "eval/treatment/pure.h"
#include "guards/constants.h"
#include "runtime/values/tensor_object.h"
#include "trace/tensors/dispatch_key.h"
#include "trace/tensors/trace_error.h"

namespace oxy::eval {

using guards::kNoSource;
using guards::SourceKind;

namespace {

template <size_t N>
bool among(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The methods of Logger that write a record, with the level of the record.
constexpr std::array<std::pair<const char*, long>, 5> kLogging = {
    {{"debug", 10}, {"info", 20}, {"warning", 30}, {"error", 40}, {"critical", 50}}};

}  // namespace

Ref call_positional(Interpreter& interpreter, PyObject* callable, std::vector<Ref> positional) {
  Arguments arguments;
  arguments.positional = std::move(positional);
  return call(interpreter, callable, std::move(arguments));
}

namespace {

// A call of a method of a Logger that is not enabled for the level, so that nothing happens. The logger
// caches the answer for the level, and clears its cache when a setting changes. The cached answer is guarded.
// Nothing: another call.
std::optional<Ref> log_nothing(Interpreter& interpreter, PyObject* function, const Arguments& arguments) {
  PyObject* const logger = arguments.positional[0].get();
  const auto* const known = std::ranges::find_if(kLogging, [&](const auto& method) {
    return _PyType_Lookup(Py_TYPE(logger), interned(method.first).get()) == function;
  });
  if (known == kLogging.end() || !interpreter.externals.is_external(logger)) return std::nullopt;
  for (const char* asked : {"isEnabledFor", known->first}) {
    PyObject* const own = well_known("logging", "Logger");
    const Ref name = interned(asked);
    PyObject* const usual = _PyType_Lookup(reinterpret_cast<PyTypeObject*>(own), name.get());
    if (type_lookup(interpreter, Py_TYPE(logger), name.get()) != usual) return std::nullopt;
    const Ref bound = get_attribute(interpreter, logger, name.get());
    if (!bound || !PyMethod_Check(bound.get()) || PyMethod_GET_FUNCTION(bound.get()) != usual) {
      PyErr_Clear();
      return std::nullopt;
    }
  }
  const Ref level = Ref::steal(PyLong_FromLong(known->second));
  // Fills the cache.
  const Ref enabled = Ref::steal(PyObject_CallMethod(logger, "isEnabledFor", "O", level.get()));
  if (enabled != Py_False) {
    PyErr_Clear();
    return std::nullopt;
  }
  const Ref disabled = get_attribute(interpreter, logger, interned("disabled").get());
  const Ref remembered = get_attribute(interpreter, logger, interned("_cache").get());
  if (!disabled || !remembered) return Ref();
  if (disabled == Py_False && !get_item(interpreter, remembered.get(), level.get())) return Ref();
  return Ref::borrow(Py_None);
}

// The handler of the method that is bound to a trace tensor; null if it has none, or the callable is another.
BuiltinHandler builtin_of_tensor_method(PyObject* callable) {
  if (!PyCFunction_Check(callable)) return nullptr;
  PyObject* const self = PyCFunction_GET_SELF(callable);
  if (self == nullptr || !trace::is_trace_tensor(self)) return nullptr;
  const Ref name = interned(reinterpret_cast<PyCFunctionObject*>(callable)->m_ml->ml_name);
  PyObject* const method = _PyType_Lookup(Py_TYPE(self), name.get());
  return method == nullptr ? nullptr : find_builtin(method);
}

// Stops if an argument is a function of the program's. Python functions of torch's run for real, so they
// would call it unseen.
void refuse_callbacks(PyObject* callable, const Arguments& arguments) {
  const auto refuse = [&](PyObject* value) {
    const bool is_own = (PyFunction_Check(value) && !is_torch_function(value)) || PyMethod_Check(value) ||
                        (is_python_class(Py_TYPE(value)) && PyCallable_Check(value));
    if (is_own)
      throw Break{
          fmt::format("gives a function to {}", describe_callable(callable)), "", BreakKind::Instruction, {}};
  };
  for (const Ref& value : arguments.positional) refuse(value.get());
  for (const auto& [keyword, value] : arguments.keywords) refuse(value.get());
}

// What PyTorch's C++ raises inside of a handler ends the region, as it does inside of PyTorch's functions:
// eager raises the same.
Ref handled(Interpreter& interpreter, BuiltinHandler handler, Arguments& arguments) {
  try {
    return handler(interpreter, arguments);
  } catch (const c10::Error&) {
    set_torch_error();
  }
  stop_on_torch_error(interpreter);
}

}  // namespace

Ref call(Interpreter& interpreter, PyObject* callable, Arguments arguments) {
  Ref hold = Ref::borrow(callable);
  if (PyMethod_Check(callable)) {
    const SourceId source = interpreter.externals.source_of(callable);
    PyObject* function = PyMethod_GET_FUNCTION(callable);
    PyObject* self = PyMethod_GET_SELF(callable);
    Ref admitted_function =
        source == kNoSource
            ? Ref::borrow(function)
            : admit(interpreter, function, interpreter.guards().derived(SourceKind::MethodFunction, source));
    Ref admitted_self =
        source == kNoSource
            ? Ref::borrow(self)
            : admit(interpreter, self, interpreter.guards().derived(SourceKind::MethodSelf, source));
    arguments.positional.insert(arguments.positional.begin(), std::move(admitted_self));
    return call(interpreter, admitted_function.get(), std::move(arguments));
  }
  give_default_device(interpreter, callable, arguments);
  if (interpreter.externals.is_known_by_code(callable) && PyFunction_Check(callable) && !is_inlined(callable))
    require_identity(interpreter, callable);
  // An external bound method of C code: the object to which it is bound is external, too.
  if (interpreter.externals.is_external(callable) && is_bound_c_method(callable)) {
    const Ref self = admit(
        interpreter, PyCFunction_GET_SELF(callable),
        interpreter.guards().derived(SourceKind::MethodSelf, interpreter.externals.source_of(callable)));
    if (trace::is_trace_tensor(self.get())) {
      const Ref bound = Ref::steal(
          PyObject_GetAttrString(self.get(), reinterpret_cast<PyCFunctionObject*>(callable)->m_ml->ml_name));
      return bound ? call_torch(interpreter, bound.get(), arguments) : Ref();
    }
  }
  if (const Treatment* treatment = treatment_of(callable))
    return call_treated(interpreter, *treatment, callable, arguments);
  if (std::optional<Ref> number = call_on_varying(interpreter, callable, arguments)) return *number;
  if (BuiltinHandler handler = find_builtin(callable)) return handled(interpreter, handler, arguments);
  if (BuiltinHandler handler = builtin_of_tensor_method(callable)) {
    arguments.positional.insert(arguments.positional.begin(), Ref::borrow(PyCFunction_GET_SELF(callable)));
    return handled(interpreter, handler, arguments);
  }
  if (Ref form = python_form(callable)) {
    if (!accepts(interpreter, form.get(), arguments))
      interpreter.stop(fmt::format("calls {} with unusual arguments", describe_callable(callable)));
    return call(interpreter, form.get(), std::move(arguments));
  }
  if (interpreter.externals.is_external(callable)) {
    if (is_method_wrapper(callable)) interpreter.stop("calls a bound special method made before the call");
  }
  if (PyFunction_Check(callable)) {
    if (is_torch_function(callable)) {
      if (PyFunction_Check(callable)) {
        refuse_callbacks(callable, arguments);
        rely_on_definitions(interpreter, callable);
      }
      return call_torch(interpreter, callable, arguments);
    }
    if (!arguments.positional.empty() && is_logger(arguments.positional[0].get()))
      if (std::optional<Ref> result = log_nothing(interpreter, callable, arguments)) return *result;
    return call_python_function(interpreter, callable, std::move(arguments));
  }
  if (PyType_Check(callable))
    return call_type(interpreter, reinterpret_cast<PyTypeObject*>(callable), std::move(arguments));
  if (is_torch_function(callable)) return call_torch(interpreter, callable, arguments);
  if (PyCFunction_Check(callable)) {
    PyObject* self = PyCFunction_GET_SELF(callable);
    const std::string_view name = reinterpret_cast<PyCFunctionObject*>(callable)->m_ml->ml_name;
    if (self && trace::is_trace_tensor(self)) return call_torch(interpreter, callable, arguments);
    if (is_pybind_function(callable)) interpreter.stop(fmt::format("calls {}", describe_callable(callable)));
    if (self && !PyModule_Check(self))
      return call_c_method(interpreter, callable, self, name, std::move(arguments));
    if (is_pure_builtin(callable)) {
      const auto refuse = [&](PyObject* value) {
        refuse_own_code(interpreter, value, name);
        if (PyCallable_Check(value)) interpreter.stop(fmt::format("calls {} with a function", name));
      };
      for (const Ref& value : arguments.positional) refuse(value.get());
      for (const auto& [keyword, value] : arguments.keywords) refuse(value.get());
      return call_real_plain(interpreter, callable, arguments);
    }
    interpreter.stop(fmt::format("calls {}", describe_callable(callable)));
  }
  if (std::optional<Ref> number = call_on_scalars(interpreter, callable, arguments)) return *number;
  if (is_operator_object(callable)) return call_operator(interpreter, callable, arguments);
  PyTypeObject* type = Py_TYPE(callable);
  if (PyWeakref_CheckRefExact(callable) && interpreter.externals.is_external(callable)) {
    if (!arguments.positional.empty() || !arguments.keywords.empty())
      interpreter.stop("gives arguments to a weak reference");
    const SourceId referent =
        interpreter.guards().derived(SourceKind::WeakReferent, interpreter.externals.source_of(callable));
    return admit(interpreter, PyWeakref_GET_OBJECT(callable), referent);
  }
  if (type == &PyMethodDescr_Type || type == &PyWrapperDescr_Type || type == &PyClassMethodDescr_Type) {
    if (arguments.positional.empty())
      interpreter.stop(fmt::format("calls {} without self", describe_callable(callable)));
    Ref self = std::move(arguments.positional.front());
    arguments.positional.erase(arguments.positional.begin());
    Ref bound = Ref::steal(
        type->tp_descr_get(callable, self.get(), reinterpret_cast<PyObject*>(Py_TYPE(self.get()))));
    if (!bound) return {};
    const char* name = PyUnicode_AsUTF8(PyDescr_NAME(callable));
    return call_c_method(interpreter, bound.get(), self.get(), name ? name : "", std::move(arguments));
  }
  if (is_method_wrapper(callable)) {
    Ref self = Ref::steal(PyObject_GetAttrString(callable, "__self__"));
    Ref name = Ref::steal(PyObject_GetAttrString(callable, "__name__"));
    return call_c_method(interpreter, callable, self.get(), PyUnicode_AsUTF8(name.get()),
                         std::move(arguments));
  }
  if (is_partial(callable)) {
    std::optional<OpenedPartial> opened = opened_partial(interpreter, callable, std::move(arguments));
    return opened ? call(interpreter, opened->function.get(), std::move(opened->arguments)) : Ref();
  }
  if (is_reducible(callable) && arguments.positional.size() == 1 && arguments.keywords.empty() &&
      callable->ob_type != reinterpret_cast<PyTypeObject*>(well_known("operator", "methodcaller")))
    return call_getter(interpreter, callable, arguments.positional[0].get());
  if (c_class_name(type) == "functools._lru_cache_wrapper")
    return call_cached(interpreter, callable, std::move(arguments));
  if (c_class_name(type) == "oxyfuel.CompiledFunction") {
    pin(interpreter, callable);
    Ref wrapped = Ref::steal(PyObject_GetAttrString(callable, "__wrapped__"));
    if (!wrapped) return {};
    return call(interpreter, pin(interpreter, wrapped.get()).get(), std::move(arguments));
  }
  // A typing.NewType returns its argument.
  if (is_type_expression(callable) && well_known("_typing", "_idfunc") &&
      type_lookup(interpreter, type, interned("__call__").get()) == well_known("_typing", "_idfunc") &&
      arguments.positional.size() == 1 && arguments.keywords.empty())
    return arguments.positional[0];
  // list[int]() sets `__orig_class__` on the new object, if the object has a place for it.
  if (c_class_name(type) == "types.GenericAlias") {
    const Ref origin = Ref::steal(PyObject_GetAttrString(callable, "__origin__"));
    const bool has_no_place =
        origin && PyType_Check(origin.get()) &&
        !PyType_HasFeature(reinterpret_cast<PyTypeObject*>(origin.get()), Py_TPFLAGS_HEAPTYPE);
    if (has_no_place) return call(interpreter, pin(interpreter, origin.get()).get(), std::move(arguments));
  }
  if (has_python_special(interpreter, callable, "__call__")) {
    Ref method = special_method(interpreter, callable, "__call__");
    return method ? call(interpreter, method.get(), std::move(arguments)) : Ref();
  }
  if (!type->tp_call) {
    PyErr_Format(PyExc_TypeError, "'%.200s' object is not callable", type->tp_name);
    return {};
  }
  interpreter.stop(fmt::format("calls an object of type {}", type->tp_name));
}

}  // namespace oxy::eval
