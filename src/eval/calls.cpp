// Calls: Python functions are inlined, known C functions run for real, everything else ends the segment.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cpy/object_dict.h"
#include "eval/builtins.h"
#include "eval/evaluator.h"
#include "eval/generator.h"
#include "eval/legacy_tensors.h"
#include "eval/objects.h"
#include "eval/operator_calls.h"
#include "eval/partial.h"
#include "eval/prelude.h"
#include "eval/torch_call.h"
#include "eval/torch_definitions.h"
#include "eval/traceback.h"
#include "eval/varying_number.h"
#include "guards/constants.h"
#include "runtime/tensor_object.h"
#include "trace/dispatch_key.h"
#include "trace/trace_error.h"

namespace oxy::eval {

using guards::kNoSource;
using guards::SourceKind;

namespace {

template <size_t N>
bool among(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The methods of Logger that write a record, and its level.
constexpr std::array<std::pair<const char*, long>, 5> kLogging = {
    {{"debug", 10}, {"info", 20}, {"warning", 30}, {"error", 40}, {"critical", 50}}};

constexpr std::string_view kForeach = "_foreach_";

}  // namespace

void stop_on_torch_error(const Evaluator& evaluator) {
  cpy::Ref type, value, traceback;
  PyErr_Fetch(type.out(), value.out(), traceback.out());
  Ref text = value ? Ref::steal(PyObject_Str(value.get())) : Ref();
  const char* utf8 = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  PyErr_Clear();
  std::string message = utf8 ? utf8 : "unknown error";
  if (const size_t line_end = message.find('\n'); line_end != std::string::npos) message.resize(line_end);
  if (type == trace::trace_error()) evaluator.stop(message);
  if (type == trace::internal_trace_error())
    evaluator.stop("an error of the compiler's own, while it recorded a call of torch");
  if (message.find(trace::tracing_key_name()) != std::string::npos)
    evaluator.stop("torch looks for the memory of a tensor, which has none while it is captured");
  if (message.find("INTERNAL ASSERT FAILED") != std::string::npos)
    evaluator.stop("torch does something with a tensor that it cannot do while that is captured");
  evaluator.stop(fmt::format("torch raises {}: {}",
                             type ? reinterpret_cast<PyTypeObject*>(type.get())->tp_name : "an error",
                             message));
}

Ref Evaluator::call_positional(PyObject* callable, std::vector<Ref> positional) {
  Arguments arguments;
  arguments.positional = std::move(positional);
  return call(callable, std::move(arguments));
}

Ref Evaluator::call_real(PyObject* callable, const Arguments& arguments) {
  const auto varies = [](const Ref& value) { return is_varying_number(value.get()); };
  if (std::ranges::any_of(arguments.positional, varies) ||
      std::ranges::any_of(arguments.keywords, [&](const auto& keyword) { return varies(keyword.second); })) {
    Arguments constants = arguments;
    for (Ref& value : constants.positional) value = constant_of(value.get());
    for (auto& [name, value] : constants.keywords) value = constant_of(value.get());
    return call_real(callable, constants);
  }
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

Ref Evaluator::call_real_plain(PyObject* callable, const Arguments& arguments) {
  Arguments shown;
  const std::string what = describe_callable(callable);
  for (const Ref& value : arguments.positional) shown.positional.push_back(plain(value.get(), what.c_str()));
  for (const auto& [name, value] : arguments.keywords)
    shown.keywords.emplace_back(name, plain(value.get(), what.c_str()));
  const auto called = [&] {
    Ref result = call_real(callable, shown);
    if (result || PyErr_ExceptionMatches(trace::trace_error())) return result;
    for (size_t i = 0; i < shown.positional.size(); ++i) {
      PyObject* const given = arguments.positional[i].get();
      if (!is_container(given) || Py_TYPE(given) == Py_TYPE(shown.positional[i].get())) continue;
      PyErr_Clear();
      stop(fmt::format("{} raises, given an object of a subclass", what));  // which its words name
    }
    return result;
  };
  if (!torch_calls_) return called();
  TorchCallLog::Pending pending = torch_calls_->begin(callable, shown.positional, shown.keywords);
  Ref result = called();
  if (result) torch_calls_->end(std::move(pending), result.get());
  return result;
}

namespace {

// The name of a method of tensors, bound or not; empty for anything else.
std::string_view tensor_method_name(PyObject* callable) {
  if (PyCFunction_Check(callable)) {
    PyObject* self = PyCFunction_GET_SELF(callable);
    return self && runtime::is_tensor(self) ? reinterpret_cast<PyCFunctionObject*>(callable)->m_ml->ml_name
                                            : "";
  }
  PyObject* name = nullptr;
  if (Py_TYPE(callable) == &PyMethodDescr_Type) {
    name = PyDescr_NAME(callable);
  } else if (PyFunction_Check(callable)) {
    auto* function = reinterpret_cast<PyFunctionObject*>(callable);
    if (PyUnicode_Check(function->func_qualname) &&
        std::string_view(PyUnicode_AsUTF8(function->func_qualname)).starts_with("Tensor."))
      name = function->func_name;
  }
  const char* utf8 = name ? PyUnicode_AsUTF8(name) : nullptr;
  return utf8 ? utf8 : "";
}

}  // namespace

// tensor.requires_grad_(): of a tensor made by the region, or what changes nothing.
Ref Evaluator::require_grad(PyObject* callable, const Arguments& arguments) {
  std::vector<Ref> given = arguments.positional;
  if (PyCFunction_Check(callable)) given.insert(given.begin(), Ref::borrow(PyCFunction_GET_SELF(callable)));
  for (const auto& [name, value] : arguments.keywords) given.push_back(value);
  const bool is_plain = !given.empty() && given.size() <= 2 && runtime::is_tensor(given[0].get()) &&
                        (given.size() == 1 || PyBool_Check(given[1].get()));
  const bool wanted = given.size() == 1 || given.back() == Py_True;
  if (!is_plain || torch_calls_) stop("calls .requires_grad_ of a tensor");
  const at::Tensor& tensor = runtime::tensor_of(given[0].get());
  if (tensor.requires_grad() == wanted) return given[0];
  const bool can = trace::is_trace_tensor(given[0].get()) && !is_external(given[0].get()) && wanted &&
                   !tensor.is_view() && !tensor.is_inference() && at::isFloatingType(tensor.scalar_type());
  if (!can) stop("calls .requires_grad_ of a tensor");
  tensor.set_requires_grad(true);
  return given[0];
}

// tensor.new_tensor(data): a tensor of the data alone, of this one's type and device unless others are asked
// for.
Ref Evaluator::make_like(PyObject* tensor, Arguments arguments) {
  for (const char* name : {"dtype", "device"}) {
    const auto is_asked = [&](const auto& given) {
      return PyUnicode_CompareWithASCIIString(given.first.get(), name) == 0;
    };
    if (std::ranges::none_of(arguments.keywords, is_asked))
      arguments.keywords.emplace_back(interned(name), Ref::steal(PyObject_GetAttrString(tensor, name)));
  }
  for (const Ref& value : arguments.positional)
    if (runtime::is_tensor(value.get())) stop("copies a tensor by new_tensor()");
  return call(well_known("torch", "tensor"), std::move(arguments));
}

std::optional<Ref> Evaluator::known_list(PyObject* callable, const Arguments& arguments) {
  const bool is_bound = PyCFunction_Check(callable);
  if (arguments.positional.size() != (is_bound ? 0 : 1)) return std::nullopt;  // it refuses these
  PyObject* const self = is_bound ? PyCFunction_GET_SELF(callable) : arguments.positional[0].get();
  const std::optional<at::Tensor> elements = self ? recorder_.known_elements(self) : std::nullopt;
  if (!elements) return std::nullopt;
  const trace::Recorder::Pause pause;
  const Ref tensor = Ref::steal(runtime::wrap_tensor(*elements));
  return Ref::steal(PyObject_CallMethod(tensor.get(), "tolist", nullptr));
}

Ref Evaluator::call_torch(PyObject* callable, const Arguments& arguments) {
  // It may have been loaded before the segment began.
  const std::string_view method = tensor_method_name(callable);
  if (method == "requires_grad_") return require_grad(callable, arguments);
  if (method == "new" || method == "new_tensor") {
    Arguments others = arguments;
    Ref self = PyCFunction_Check(callable) ? Ref::borrow(PyCFunction_GET_SELF(callable)) : Ref();
    if (!self && !others.positional.empty()) {
      self = others.positional[0];
      others.positional.erase(others.positional.begin());
    }
    if (!self || !runtime::is_tensor(self.get()))
      stop(fmt::format("calls Tensor.{}() without a tensor", method));
    return method == "new" ? new_like(*this, self.get(), others) : make_like(self.get(), std::move(others));
  }
  if (method == "tolist" && arguments.keywords.empty())
    if (std::optional<Ref> list = known_list(callable, arguments)) return *list;
  if (is_untraceable(method)) stop(fmt::format("calls .{} of a tensor", method));
  if (const std::optional<Arguments> tensors = tensors_for_varying(callable, method, arguments))
    return call_torch(callable, *tensors);
  if (PyCFunction_Check(callable)) {
    auto* function = reinterpret_cast<PyCFunctionObject*>(callable);
    const std::string_view name = function->m_ml->ml_name;
    if (name.ends_with('_') && is_untraceable(name)) stop(fmt::format("calls torch.{}", name));
    if (name.starts_with(kForeach)) return call_foreach(name.substr(kForeach.size()), arguments);
    if (!arguments.keywords.empty()) {
      Arguments others = arguments;
      PyObject* self = method.empty() ? nullptr : function->m_self;
      if (!self && !others.positional.empty()) {
        self = arguments.positional[0].get();
        others.positional.erase(others.positional.begin());
      }
      if (auto result = self ? call_with_factor(self, name, others) : std::nullopt) return std::move(*result);
    }
  }
  return torch_result(*this, [&] { return call_real_plain(callable, arguments); });
}

// A call of a logger that is not enabled for the level, which does nothing: guarded is what the logger
// remembers of that level, and forgets when anything changes.
std::optional<Ref> Evaluator::log_nothing(PyObject* function, const Arguments& arguments) {
  PyObject* const logger = arguments.positional[0].get();
  const auto* const known = std::ranges::find_if(kLogging, [&](const auto& method) {
    return _PyType_Lookup(Py_TYPE(logger), interned(method.first).get()) == function;
  });
  if (known == kLogging.end() || !is_external(logger)) return std::nullopt;
  for (const char* asked : {"isEnabledFor", known->first}) {
    PyObject* const own = well_known("logging", "Logger");
    const Ref name = interned(asked);
    PyObject* const usual = _PyType_Lookup(reinterpret_cast<PyTypeObject*>(own), name.get());
    if (type_lookup(Py_TYPE(logger), name.get()) != usual) return std::nullopt;
    const Ref bound = get_attribute(logger, name.get());
    if (!bound || !PyMethod_Check(bound.get()) || PyMethod_GET_FUNCTION(bound.get()) != usual) {
      PyErr_Clear();
      return std::nullopt;
    }
  }
  const Ref level = Ref::steal(PyLong_FromLong(known->second));
  // Fills what it remembers.
  const Ref enabled = Ref::steal(PyObject_CallMethod(logger, "isEnabledFor", "O", level.get()));
  if (enabled != Py_False) {
    PyErr_Clear();
    return std::nullopt;
  }
  const Ref disabled = get_attribute(logger, interned("disabled").get());
  const Ref remembered = get_attribute(logger, interned("_cache").get());
  if (!disabled || !remembered) return Ref();
  if (disabled == Py_False && !get_item(remembered.get(), level.get())) return Ref();
  return Ref::borrow(Py_None);
}

namespace {

// Python functions of torch's run as they are: what they call of the program's own would run with them.
void refuse_callbacks(PyObject* callable, const Arguments& arguments) {
  const auto refuse = [&](PyObject* value) {
    const bool is_own = (PyFunction_Check(value) && !is_torch_function(value)) || PyMethod_Check(value) ||
                        (is_python_class(Py_TYPE(value)) && PyCallable_Check(value));
    if (is_own) throw Break{fmt::format("gives a function to {}", describe_callable(callable)), "", {}};
  };
  for (const Ref& value : arguments.positional) refuse(value.get());
  for (const auto& [keyword, value] : arguments.keywords) refuse(value.get());
}

}  // namespace

Ref Evaluator::call(PyObject* callable, Arguments arguments) {
  Ref hold = Ref::borrow(callable);
  if (PyMethod_Check(callable)) {
    const SourceId source = source_of(callable);
    PyObject* function = PyMethod_GET_FUNCTION(callable);
    PyObject* self = PyMethod_GET_SELF(callable);
    Ref admitted_function = source == kNoSource
                                ? Ref::borrow(function)
                                : admit(function, guards().derived(SourceKind::MethodFunction, source));
    Ref admitted_self = source == kNoSource ? Ref::borrow(self)
                                            : admit(self, guards().derived(SourceKind::MethodSelf, source));
    arguments.positional.insert(arguments.positional.begin(), std::move(admitted_self));
    return call(admitted_function.get(), std::move(arguments));
  }
  if (is_known_by_code(callable) && PyFunction_Check(callable) && !is_inlined(callable))
    require_identity(callable);
  // A bound method of C made before the call: what it belongs to was made before the call as well.
  if (is_external(callable) && is_bound_c_method(callable)) {
    const Ref self =
        admit(PyCFunction_GET_SELF(callable), guards().derived(SourceKind::MethodSelf, source_of(callable)));
    if (trace::is_trace_tensor(self.get())) {
      const Ref bound = Ref::steal(
          PyObject_GetAttrString(self.get(), reinterpret_cast<PyCFunctionObject*>(callable)->m_ml->ml_name));
      return bound ? call_torch(bound.get(), arguments) : Ref();
    }
  }
  if (const Treatment* treatment = treatment_of(callable))
    return call_treated(*treatment, callable, arguments);
  if (std::optional<Ref> number = call_on_varying(callable, arguments)) return *number;
  if (BuiltinHandler handler = find_builtin(callable)) return handler(*this, arguments);
  if (Ref form = python_form(callable)) {
    if (!accepts(form.get(), arguments))
      stop(fmt::format("calls {} with unusual arguments", describe_callable(callable)));
    return call(form.get(), std::move(arguments));
  }
  if (is_external(callable)) {
    if (is_method_wrapper(callable)) stop("calls a bound special method made before the call");
  }
  if (PyFunction_Check(callable)) {
    if (is_torch_function(callable)) {
      if (PyFunction_Check(callable)) {
        refuse_callbacks(callable, arguments);
        rely_on_definitions(*this, callable);
      }
      return call_torch(callable, arguments);
    }
    if (!arguments.positional.empty() && is_logger(arguments.positional[0].get()))
      if (std::optional<Ref> result = log_nothing(callable, arguments)) return *result;
    return call_python_function(callable, std::move(arguments));
  }
  if (PyType_Check(callable))
    return call_type(reinterpret_cast<PyTypeObject*>(callable), std::move(arguments));
  if (is_torch_function(callable)) return call_torch(callable, arguments);
  if (PyCFunction_Check(callable)) {
    PyObject* self = PyCFunction_GET_SELF(callable);
    const std::string_view name = reinterpret_cast<PyCFunctionObject*>(callable)->m_ml->ml_name;
    if (self && trace::is_trace_tensor(self)) return call_torch(callable, arguments);
    if (is_pybind_function(callable)) stop(fmt::format("calls {}", describe_callable(callable)));
    if (self && !PyModule_Check(self)) return call_c_method(callable, self, name, std::move(arguments));
    if (is_pure_builtin(callable)) {
      const auto refuse = [&](PyObject* value) {
        refuse_own_code(value, name);
        if (PyCallable_Check(value)) stop(fmt::format("calls {} with a function", name));
      };
      for (const Ref& value : arguments.positional) refuse(value.get());
      for (const auto& [keyword, value] : arguments.keywords) refuse(value.get());
      return call_real_plain(callable, arguments);
    }
    stop(fmt::format("calls {}", describe_callable(callable)));
  }
  if (std::optional<Ref> number = call_on_scalars(callable, arguments)) return *number;
  if (is_operator_object(callable)) return call_operator(*this, callable, arguments);
  PyTypeObject* type = Py_TYPE(callable);
  if (PyWeakref_CheckRefExact(callable) && is_external(callable)) {
    if (!arguments.positional.empty() || !arguments.keywords.empty())
      stop("gives arguments to a weak reference");
    const SourceId referent = guards().derived(SourceKind::WeakReferent, source_of(callable));
    return admit(PyWeakref_GET_OBJECT(callable), referent);
  }
  if (type == &PyMethodDescr_Type || type == &PyWrapperDescr_Type || type == &PyClassMethodDescr_Type) {
    if (arguments.positional.empty()) stop(fmt::format("calls {} without self", describe_callable(callable)));
    Ref self = std::move(arguments.positional.front());
    arguments.positional.erase(arguments.positional.begin());
    Ref bound = Ref::steal(
        type->tp_descr_get(callable, self.get(), reinterpret_cast<PyObject*>(Py_TYPE(self.get()))));
    if (!bound) return {};
    const char* name = PyUnicode_AsUTF8(PyDescr_NAME(callable));
    return call_c_method(bound.get(), self.get(), name ? name : "", std::move(arguments));
  }
  if (is_method_wrapper(callable)) {
    Ref self = Ref::steal(PyObject_GetAttrString(callable, "__self__"));
    Ref name = Ref::steal(PyObject_GetAttrString(callable, "__name__"));
    return call_c_method(callable, self.get(), PyUnicode_AsUTF8(name.get()), std::move(arguments));
  }
  if (is_partial(callable)) {
    std::optional<OpenedPartial> opened = opened_partial(*this, callable, std::move(arguments));
    return opened ? call(opened->function.get(), std::move(opened->arguments)) : Ref();
  }
  if (is_reducible(callable) && arguments.positional.size() == 1 && arguments.keywords.empty() &&
      callable->ob_type != reinterpret_cast<PyTypeObject*>(well_known("operator", "methodcaller")))
    return call_getter(callable, arguments.positional[0].get());
  if (c_class_name(type) == "functools._lru_cache_wrapper")
    return call_cached(callable, std::move(arguments));
  if (c_class_name(type) == "oxyfuel.CompiledFunction") {
    pin(callable);
    Ref wrapped = Ref::steal(PyObject_GetAttrString(callable, "__wrapped__"));
    if (!wrapped) return {};
    return call(pin(wrapped.get()).get(), std::move(arguments));
  }
  // A typing.NewType gives what it is given.
  if (is_type_expression(callable) && well_known("_typing", "_idfunc") &&
      type_lookup(type, interned("__call__").get()) == well_known("_typing", "_idfunc") &&
      arguments.positional.size() == 1 && arguments.keywords.empty())
    return arguments.positional[0];
  // What list[int] makes is told so, if it has a place for that.
  if (c_class_name(type) == "types.GenericAlias") {
    const Ref origin = Ref::steal(PyObject_GetAttrString(callable, "__origin__"));
    const bool has_no_place =
        origin && PyType_Check(origin.get()) &&
        !PyType_HasFeature(reinterpret_cast<PyTypeObject*>(origin.get()), Py_TPFLAGS_HEAPTYPE);
    if (has_no_place) return call(pin(origin.get()).get(), std::move(arguments));
  }
  if (has_python_special(callable, "__call__")) {
    Ref method = special_method(callable, "__call__");
    return method ? call(method.get(), std::move(arguments)) : Ref();
  }
  if (!type->tp_call) {
    PyErr_Format(PyExc_TypeError, "'%.200s' object is not callable", type->tp_name);
    return {};
  }
  stop(fmt::format("calls an object of type {}", type->tp_name));
}

// As if the frames that are evaluated were the thread's, above the one that is.
WarningPlace Evaluator::place_of_warning(PyObject* filename, int line) const {
  const Frame* evaluated = frame_;
  for (Ref real = Ref::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame())); real && evaluated;
       evaluated = evaluated->back) {
    auto* const frame = reinterpret_cast<PyFrameObject*>(real.get());
    const Ref code = Ref::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
    if (PyFrame_GetLineNumber(frame) == line &&
        PyUnicode_Compare(reinterpret_cast<PyCodeObject*>(code.get())->co_filename, filename) == 0)
      return {Ref::borrow(evaluated->pycode()->co_filename), evaluated->globals,
              evaluated->instruction().line};
    real = Ref::steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(frame)));
  }
  return {Ref::borrow(filename), Ref(), line};
}

