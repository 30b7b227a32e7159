#include "eval/python/objects.h"

#include <fmt/format.h>
#include <torch/csrc/Device.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/Layout.h>
#include <torch/csrc/MemoryFormat.h>
#include <torch/csrc/Size.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "cpy/ref.h"
#include "eval/python/operator_objects.h"
#include "eval/python/varying_object.h"
#include "guards/constants.h"
#include "runtime/values/tensor_object.h"
#include "trace/recorder/recorder.h"

namespace oxy::eval {

using cpy::Ref;

namespace {

// Looked up by the parts of a text, without a copy of them.
struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
using Objects = std::unordered_map<std::string, Ref, TextHash, std::equal_to<>>;

}  // namespace

Ref interned(std::string_view name) {
  // Never destroyed: CPython is gone when statics die. Names come from the compiler's source and from tables
  // of C types, so that there are only so many.
  static auto& names = *new Objects;
  if (const auto found = names.find(name); found != names.end()) return found->second;
  Ref text = Ref::steal(PyUnicode_InternFromString(std::string(name).c_str()));
  return text ? names.emplace(name, std::move(text)).first->second : Ref();
}

PyObject* well_known(std::string_view module, std::string_view name) {
  static auto& modules = *new std::unordered_map<std::string, Objects, TextHash, std::equal_to<>>;
  auto of_module = modules.find(module);
  if (of_module == modules.end()) of_module = modules.emplace(module, Objects()).first;
  Objects& found = of_module->second;
  if (const auto object = found.find(name); object != found.end()) return object->second.get();
  Ref object = Ref::steal(PyImport_GetModule(interned(module).get()));
  for (std::string_view rest = name; object && !rest.empty();) {
    const size_t end = std::min(rest.find('.'), rest.size());
    object = Ref::steal(PyObject_GetAttr(object.get(), interned(rest.substr(0, end)).get()));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  PyErr_Clear();
  return object ? found.emplace(name, std::move(object)).first->second.get() : nullptr;
}

bool is_enum_member(PyObject* object) {
  PyObject* enum_type = well_known("enum", "EnumMeta");
  PyTypeObject* type = Py_TYPE(object);
  if (!enum_type ||
      !PyObject_TypeCheck(reinterpret_cast<PyObject*>(type), reinterpret_cast<PyTypeObject*>(enum_type)))
    return false;
  // Compared by identity, so that no code of the program's runs. The second map also has combinations of
  // flags.
  const auto holds = [&](const char* map_name) {
    PyObject* members = _PyType_Lookup(type, interned(map_name).get());
    if (!members || !PyDict_Check(members)) return false;
    PyObject *key = nullptr, *member = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(members, &at, &key, &member);)
      if (member == object) return true;
    return false;
  };
  return holds("_member_map_") || holds("_value2member_map_");
}

bool is_value_object(PyObject* object) {
  if (guards::is_constant(object)) return true;
  if (has_varying_part(object)) return false;
  if (PySlice_Check(object) || PyRange_Check(object)) return true;
  if (THPDtype_Check(object) || THPDevice_Check(object) || THPLayout_Check(object) ||
      THPMemoryFormat_Check(object))
    return true;
  return THPSize_Check(object) || is_enum_member(object) || is_match(object);
}

bool is_match(PyObject* object) {
  return reinterpret_cast<PyObject*>(Py_TYPE(object)) == well_known("re", "Match");
}

bool is_logger(PyObject* object) {
  PyObject* logger = well_known("logging", "Logger");
  return logger && PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(logger));
}

