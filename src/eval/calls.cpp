// Calls: Python functions are inlined, known C functions run for real, everything else ends the segment.
#include <fmt/format.h>
#include <torch/csrc/autograd/python_variable.h>

#include <algorithm>
#include <array>

#include "cpy/object_dict.h"
#include "eval/builtins.h"
#include "eval/evaluator.h"
#include "eval/generator.h"
#include "eval/objects.h"
#include "eval/prelude.h"
#include "eval/torch_call.h"
#include "eval/traceback.h"
#include "guards/constants.h"

namespace oxy::eval {

using guards::kNoSource;
using guards::SourceKind;

namespace {

std::string describe_callable(PyObject* callable) {
  Ref module = Ref::steal(PyObject_GetAttrString(callable, "__module__"));
  PyErr_Clear();
  Ref name = Ref::steal(PyObject_GetAttrString(callable, "__qualname__"));
  PyErr_Clear();
  std::string text;
  if (module && PyUnicode_Check(module.get())) text = fmt::format("{}.", PyUnicode_AsUTF8(module.get()));
  if (name && PyUnicode_Check(name.get())) return text + PyUnicode_AsUTF8(name.get());
  return fmt::format("an object of type {}", Py_TYPE(callable)->tp_name);
}

template <size_t N>
bool among(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// A method of `object` itself, bound.
bool is_object_method(PyObject* bound) {
  if (!is_method_wrapper(bound)) return false;
  Ref owner = Ref::steal(PyObject_GetAttrString(bound, "__objclass__"));
  PyErr_Clear();
  return owner == reinterpret_cast<PyObject*>(&PyBaseObject_Type);
}

bool is_logger(PyObject* object) {
  PyObject* logger = well_known("logging", "Logger");
  return logger && PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(logger));
}

// Logger methods that write a record and return nothing.
constexpr std::array<std::string_view, 7> kLogging = {"debug",    "info", "warning", "error",
                                                      "critical", "log",  "warn"};

// Methods of builtin containers that change the object they belong to.
constexpr std::array<std::string_view, 33> kMutators = {"append",
                                                        "extend",
                                                        "insert",
                                                        "pop",
                                                        "popitem",
                                                        "remove",
                                                        "clear",
                                                        "sort",
                                                        "reverse",
                                                        "update",
                                                        "setdefault",
                                                        "add",
                                                        "discard",
                                                        "__setitem__",
                                                        "__delitem__",
                                                        "__init__",
                                                        "__iadd__",
                                                        "__imul__",
                                                        "__ior__",
                                                        "__iand__",
                                                        "__isub__",
                                                        "__ixor__",
                                                        "difference_update",
                                                        "intersection_update",
                                                        "symmetric_difference_update",
                                                        "appendleft",
                                                        "extendleft",
                                                        "popleft",
                                                        "rotate",
                                                        "move_to_end",
                                                        "__setattr__",
                                                        "__delattr__",
                                                        "__setstate__"};

// Methods that only look at the items of their arguments: those may be external containers or generators.
constexpr std::array<std::string_view, 22> kReadsArguments = {"extend",
                                                              "update",
                                                              "join",
                                                              "union",
                                                              "intersection",
                                                              "difference",
                                                              "symmetric_difference",
                                                              "issubset",
                                                              "issuperset",
                                                              "isdisjoint",
                                                              "fromkeys",
                                                              "difference_update",
                                                              "intersection_update",
                                                              "symmetric_difference_update",
                                                              "extendleft",
                                                              "__init__",
                                                              "__add__",
                                                              "__iadd__",
                                                              "__or__",
                                                              "__ior__",
                                                              "format",
                                                              "format_map"};

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
  return call_real(callable, shown);
}

Ref Evaluator::call_torch(PyObject* callable, const Arguments& arguments) {
  return torch_result(*this, [&] { return call_real_plain(callable, arguments); });
}

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
  if (BuiltinHandler handler = find_builtin(callable)) return handler(*this, arguments);
  if (Ref form = python_form(callable)) {
    if (!accepts(form.get(), arguments))
      stop(fmt::format("calls {} with unusual arguments", describe_callable(callable)));
    return call(form.get(), std::move(arguments));
  }
  if (is_external(callable)) {
    // A bound method of C made before the call: what it belongs to was made before the call as well.
    if (PyCFunction_Check(callable)) {
      PyObject* self = PyCFunction_GET_SELF(callable);
      if (self && !PyModule_Check(self) && !PyType_Check(self) && !guards::is_constant(self)) {
        Ref admitted = admit(self, guards().derived(SourceKind::MethodSelf, source_of(callable)));
        if (trace::is_trace_tensor(admitted.get())) {
          Ref bound = Ref::steal(PyObject_GetAttrString(
              admitted.get(), reinterpret_cast<PyCFunctionObject*>(callable)->m_ml->ml_name));
          return bound ? call_torch(bound.get(), arguments) : Ref();
        }
      }
    }
    if (is_method_wrapper(callable)) stop("calls a bound special method made before the call");
  }
  if (PyFunction_Check(callable)) {
    if (is_torch_function(callable)) return call_torch(callable, arguments);
    if (!arguments.positional.empty() && is_logger(arguments.positional[0].get())) {
      const char* name = PyUnicode_AsUTF8(reinterpret_cast<PyFunctionObject*>(callable)->func_name);
      if (among(kLogging, name)) return record_call_effect(callable, std::move(arguments));
    }
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
    if (is_pure_builtin(callable)) return call_real_plain(callable, arguments);
    stop(fmt::format("calls {}", describe_callable(callable)));
  }
  PyTypeObject* type = Py_TYPE(callable);
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
  if (reinterpret_cast<PyObject*>(type) == well_known("functools", "partial")) {
    auto member = [&](const char* name) {
      Ref key = Ref::steal(PyUnicode_InternFromString(name));
      return bind_descriptor(_PyType_Lookup(type, key.get()), callable, type);
    };
    Ref function = member("func"), positional = member("args"), keywords = member("keywords");
    if (!function || !positional || !keywords) return {};
    Ref items = drain(positional.get());
    Ref dict = materialize(keywords.get());
    Arguments all;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i)
      all.positional.push_back(Ref::borrow(PyList_GET_ITEM(items.get(), i)));
    for (Ref& value : arguments.positional) all.positional.push_back(std::move(value));
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t position = 0;
    while (PyDict_Next(dict.get(), &position, &key, &value)) {
      const bool given =
          std::any_of(arguments.keywords.begin(), arguments.keywords.end(),
                      [&](const auto& k) { return PyUnicode_Compare(k.first.get(), key) == 0; });
      if (!given) all.keywords.emplace_back(Ref::borrow(key), Ref::borrow(value));
    }
    for (auto& keyword : arguments.keywords) all.keywords.push_back(std::move(keyword));
    return call(function.get(), std::move(all));
  }
  if (is_reducible(callable) && arguments.positional.size() == 1 && arguments.keywords.empty() &&
      callable->ob_type != reinterpret_cast<PyTypeObject*>(well_known("operator", "methodcaller")))
    return call_getter(callable, arguments.positional[0].get());
  if (std::string_view(type->tp_name) == "functools._lru_cache_wrapper") {
    pin(callable);
    if (!arguments.positional.empty() && is_logger(arguments.positional[0].get()))
      return record_call_effect(callable, std::move(arguments));
    Ref wrapped =
        generic_get_attribute(callable, Ref::steal(PyUnicode_InternFromString("__wrapped__")).get());
    if (!wrapped) return {};
    return call(wrapped.get(), std::move(arguments));
  }
  if (std::string_view(type->tp_name) == "oxyfuel.CompiledFunction") {
    pin(callable);
    Ref wrapped = Ref::steal(PyObject_GetAttrString(callable, "__wrapped__"));
    if (!wrapped) return {};
    return call(pin(wrapped.get()).get(), std::move(arguments));
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

// operator.itemgetter and attrgetter: constants of what they were made of.
Ref Evaluator::call_getter(PyObject* getter, PyObject* object) {
  if (is_external(getter)) pin(getter);
  const bool item = reinterpret_cast<PyObject*>(Py_TYPE(getter)) == well_known("operator", "itemgetter");
  Ref parts = Ref::steal(PyObject_CallMethod(getter, "__reduce__", nullptr));
  if (!parts) return {};
  PyObject* keys = PyTuple_GET_ITEM(parts.get(), 1);
  std::vector<Ref> values;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keys); ++i) {
    PyObject* key = PyTuple_GET_ITEM(keys, i);
    if (item) {
      values.push_back(get_item(object, key));
    } else {
      std::string_view path = PyUnicode_AsUTF8(key);
      Ref value = Ref::borrow(object);
      while (value && !path.empty()) {
        const size_t dot = std::min(path.find('.'), path.size());
        Ref name = Ref::steal(PyUnicode_FromStringAndSize(path.data(), static_cast<Py_ssize_t>(dot)));
        value = get_attribute(value.get(), name.get());
        path.remove_prefix(std::min(dot + 1, path.size()));
      }
      values.push_back(std::move(value));
    }
    if (!values.back()) return {};
  }
  if (values.size() == 1) return values[0];
  Ref result = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(values.size())));
  for (size_t i = 0; i < values.size(); ++i)
    PyTuple_SET_ITEM(result.get(), static_cast<Py_ssize_t>(i), values[i].release());
  return result;
}