void Evaluator::note_warnings(std::span<const Ref> messages) {
  for (const Ref& given : messages) {
    const auto member = [&](const char* name) {
      return Ref::steal(PyObject_GetAttrString(given.get(), name));
    };
    const Ref message = member("message"), category = member("category"), filename = member("filename");
    const Ref line = member("lineno");
    if (!message || !category || !filename || !line) {
      PyErr_Clear();
      stop("torch warns here");
    }
    WarningPlace place = place_of_warning(filename.get(), static_cast<int>(PyLong_AsLong(line.get())));
    if (options_.warnings && !options_.warnings->note(message.get(), category.get(), std::move(place)))
      continue;
    const Ref text = Ref::steal(PyObject_Str(message.get()));
    const char* utf8 = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
    PyErr_Clear();
    const std::string_view words = utf8 ? utf8 : "?";
    // What follows is a line of torch's own source.
    const size_t end = std::min(words.find(" (Triggered internally"), words.size());
    stop(fmt::format("torch warns here: {}", words.substr(0, end)), "it warns at every call");
  }
}

Ref Evaluator::torch_result_or_error(PyObject* callable, const Arguments& arguments) {
  const CollectedWarnings warnings;
  Ref result = call_real_plain(callable, arguments);
  if (!result && PyErr_ExceptionMatches(trace::trace_error())) stop_on_torch_error(*this);
  if (result && !warnings.messages().empty()) note_warnings(warnings.messages());
  return result;
}

}  // namespace oxy::eval