bool is_identity_object(PyObject* object) {
  if (has_varying_part(object)) return false;
  if (PyType_Check(object) || PyFunction_Check(object) || PyCFunction_Check(object) ||
      PyModule_Check(object) || PyCode_Check(object) || PySlice_Check(object) || PyRange_Check(object))
    return true;
  if (THPDtype_Check(object) || THPDevice_Check(object) || THPLayout_Check(object) ||
      THPMemoryFormat_Check(object) || THPSize_Check(object))
    return true;
  PyTypeObject* type = Py_TYPE(object);
  return is_match(object) || type == &PyMethodDescr_Type || type == &PyWrapperDescr_Type ||
         type == &PyGetSetDescr_Type || type == &PyMemberDescr_Type || type == &PyProperty_Type ||
         type == &PyClassMethod_Type || type == &PyStaticMethod_Type || type == &PyFrozenSet_Type ||
         is_enum_member(object) || c_class_name(type) == "functools._lru_cache_wrapper" ||
         c_class_name(type) == "oxyfuel.CompiledFunction" || c_class_name(type) == "nanobind.nb_func" ||
         c_class_name(type) == "torch._C._TensorMeta" || compares_in_library(object) || is_type_alias(object);
}

bool compares_in_library(PyObject* object) {
  return is_type_expression(object) || (is_python_class(Py_TYPE(object)) && is_operator_object(object));
}

bool is_type_expression(PyObject* object) {
  return makes_type_expressions(Py_TYPE(object));
}

bool makes_type_expressions(PyTypeObject* type) {
  if (!is_python_class(type)) return std::string_view(type->tp_name).starts_with("typing.");
  const auto is_in = [&](const char* module) {
    return well_known(module, type->tp_name) == reinterpret_cast<PyObject*>(type);
  };
  PyObject* const module = _PyType_Lookup(type, interned("__module__").get());
  const std::string_view name = text_of_str(module);
  return (name == "typing" && is_in("typing")) || (name == "typing_extensions" && is_in("typing_extensions"));
}

bool is_type_alias(PyObject* object) {
  const std::string_view type = c_class_name(Py_TYPE(object));
  return type == "types.GenericAlias" || type == "types.UnionType";
}

bool compares_identity(PyObject* object) {
  auto compare = Py_TYPE(object)->tp_richcompare;
  return compare == nullptr || compare == PyBaseObject_Type.tp_richcompare;
}

bool is_python_class(PyTypeObject* type) {
  // Class statements leave the freeing of their instances to one function of CPython's, C types have
  // their own.
  static const destructor free_instance =
      reinterpret_cast<PyTypeObject*>(well_known("torch.nn", "Module"))->tp_dealloc;
  return PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) && type->tp_dealloc == free_instance;
}

std::string_view c_class_name(PyTypeObject* type) {
  return is_python_class(type) ? std::string_view() : std::string_view(type->tp_name);
}

PyObject* method_descriptor(PyObject* container, PyObject* method) {
  const bool is_known = is_container(container) || trace::is_trace_tensor(container);
  if (!is_known || !PyCFunction_Check(method) || PyCFunction_GET_SELF(method) != container) return nullptr;
  PyMethodDef* const definition = reinterpret_cast<PyCFunctionObject*>(method)->m_ml;
  PyObject* const found = _PyType_Lookup(Py_TYPE(container), interned(definition->ml_name).get());
  const bool fits = found && Py_TYPE(found) == &PyMethodDescr_Type &&
                    reinterpret_cast<PyMethodDescrObject*>(found)->d_method == definition;
  return fits ? found : nullptr;
}

bool is_method_wrapper(PyObject* object) {
  return reinterpret_cast<PyObject*>(Py_TYPE(object)) == well_known("types", "MethodWrapperType");
}

cpy::Ref exception_arguments(PyObject* exception) {
  return cpy::Ref::borrow(reinterpret_cast<PyBaseExceptionObject*>(exception)->args);
}

PyTypeObject* native_base(PyTypeObject* type) {
  while (type->tp_base && is_python_class(type)) type = type->tp_base;
  return type;
}

bool is_reducible(PyObject* object) {
  auto* type = reinterpret_cast<PyObject*>(Py_TYPE(object));
  return type == well_known("functools", "partial") || type == well_known("operator", "itemgetter") ||
         type == well_known("operator", "attrgetter") || type == well_known("operator", "methodcaller");
}