// A method of a C type, bound to `self`.
Ref Evaluator::call_c_method(PyObject* bound, PyObject* self, std::string_view name, Arguments arguments) {
  if (trace::is_trace_tensor(self)) return call_torch(bound, arguments);
  if (name == "__new__" && PyType_Check(self)) return call_c_new(bound, std::move(arguments));
  if (name == "__getattribute__" && arguments.positional.size() == 1)
    return generic_get_attribute(self, arguments.positional[0].get());
  if (name == "__setattr__" && arguments.positional.size() == 2)
    return generic_set_attribute(self, arguments.positional[0].get(), arguments.positional[1].get())
               ? Ref::borrow(Py_None)
               : Ref();
  if (name == "__delattr__" && arguments.positional.size() == 1)
    return generic_set_attribute(self, arguments.positional[0].get(), nullptr) ? Ref::borrow(Py_None) : Ref();
  if (PyMethod_Check(self) || PyFunction_Check(self)) {
    if (name == "__call__") return call(self, std::move(arguments));
  }
  if (PyType_Check(self)) {
    if (name == "from_iterable" && self == well_known("itertools", "chain") &&
        arguments.positional.size() == 1)
      return call(prelude_function("chain_from_iterable").get(), std::move(arguments));
    if (name == "__call__") return call(self, std::move(arguments));
    if ((name == "fromkeys" || name == "from_bytes" || name == "fromhex") &&
        is_python_class(reinterpret_cast<PyTypeObject*>(self)))
      stop(fmt::format("calls method {} of class {}", name, reinterpret_cast<PyTypeObject*>(self)->tp_name));
    if (name == "__subclasses__" || name == "mro" || name == "__instancecheck__" ||
        name == "__subclasscheck__" || name == "fromkeys" || name == "maketrans" ||
        name == "__init_subclass__" || name == "from_bytes" || name == "fromhex")
      return call_real_plain(bound, arguments);
    stop(fmt::format("calls method {} of class {}", name, reinterpret_cast<PyTypeObject*>(self)->tp_name));
  }
  const bool external = is_external(self);
  if (guards::is_constant(self) || is_value_object(self)) {
    Arguments shown;
    for (Ref& value : arguments.positional) {
      if (name == "join") {
        shown.positional.push_back(drain(value.get()));
        if (!shown.positional.back()) return {};
      } else if (name == "format" && !guards::is_constant(value.get())) {
        shown.positional.push_back(to_text(value.get(), false));
        if (!shown.positional.back()) return {};
      } else {
        shown.positional.push_back(plain(value.get(), "a method"));
      }
    }
    for (auto& [key, value] : arguments.keywords) {
      if (!guards::is_constant(value.get())) stop("formats an object by keyword");
      shown.keywords.emplace_back(key, value);
    }
    return call_real(bound, shown);
  }
  if (name == "__init__" && is_object_method(bound)) return Ref::borrow(Py_None);
  if (name == "__eq__" || name == "__ne__") {
    if (arguments.positional.size() == 1 && PyDict_Check(self) == 0 && PyList_Check(self) == 0)
      return call_real(bound, arguments);
  }
  if (name == "__hash__" || name == "__repr__" || name == "__str__" || name == "__format__" ||
      name == "__sizeof__" || name == "__dir__")
    stop(fmt::format("calls {} of an object of type {}", name, Py_TYPE(self)->tp_name));
  if (name == "__enter__" || name == "__exit__") {
    if (!external && std::string_view(Py_TYPE(self)->tp_name).starts_with("torch._C.")) {
      for (Ref& value : arguments.positional)
        if (is_unknown_traceback(value.get())) value = Ref::borrow(Py_None);
      return call_real_plain(bound, arguments);
    }
    stop(fmt::format("enters a context manager of type {}", Py_TYPE(self)->tp_name));
  }
  const bool container = PyList_Check(self) || PyTuple_Check(self) || PyDict_Check(self) ||
                         PyAnySet_Check(self) ||
                         reinterpret_cast<PyObject*>(Py_TYPE(self)) == well_known("collections", "deque");
  if (external) {
    if (PyDict_Check(self) && !arguments.positional.empty() && arguments.keywords.empty()) {
      PyObject* key = arguments.positional[0].get();
      const size_t count = arguments.positional.size();
      if ((name == "get" && count <= 2) || (name == "__getitem__" && count == 1)) {
        const int found = contains_item(self, key);
        if (found < 0) return {};
        if (found) return get_item_c(self, key);
        if (name == "get")
          return arguments.positional.size() > 1 ? arguments.positional[1] : Ref::borrow(Py_None);
        PyErr_SetObject(PyExc_KeyError, key);
        return {};
      }
      if (name == "__contains__" && count == 1) {
        const int found = contains_item(self, key);
        return found < 0 ? Ref() : Ref::borrow(found ? Py_True : Py_False);
      }
      if (name == "__setitem__" && count == 2 && PyDict_CheckExact(self)) {
        if (!set_external_item(self, key, arguments.positional[1].get())) return {};
        return Ref::borrow(Py_None);
      }
    }
    if (container && !among(kMutators, name)) {
      Ref copy = materialize(self);
      Ref method = Ref::steal(PyObject_GetAttrString(copy.get(), std::string(name).c_str()));
      if (!method) return {};
      Ref result = call_c_method(method.get(), copy.get(), name, std::move(arguments));
      const bool itself = result == copy && (PyTuple_CheckExact(self) || PyFrozenSet_CheckExact(self));
      return itself ? Ref::borrow(self) : result;
    }
    if (among(kMutators, name))
      stop(fmt::format("changes a {} made before the call", Py_TYPE(self)->tp_name));
    if ((Py_TYPE(self) == &PyDictProxy_Type)) stop("reads a mapping proxy");
    stop(fmt::format("calls method {} of an object of type {}", name, Py_TYPE(self)->tp_name));
  }
  if ((Py_TYPE(self) == &PyDictProxy_Type)) return call_real_plain(bound, arguments);
  if (container || is_builtin_iterator(self) || PyExceptionInstance_Check(self) || PyDictKeys_Check(self) ||
      PyDictValues_Check(self) || PyDictItems_Check(self) || Py_TYPE(self) == &PyProperty_Type) {
    if (name == "sort" && !arguments.keywords.empty()) {
      if (!PyList_CheckExact(self) || !arguments.positional.empty()) stop("sorts in place with a key");
      arguments.positional.push_back(Ref::borrow(self));
      Ref result = call(well_known("builtins", "sorted"), std::move(arguments));
      if (!result || PyList_SetSlice(self, 0, PyList_GET_SIZE(self), result.get()) < 0) return {};
      return Ref::borrow(Py_None);
    }
    if (name == "index" || name == "count" || name == "remove" || name == "__contains__") {
      for (const Ref& value : arguments.positional)
        if (has_python_special(value.get(), "__eq__"))
          stop("compares objects with their own __eq__ in C code");
    }
    if ((PyDict_Check(self) || PyAnySet_Check(self)) && !arguments.positional.empty() &&
        hashes_itself(arguments.positional[0].get()))
      stop("a dict key that hashes itself");
    if (name == "with_traceback") stop("replaces a traceback");
    const bool has_factory = name == "__init__" && is_defaultdict_type(native_base(Py_TYPE(self)));
    for (Ref& value : arguments.positional) {
      if (!among(kReadsArguments, name) || PyExceptionInstance_Check(self)) continue;
      if (has_factory && &value == &arguments.positional.front()) continue;
      const bool mapping = PyDict_Check(self) && has_python_special(value.get(), "keys");
      if (mapping && (name == "update" || name == "__init__"))
        value = call_positional(reinterpret_cast<PyObject*>(&PyDict_Type), {value});
      else if (PyDict_Check(value.get()))
        value = materialize(value.get());
      else if (!guards::is_constant(value.get()))
        value = drain(value.get());
      if (!value) return {};
    }
    Ref result = call_real(bound, arguments);
    if (!result && PyErr_Occurred() && PyErr_ExceptionMatches(trace::trace_error()))
      stop_on_torch_error(*this);
    return result;
  }
  if (std::string_view(Py_TYPE(self)->tp_name).starts_with("torch._C.")) return call_torch(bound, arguments);
  stop(fmt::format("calls method {} of an object of type {}", name, Py_TYPE(self)->tp_name));
}