bool is_container_iterator(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  return type == &PyDictIterKey_Type || type == &PyDictIterValue_Type || type == &PyDictIterItem_Type ||
         type == &PyDictRevIterKey_Type || type == &PyDictRevIterValue_Type ||
         type == &PyDictRevIterItem_Type || type == &PySetIter_Type;
}

bool is_bound_c_method(PyObject* object) {
  PyObject* const self = PyCFunction_Check(object) ? PyCFunction_GET_SELF(object) : nullptr;
  return self && !PyModule_Check(self);
}

bool is_deque_type(PyTypeObject* type) {
  return reinterpret_cast<PyObject*>(type) == well_known("collections", "deque");
}

bool has_changed(PyObject* iterator) {
  const Ref item = Ref::steal(Py_TYPE(iterator)->tp_iternext(iterator));
  const bool changed = !item && PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_StopIteration);
  PyErr_Clear();
  return changed;
}

bool is_defaultdict_type(PyTypeObject* type) {
  return reinterpret_cast<PyObject*>(type) == well_known("collections", "defaultdict");
}

bool is_dict_like(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  return type == &PyDict_Type || type == &PyODict_Type || is_defaultdict_type(type);
}

void set_key_error(PyObject* key) {
  const Ref arguments = Ref::steal(PyTuple_Pack(1, key));
  if (arguments) PyErr_SetObject(PyExc_KeyError, arguments.get());
}

bool is_container(PyObject* object) {
  return PyList_Check(object) || PyTuple_Check(object) || PyDict_Check(object) || PyAnySet_Check(object) ||
         is_deque_type(Py_TYPE(object));
}

bool is_builtin_container(PyObject* object) {
  return PyList_CheckExact(object) || PyTuple_CheckExact(object) || PyAnySet_CheckExact(object) ||
         is_dict_like(object);
}

bool is_builtin_iterator(PyObject* object) {
  static constexpr std::array<std::string_view, 31> kNames = {
      "list_iterator",
      "tuple_iterator",
      "range_iterator",
      "longrange_iterator",
      "str_iterator",
      "str_ascii_iterator",
      "dict_keyiterator",
      "dict_valueiterator",
      "dict_itemiterator",
      "dict_reversekeyiterator",
      "dict_reversevalueiterator",
      "dict_reverseitemiterator",
      "set_iterator",
      "list_reverseiterator",
      "bytes_iterator",
      "reversed",
      "enumerate",
      "zip",
      "odict_iterator",
      "_collections._deque_iterator",
      "_collections._deque_reverse_iterator",
      "collections._deque_iterator",  // from Python 3.12 on
      "collections._deque_reverse_iterator",
      "itertools.permutations",
      "itertools.combinations",
      "generic_alias_iterator",
      "itertools.chain",
      "itertools.repeat",
      "itertools.count",
      "itertools.product",
      "itertools.islice"};
  return std::find(kNames.begin(), kNames.end(), c_class_name(Py_TYPE(object))) != kNames.end();
}

namespace {

std::string text_of(PyObject* name) {
  const char* utf8 = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : nullptr;
  if (!utf8) PyErr_Clear();
  return utf8 ? utf8 : "";
}

// "module.name" of a type, read from its fields. Asking for the attributes might run code of a metaclass.
std::string qualified_name(PyTypeObject* type) {
  if (PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE))
    return text_of(reinterpret_cast<PyHeapTypeObject*>(type)->ht_qualname);
  const std::string_view name = type->tp_name;
  return std::string(name.substr(name.rfind('.') + 1));
}

std::string with_module(PyObject* module, const std::string& name) {
  const std::string prefix = text_of(module);
  return prefix.empty() ? name : fmt::format("{}.{}", prefix, name);
}

}  // namespace