int Evaluator::contains_item(PyObject* dict, PyObject* key) {
  if (hashes_itself(key)) stop("looks up a dict key that hashes itself");
  if (auto written = attribute_effect(dict, key)) return *written ? 1 : 0;
  PyObject* value = PyDict_GetItemWithError(dict, key);
  if (!value && PyErr_Occurred()) return -1;
  if (!value) guards().require(source_of(dict), guards::CheckKind::Absent, key);
  return value != nullptr;
}

Ref Evaluator::get_item_c(PyObject* dict, PyObject* key) {
  if (auto written = attribute_effect(dict, key); written && *written) return *written;
  return admit(PyDict_GetItemWithError(dict, key), guards().dict_item(source_of(dict), key));
}

bool Evaluator::set_external_item(PyObject* dict, PyObject* key, PyObject* value) {
  if (!guards::is_constant(key)) stop("writes a key that is not a constant to a dict made before the call");
  record_attribute_effect(dict, key, value);
  return true;
}

// `type.__new__` of a C type, with the class as first argument.
Ref Evaluator::call_c_new(PyObject* bound, Arguments arguments) {
  if (arguments.positional.empty() || !PyType_Check(arguments.positional[0].get()))
    return call_real(bound, arguments);
  auto* base = reinterpret_cast<PyTypeObject*>(PyCFunction_GET_SELF(bound));
  if (base == &PyBaseObject_Type) {
    Arguments only_class;
    only_class.positional.push_back(arguments.positional[0]);
    return call_real(bound, only_class);
  }
  if (base == &PyDict_Type || base == &PyODict_Type || base == &PyList_Type || base == &PySet_Type) {
    Arguments only_class;
    only_class.positional.push_back(arguments.positional[0]);
    return call_real(bound, only_class);
  }
  if (base == &PyTuple_Type || base == &PyFrozenSet_Type) {
    if (arguments.positional.size() > 1) {
      arguments.positional[1] = drain(arguments.positional[1].get());
      if (!arguments.positional[1]) return {};
    }
    return call_real(bound, arguments);
  }
  if (std::string_view(base->tp_name) == "functools.partial") return call_real(bound, arguments);
  if (base == &PyLong_Type || base == &PyFloat_Type || base == &PyUnicode_Type ||
      PyType_IsSubtype(base, reinterpret_cast<PyTypeObject*>(PyExc_BaseException)))
    return call_real(bound, arguments);
  stop(fmt::format("makes an object of C type {}", base->tp_name));
}