std::string describe_callable(PyObject* callable) {
  std::string otherwise = fmt::format("an object of type {}", Py_TYPE(callable)->tp_name);
  if (PyFunction_Check(callable)) {
    auto* const function = reinterpret_cast<PyFunctionObject*>(callable);
    return with_module(function->func_module, text_of(function->func_qualname));
  }
  if (PyType_Check(callable)) {
    auto* const type = reinterpret_cast<PyTypeObject*>(callable);
    if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) return with_module(nullptr, type->tp_name);
    return with_module(_PyType_Lookup(type, interned("__module__").get()), qualified_name(type));
  }
  if (PyCFunction_Check(callable)) {
    auto* const function = reinterpret_cast<PyCFunctionObject*>(callable);
    PyObject* const self = PyCFunction_GET_SELF(callable);
    const std::string name = function->m_ml->ml_name;
    if (!self || PyModule_Check(self)) return with_module(function->m_module, name);
    auto* const owner = PyType_Check(self) ? reinterpret_cast<PyTypeObject*>(self) : Py_TYPE(self);
    return with_module(function->m_module, fmt::format("{}.{}", qualified_name(owner), name));
  }
  if (is_python_class(Py_TYPE(callable))) return otherwise;
  const Ref module = Ref::steal(PyObject_GetAttrString(callable, "__module__"));
  PyErr_Clear();
  const Ref name = Ref::steal(PyObject_GetAttrString(callable, "__qualname__"));
  PyErr_Clear();
  const std::string text = text_of(name.get());
  return text.empty() ? otherwise : with_module(module.get(), text);
}

bool is_of_c(PyObject* found) {
  constexpr std::array kKinds = {&PyWrapperDescr_Type,  &PyMethodDescr_Type, &PyClassMethodDescr_Type,
                                 &PyCFunction_Type,     &PyGetSetDescr_Type, &PyMemberDescr_Type,
                                 &PyInstanceMethod_Type};
  return found == Py_None || std::ranges::find(kKinds, Py_TYPE(found)) != kKinds.end();
}

bool is_pybind_function(PyObject* function) {
  PyObject* self = PyCFunction_GET_SELF(function);
  return self && c_class_name(Py_TYPE(self)).starts_with("pybind11_");
}

bool is_torch_tensor_type(PyTypeObject* type) {
  auto* object = reinterpret_cast<PyObject*>(type);
  return type == runtime::tensor_class() || object == well_known("torch.nn", "Parameter") ||
         object == well_known("torch.nn", "Buffer");
}

std::string_view text_of_str(PyObject* str) {
  Py_ssize_t size = 0;
  const char* utf8 = str && PyUnicode_Check(str) ? PyUnicode_AsUTF8AndSize(str, &size) : nullptr;
  if (!utf8) PyErr_Clear();
  return utf8 ? std::string_view(utf8, static_cast<size_t>(size)) : std::string_view();
}