Ref Evaluator::call_type(PyTypeObject* type, Arguments arguments) {
  auto* class_object = reinterpret_cast<PyObject*>(type);
  if (is_enum_class(class_object)) return call_real_plain(class_object, arguments);
  if (is_pure_type(type)) return torch_result_or_error(class_object, arguments);
  if (Py_TYPE(type) != &PyType_Type) {
    Ref meta_call = type_lookup(Py_TYPE(type), Ref::steal(PyUnicode_InternFromString("__call__")).get());
    if (meta_call && PyFunction_Check(meta_call.get())) {
      pin(meta_call.get());
      arguments.positional.insert(arguments.positional.begin(), Ref::borrow(class_object));
      return call(meta_call.get(), std::move(arguments));
    }
  }
  if (PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(THPVariableClass)))
    stop(fmt::format("makes a tensor of class {}", type->tp_name));
  Ref new_name = Ref::steal(PyUnicode_InternFromString("__new__"));
  Ref init_name = Ref::steal(PyUnicode_InternFromString("__init__"));
  if (type_lookup(type, Ref::steal(PyUnicode_InternFromString("__del__")).get()))
    stop(fmt::format("makes an object of class {}, which has a finalizer", type->tp_name));
  Ref maker = type_lookup(type, new_name.get());
  if (!maker) stop(fmt::format("class {} has no __new__", type->tp_name));
  Ref maker_function = Py_TYPE(maker.get()) == &PyStaticMethod_Type
                           ? Ref::steal(PyObject_GetAttrString(maker.get(), "__func__"))
                           : maker;
  pin(class_object);
  Arguments new_arguments = arguments;
  new_arguments.positional.insert(new_arguments.positional.begin(), Ref::borrow(class_object));
  Ref object;
  if (PyFunction_Check(maker_function.get())) {
    pin(maker_function.get());
    object = call(maker_function.get(), std::move(new_arguments));
  } else if (PyCFunction_Check(maker_function.get())) {
    object = call_c_new(maker_function.get(), std::move(new_arguments));
  } else {
    stop(fmt::format("class {} has an unusual __new__", type->tp_name));
  }
  if (!object || !PyObject_TypeCheck(object.get(), type)) return object;
  Ref init = type_lookup(Py_TYPE(object.get()), init_name.get());
  if (!init) return object;
  if (PyFunction_Check(init.get())) {
    pin(init.get());
    arguments.positional.insert(arguments.positional.begin(), object);
    Ref result = call(init.get(), std::move(arguments));
    if (!result) return {};
    if (result != Py_None) {
      PyErr_Format(PyExc_TypeError, "__init__() should return None, not '%.200s'",
                   Py_TYPE(result.get())->tp_name);
      return {};
    }
    return object;
  }
  if (Py_TYPE(object.get())->tp_init == PyBaseObject_Type.tp_init) {
    if (maker_function == _PyType_Lookup(&PyBaseObject_Type, new_name.get()) &&
        (!arguments.positional.empty() || !arguments.keywords.empty())) {
      PyErr_Format(PyExc_TypeError, "%.200s() takes no arguments", type->tp_name);
      return {};
    }
    return object;
  }
  Ref bound = Ref::steal(Py_TYPE(init.get())->tp_descr_get(init.get(), object.get(), class_object));
  if (!bound) return {};
  Ref result = call_c_method(bound.get(), object.get(), "__init__", std::move(arguments));
  return result ? object : Ref();
}