namespace {

// Functions of torch._C that answer a question, or set state of the thread that the interpreter follows.
constexpr std::array<std::string_view, 47> kQueries = {"is_grad_enabled",
                                                       "_get_tracing_state",
                                                       "_is_tracing",
                                                       "is_inference_mode_enabled",
                                                       "is_autocast_enabled",
                                                       "is_autocast_cpu_enabled",
                                                       "get_autocast_dtype",
                                                       "get_autocast_cpu_dtype",
                                                       "get_default_dtype",
                                                       "_set_grad_enabled",
                                                       "_get_cudnn_enabled",
                                                       "_get_cudnn_benchmark",
                                                       "_get_cudnn_deterministic",
                                                       "_get_mkldnn_enabled",
                                                       "_get_flash_sdp_enabled",
                                                       "_get_math_sdp_enabled",
                                                       "_get_mem_efficient_sdp_enabled",
                                                       "_get_cudnn_sdp_enabled",
                                                       "_has_torch_function",
                                                       "_has_torch_function_unary",
                                                       "_has_torch_function_variadic",
                                                       "_is_torch_function_enabled",
                                                       "is_anomaly_enabled",
                                                       "_len_torch_function_stack",
                                                       "_len_torch_dispatch_stack",
                                                       "_is_functorch_wrapped_tensor",
                                                       "_functorch_level",
                                                       "_get_nested_int",
                                                       "_is_any_autocast_enabled",
                                                       "is_any_autocast_enabled",
                                                       "_get_deterministic_algorithms",
                                                       "_get_deterministic_algorithms_warn_only",
                                                       "_get_deterministic_fill_uninitialized_memory",
                                                       "_debug_only_display_vmap_fallback_warnings",
                                                       "get_num_threads",
                                                       "get_num_interop_threads",
                                                       "_is_torch_function_mode_enabled",
                                                       "_is_autocast_available",
                                                       "_get_accelerator",
                                                       "_log_api_usage_once",
                                                       "_cuda_exchangeDevice",
                                                       "_cuda_maybeExchangeDevice",
                                                       "_cuda_setDevice",
                                                       "_cuda_getDevice",
                                                       "_cuda_isInBadFork",
                                                       "_is_flash_attention_available",
                                                       "_get_privateuse1_backend_name"};

constexpr std::array<std::string_view, 6> kOperatorModules = {"torch._C._nn",     "torch._C._linalg",
                                                              "torch._C._fft",    "torch._C._special",
                                                              "torch._C._sparse", "torch._C._nested"};

// Python modules of torch whose functions do nothing but call operators on their arguments.
constexpr std::array<std::string_view, 8> kRealModules = {
    "torch.nn.functional", "torch.functional",    "torch._VF",     "torch._tensor",
    "torch.overrides",     "torch._jit_internal", "torch.special", "torch.linalg"};

template <size_t N>
bool among(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

bool is_torch_function(PyObject* callable) {
  if (PyCFunction_Check(callable)) {
    auto* function = reinterpret_cast<PyCFunctionObject*>(callable);
    PyObject* self = function->m_self;  // also of static methods, as torch.relu is one
    if (self && runtime::is_tensor(self)) return true;
    if (self && PyType_Check(self))
      return std::string_view(reinterpret_cast<PyTypeObject*>(self)->tp_name).find("_VariableFunctions") !=
             std::string_view::npos;
    const std::string_view module = text_of_str(function->m_module);
    if (among(kOperatorModules, module)) return true;
    return (module == "torch._C" || module == "torch") &&
           among(kQueries, std::string_view(function->m_ml->ml_name));
  }
  if (Py_TYPE(callable) == &PyMethodDescr_Type || Py_TYPE(callable) == &PyWrapperDescr_Type)
    return PyType_IsSubtype(runtime::tensor_class(), PyDescr_TYPE(callable)) &&
           PyDescr_TYPE(callable) != &PyBaseObject_Type;
  if (PyFunction_Check(callable)) {
    // functools.wraps() gives the name of the wrapped function's module to functions of other modules.
    PyObject* own_module = PyDict_GetItemString(PyFunction_GET_GLOBALS(callable), "__name__");
    return among(kRealModules, text_of_str(reinterpret_cast<PyFunctionObject*>(callable)->func_module)) &&
           own_module && among(kRealModules, text_of_str(own_module));
  }
  return false;
}

bool any_tensor(PyObject* object, const std::function<bool(PyObject* tensor)>& wanted) {
  if (runtime::is_tensor(object)) return wanted(object);
  if (PyTuple_Check(object) || PyList_Check(object)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i)
      if (any_tensor(PySequence_Fast_GET_ITEM(object, i), wanted)) return true;
  } else if (PyDict_Check(object)) {
    PyObject* value = nullptr;
    Py_ssize_t position = 0;
    while (PyDict_Next(object, &position, nullptr, &value))
      if (any_tensor(value, wanted)) return true;
  }
  return false;
}

bool is_enum_class(PyObject* object) {
  PyObject* enum_type = well_known("enum", "EnumMeta");
  return enum_type && PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(enum_type));
}

}  // namespace oxy::eval