Ref Evaluator::torch_result_or_error(PyObject* callable, const Arguments& arguments) {
  Ref result = call_real_plain(callable, arguments);
  if (!result && PyErr_ExceptionMatches(trace::trace_error())) stop_on_torch_error(*this);
  return result;
}

bool Evaluator::bind_arguments(PyObject* function, Arguments arguments, Frame& frame) {
  auto* object = reinterpret_cast<PyFunctionObject*>(function);
  auto* code = reinterpret_cast<PyCodeObject*>(object->func_code);
  frame.code_object = Ref::borrow(object->func_code);
  frame.code = bytecode::decode(code);
  frame.function = Ref::borrow(function);
  frame.globals = Ref::borrow(object->func_globals);
  frame.builtins = Ref::borrow(object->func_builtins);
  frame.locals.resize(static_cast<size_t>(code->co_nlocalsplus));
  const auto positional_count = static_cast<size_t>(code->co_argcount);
  const auto keyword_only = static_cast<size_t>(code->co_kwonlyargcount);
  const size_t named = positional_count + keyword_only;
  const char* name = PyUnicode_AsUTF8(object->func_qualname);

  const size_t given = arguments.positional.size();
  for (size_t i = 0; i < std::min(given, positional_count); ++i) frame.locals[i] = arguments.positional[i];
  size_t next_slot = named;
  if (code->co_flags & CO_VARARGS) {
    const size_t extra = given > positional_count ? given - positional_count : 0;
    Ref rest = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(extra)));
    for (size_t i = 0; i < extra; ++i)
      PyTuple_SET_ITEM(rest.get(), static_cast<Py_ssize_t>(i),
                       arguments.positional[positional_count + i].new_reference());
    frame.locals[next_slot++] = std::move(rest);
  } else if (given > positional_count) {
    PyErr_Format(PyExc_TypeError, "%s() takes %zu positional arguments but %zu were given", name,
                 positional_count, given);
    return false;
  }
  Ref extra_keywords;
  if (code->co_flags & CO_VARKEYWORDS) {
    extra_keywords = Ref::steal(PyDict_New());
    frame.locals[next_slot] = extra_keywords;
  }
  for (auto& [key, value] : arguments.keywords) {
    size_t slot = named;
    for (size_t i = static_cast<size_t>(code->co_posonlyargcount); i < named; ++i) {
      PyObject* parameter = PyTuple_GET_ITEM(code->co_localsplusnames, static_cast<Py_ssize_t>(i));
      if (parameter == key.get() || PyUnicode_Compare(parameter, key.get()) == 0) {
        slot = i;
        break;
      }
    }
    if (slot == named) {
      if (!extra_keywords) {
        PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", name, key.get());
        return false;
      }
      PyDict_SetItem(extra_keywords.get(), key.get(), value.get());
      continue;
    }
    if (frame.locals[slot]) {
      PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%U'", name, key.get());
      return false;
    }
    frame.locals[slot] = value;
  }
  const SourceId source = source_of(function);
  if (object->func_defaults) {
    const auto count = static_cast<size_t>(PyTuple_GET_SIZE(object->func_defaults));
    for (size_t i = positional_count - std::min(count, positional_count); i < positional_count; ++i) {
      if (frame.locals[i]) continue;
      const auto k = static_cast<Py_ssize_t>(i - (positional_count - count));
      PyObject* value = PyTuple_GET_ITEM(object->func_defaults, k);
      frame.locals[i] =
          source == kNoSource
              ? Ref::borrow(value)
              : admit(value, guards().tuple_item(guards().derived(SourceKind::FunctionDefaults, source),
                                                 static_cast<int32_t>(k)));
    }
  }
  if (object->func_kwdefaults) {
    for (size_t i = positional_count; i < named; ++i) {
      if (frame.locals[i]) continue;
      PyObject* parameter = PyTuple_GET_ITEM(code->co_localsplusnames, static_cast<Py_ssize_t>(i));
      PyObject* value = PyDict_GetItemWithError(object->func_kwdefaults, parameter);
      if (!value) continue;
      frame.locals[i] =
          source == kNoSource
              ? Ref::borrow(value)
              : admit(value, guards().dict_item(guards().derived(SourceKind::FunctionKwDefaults, source),
                                                parameter));
    }
  }
  for (size_t i = 0; i < named; ++i) {
    if (frame.locals[i]) continue;
    PyErr_Format(PyExc_TypeError, "%s() missing a required argument: '%U'", name,
                 PyTuple_GET_ITEM(code->co_localsplusnames, static_cast<Py_ssize_t>(i)));
    return false;
  }
  return true;
}

bool Evaluator::accepts(PyObject* function, const Arguments& arguments) {
  Frame frame;
  const bool fits = bind_arguments(function, arguments, frame);
  PyErr_Clear();
  return fits;
}

void Evaluator::pin_function(PyObject* function) {
  if (is_fresh_function(function)) return;
  auto* object = reinterpret_cast<PyFunctionObject*>(function);
  pin(function);
  guards().require(guards().derived(SourceKind::FunctionCode, source_of(function)),
                   guards::CheckKind::Identity, object->func_code);
  for (Py_ssize_t i = 0; object->func_closure && i < PyTuple_GET_SIZE(object->func_closure); ++i) {
    PyObject* cell = PyTuple_GET_ITEM(object->func_closure, i);
    if (!sources_.contains(cell)) {
      sources_.emplace(cell, guards().pinned(cell));
      keep_alive_.push_back(Ref::borrow(cell));
    }
  }
}

Ref Evaluator::call_with_unread(PyObject* function, Ref self, std::span<PyObject* const> values,
                                std::span<const SourceId> sources, PyObject* kwnames) {
  auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function));
  const size_t keyword_count = kwnames ? static_cast<size_t>(PyTuple_GET_SIZE(kwnames)) : 0;
  const size_t positional = values.size() - keyword_count;
  const auto positional_slots = static_cast<size_t>(code->co_argcount);
  const size_t named = positional_slots + static_cast<size_t>(code->co_kwonlyargcount);
  std::vector<SourceId> unread(static_cast<size_t>(code->co_nlocalsplus), kNoSource);
  Arguments arguments;
  if (self) arguments.positional.push_back(std::move(self));
  for (size_t i = 0; i < positional; ++i) {
    const size_t slot = arguments.positional.size();
    if (slot < positional_slots) unread[slot] = sources[i];
    arguments.positional.push_back(slot < positional_slots ? Ref::borrow(values[i])
                                                           : admit(values[i], sources[i]));
  }
  for (size_t i = 0; i < keyword_count; ++i) {
    PyObject* name = PyTuple_GET_ITEM(kwnames, static_cast<Py_ssize_t>(i));
    const size_t from = positional + i;
    size_t slot = static_cast<size_t>(code->co_posonlyargcount);
    while (slot < named &&
           PyUnicode_Compare(PyTuple_GET_ITEM(code->co_localsplusnames, static_cast<Py_ssize_t>(slot)),
                             name) != 0)
      ++slot;
    if (slot < named) unread[slot] = sources[from];
    arguments.keywords.emplace_back(
        Ref::borrow(name), slot < named ? Ref::borrow(values[from]) : admit(values[from], sources[from]));
  }
  pin_function(function);
  Frame frame;
  if (!bind_arguments(function, std::move(arguments), frame)) return {};
  frame.unread = std::move(unread);
  return run_to_return(frame);
}

Ref Evaluator::call_python_function(PyObject* function, Arguments arguments) {
  auto* object = reinterpret_cast<PyFunctionObject*>(function);
  auto* code = reinterpret_cast<PyCodeObject*>(object->func_code);
  if (const char* reason = refusal_to_inline(function))
    stop(fmt::format("calls {}: {}", describe_callable(function), reason));
  pin_function(function);
  if (code->co_flags & (CO_COROUTINE | CO_ASYNC_GENERATOR)) stop("calls a coroutine function");
  if (code->co_flags & CO_GENERATOR) {
    auto data = std::make_unique<GeneratorData>();
    data->abandoned = abandoned_;
    if (!bind_arguments(function, std::move(arguments), data->frame)) return {};
    return make_generator(std::move(data));
  }
  Frame frame;
  if (!bind_arguments(function, std::move(arguments), frame)) return {};
  return run_to_return(frame);
}

}  // namespace oxy::eval
