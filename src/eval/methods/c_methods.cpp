// Methods of C types: which of them change their object, which only read their arguments, and which are
// performed here.
#include "eval/methods/c_methods.h"

#include <fmt/format.h>
#include <torch/csrc/Device.h>

#include <algorithm>
#include <array>

#include "eval/externals/admission.h"
#include "eval/externals/c_calls.h"
#include "eval/externals/external_containers.h"
#include "eval/externals/hashing.h"
#include "eval/externals/own_code.h"
#include "eval/externals/plain.h"
#include "eval/externals/type_lookup.h"
#include "eval/methods/instances.h"
#include "eval/methods/sequence_methods.h"
#include "eval/numbers/numpy_scalars.h"
#include "eval/numbers/varying_number.h"
#include "eval/objects/attribute_writes.h"
#include "eval/objects/attributes.h"
#include "eval/objects/comparisons.h"
#include "eval/objects/container_methods.h"
#include "eval/objects/copies.h"
#include "eval/objects/merging.h"
#include "eval/objects/operators.h"
#include "eval/objects/taking_items.h"
#include "eval/python/objects.h"
#include "eval/python/traceback.h"
#include "eval/state/arguments.h"
#include "eval/state/evaluation.h"
#include "eval/state/generator.h"
#include "eval/state/interpreter.h"
#include "eval/torch/default_device.h"
#include "eval/torch/torch_call.h"
#include "eval/treatment/prelude.h"
#include "guards/constants.h"

namespace oxy::eval {

namespace {

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

// Methods of an OrderedDict or defaultdict that give the same result for a plain dict of the same entries.
constexpr std::array<std::string_view, 5> kReadsDict = {"keys", "values", "items", "__iter__",
                                                        "__reversed__"};

// Whether all fields of a text for str.format() are "{}" or "{0}", "{1}" ...: they insert the text of an
// argument as it is.
bool has_plain_fields(PyObject* text) {
  const char* utf8 = PyUnicode_Check(text) ? PyUnicode_AsUTF8(text) : nullptr;
  if (!utf8) return false;
  for (const char* c = utf8; *c != 0; ++c) {
    if (*c != '{') continue;
    if (*++c == '{') continue;
    while (*c >= '0' && *c <= '9') ++c;
    if (*c != '}') return false;
  }
  return true;
}

// Whether all fields of a text are "{}", and as many as there are arguments.
bool takes_in_order(PyObject* text, size_t arguments) {
  const std::string_view utf8 = PyUnicode_AsUTF8(text);
  size_t fields = 0;
  for (size_t at = utf8.find('{'); at != utf8.npos; at = utf8.find('{', at + 2), ++fields)
    if (!utf8.substr(at).starts_with("{}")) return false;
  return fields == arguments;
}

// Whether the arguments name a codec and an error handler that a program cannot replace.
bool is_built_in_coding(const Arguments& arguments) {
  static constexpr std::array<std::string_view, 15> kKnown = {
      "utf-8",           "utf8",          "UTF-8",
      "ascii",           "latin-1",       "latin1",
      "utf-16",          "utf-32",        "strict",
      "ignore",          "replace",       "backslashreplace",
      "surrogateescape", "surrogatepass", "xmlcharrefreplace"};
  const auto is_known = [](PyObject* value) {
    const char* text = PyUnicode_Check(value) ? PyUnicode_AsUTF8(value) : nullptr;
    return text && std::ranges::find(kKnown, text) != kKnown.end();
  };
  return std::ranges::all_of(arguments.positional, [&](const Ref& value) { return is_known(value.get()); }) &&
         std::ranges::all_of(arguments.keywords, [&](const auto& k) { return is_known(k.second.get()); });
}

// Methods of sequences whose first argument C code takes for a number.
constexpr std::array<std::string_view, 9> kTakesIndex = {"insert",      "pop",      "rotate",
                                                         "__getitem__", "__mul__",  "__rmul__",
                                                         "__setitem__", "__imul__", "__delitem__"};

// Methods of lists, deques and dicts that keep or give back an argument, and look at no other but an index or
// a key.
constexpr std::array<std::string_view, 7> kKeepsArgument = {
    "append", "appendleft", "insert", "setdefault", "get", "pop", "__setitem__"};

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

// Whether it is a method of a compiled regular expression whose arguments and results are strings or a match.
bool is_pattern_query(PyObject* self, std::string_view name, const Arguments& arguments) {
  if (reinterpret_cast<PyObject*>(Py_TYPE(self)) != well_known("re", "Pattern")) return false;
  const auto is_constant = [](PyObject* value) { return guards::is_constant(value); };
  return (name == "sub" || name == "subn" || name == "split" || name == "findall" || name == "match" ||
          name == "fullmatch" || name == "search") &&
         std::all_of(arguments.positional.begin(), arguments.positional.end(),
                     [&](const Ref& value) { return is_constant(value.get()); }) &&
         std::all_of(arguments.keywords.begin(), arguments.keywords.end(),
                     [&](const auto& keyword) { return is_constant(keyword.second.get()); });
}

}  // namespace

// operator.itemgetter and attrgetter: constants of what they were made of.
Ref call_getter(Interpreter& interpreter, PyObject* getter, PyObject* object) {
  if (interpreter.externals.is_external(getter)) pin(interpreter, getter);
  const bool item = reinterpret_cast<PyObject*>(Py_TYPE(getter)) == well_known("operator", "itemgetter");
  Ref parts = Ref::steal(PyObject_CallMethod(getter, "__reduce__", nullptr));
  if (!parts) return {};
  PyObject* keys = PyTuple_GET_ITEM(parts.get(), 1);
  std::vector<Ref> values;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keys); ++i) {
    PyObject* key = PyTuple_GET_ITEM(keys, i);
    if (item) {
      values.push_back(get_item(interpreter, object, key));
    } else {
      std::string_view path = PyUnicode_AsUTF8(key);
      Ref value = Ref::borrow(object);
      while (value && !path.empty()) {
        const size_t dot = std::min(path.find('.'), path.size());
        const std::string name(path.substr(0, dot));
        value = get_attribute(interpreter, value.get(), interned(name.c_str()).get());
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

namespace {

// A method of a class itself.
Ref call_class_method(Interpreter& interpreter, PyObject* bound, PyObject* self, std::string_view name,
                      Arguments arguments) {
  auto* const type = reinterpret_cast<PyTypeObject*>(self);
  if (name == "from_iterable" && self == well_known("itertools", "chain") && arguments.positional.size() == 1)
    return call(interpreter, prelude_function("chain_from_iterable").get(), std::move(arguments));
  PyObject* const function = well_known("torch.autograd.function", "Function");
  if (name == "apply" && function && PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(function))) {
    arguments.positional.insert(arguments.positional.begin(), Ref::borrow(self));
    return apply_function(interpreter, arguments);
  }
  if (name == "__call__") {
    if (Py_TYPE(self) == &PyType_Type) return call(interpreter, self, std::move(arguments));
    if (is_enum_class(self)) interpreter.stop("calls an enum class as any other class");
    return make_instance(interpreter, type, std::move(arguments));
  }
  if (name == "fromkeys" && !arguments.positional.empty() && arguments.positional.size() <= 2 &&
      (self == reinterpret_cast<PyObject*>(&PyDict_Type) ||
       self == reinterpret_cast<PyObject*>(&PyODict_Type))) {
    Ref made = Ref::steal(PyObject_CallNoArgs(self));
    PyObject* const value = arguments.positional.size() == 2 ? arguments.positional[1].get() : Py_None;
    const auto put = [&](const Ref& key) { return set_item(interpreter, made.get(), key.get(), value); };
    return made && take_items(interpreter, arguments.positional[0].get(), put) ? made : Ref();
  }
  if ((name == "fromkeys" || name == "from_bytes" || name == "fromhex") && is_python_class(type))
    interpreter.stop(fmt::format("calls method {} of class {}", name, type->tp_name));
  if (name == "mro" && arguments.positional.empty() && arguments.keywords.empty()) {
    const Ref key = interned("mro");
    if (type_lookup(interpreter, Py_TYPE(type), key.get()) != _PyType_Lookup(&PyType_Type, key.get()))
      interpreter.stop("asks a class for its mro(), which its metaclass has made");
    guard_resolution_order(interpreter, type);
    Ref order = Ref::steal(PySequence_List(type->tp_mro));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(order.get()); ++i)
      pin(interpreter, PyList_GET_ITEM(order.get(), i));
    return order;
  }
  if (name == "__subclasses__")
    interpreter.stop(fmt::format("asks class {} for its subclasses", type->tp_name),
                     "there may be more of them at each call");
  if (name == "__instancecheck__" || name == "__subclasscheck__")
    for (const Ref& value : arguments.positional)
      guard_resolution_order(interpreter, PyType_Check(value.get())
                                              ? reinterpret_cast<PyTypeObject*>(value.get())
                                              : Py_TYPE(value.get()));
  if (name == "__instancecheck__" || name == "__subclasscheck__" || name == "fromkeys" ||
      name == "maketrans" || name == "__init_subclass__" || name == "from_bytes" || name == "fromhex")
    return call_real_plain(interpreter, bound, arguments);
  interpreter.stop(fmt::format("calls method {} of class {}", name, type->tp_name));
}

// A method of a constant, or of an object that is compared by value.
Ref call_value_method(Interpreter& interpreter, PyObject* bound, PyObject* self, std::string_view name,
                      const Arguments& arguments) {
  if (PySlice_Check(self)) refuse_own_code(interpreter, self, name);
  if ((name == "encode" || name == "decode") && !is_built_in_coding(arguments))
    interpreter.stop(fmt::format("calls {}() with a codec that may be the program's", name));
  Arguments shown;
  for (const Ref& value : arguments.positional) {
    if (name == "join") {
      const Ref parts = fast_sequence(interpreter, value.get());
      if (!parts) return {};
      shown.positional.push_back(plain(interpreter, parts.get(), "join()"));
    } else if (name == "format" && !guards::is_constant(value.get())) {
      if (!has_plain_fields(self)) interpreter.stop("formats an object in another way than as text");
      if (has_own_code(interpreter, value.get()) && !takes_in_order(self, arguments.positional.size()))
        interpreter.stop("formats objects in another order than they are given in");
      shown.positional.push_back(format(interpreter, value.get(), 0, nullptr));
      if (!shown.positional.back()) return {};
    } else {
      shown.positional.push_back(plain(interpreter, value.get(), "a method"));
    }
  }
  for (const auto& [key, value] : arguments.keywords) {
    if (!guards::is_constant(value.get())) interpreter.stop("formats an object by keyword");
    shown.keywords.emplace_back(key, value);
  }
  return call_real(interpreter, bound, shown);
}

}  // namespace

// A method of a C type, bound to `self`.
Ref call_c_method(Interpreter& interpreter, PyObject* bound, PyObject* self, std::string_view name,
                  Arguments arguments) {
  if (trace::is_trace_tensor(self)) {
    const bool sets_item =
        name == "__setitem__" && arguments.positional.size() == 2 && arguments.keywords.empty();
    if (!sets_item) return call_torch(interpreter, bound, arguments);
    return set_item(interpreter, self, arguments.positional[0].get(), arguments.positional[1].get()) ? none()
                                                                                                     : Ref();
  }
  if (is_generator(self) || is_coroutine(self))
    return call_generator_method(interpreter, self, name, arguments);
  if (name == "__new__" && PyType_Check(self)) return call_c_new(interpreter, bound, std::move(arguments));
  if (PyType_Check(self) && (name == "__getattribute__" || name == "__setattr__" || name == "__delattr__"))
    interpreter.stop(
        fmt::format("calls method {} of class {}", name, reinterpret_cast<PyTypeObject*>(self)->tp_name));
  const bool of_attributes = name == "__getattribute__" || name == "__setattr__" || name == "__delattr__";
  if (of_attributes && !arguments.positional.empty() && !PyUnicode_CheckExact(arguments.positional[0].get()))
    interpreter.stop(fmt::format("calls {} with a name that is no str", name));
  if (name == "__getattribute__" && arguments.positional.size() == 1)
    return generic_get_attribute(interpreter, self, arguments.positional[0].get());
  if (name == "__setattr__" && arguments.positional.size() == 2)
    return generic_set_attribute(interpreter, self, arguments.positional[0].get(),
                                 arguments.positional[1].get())
               ? Ref::borrow(Py_None)
               : Ref();
  if (name == "__delattr__" && arguments.positional.size() == 1)
    return generic_set_attribute(interpreter, self, arguments.positional[0].get(), nullptr)
               ? Ref::borrow(Py_None)
               : Ref();
  if (PyMethod_Check(self) || PyFunction_Check(self)) {
    if (name == "__call__") return call(interpreter, self, std::move(arguments));
  }
  if (PyType_Check(self)) return call_class_method(interpreter, bound, self, name, std::move(arguments));
  if (!arguments.keywords.empty() && is_container(self) && PyCFunction_Check(bound) &&
      !(PyCFunction_GET_FLAGS(bound) & METH_KEYWORDS))
    interpreter.stop(fmt::format("gives {} keywords, which it refuses", name));  // eager raises
  if (THPDevice_Check(self) && (name == "__enter__" || name == "__exit__"))
    return call_device_context(interpreter, self, name);
  if (is_value_object(self) && (name == "__enter__" || name == "__exit__"))
    interpreter.stop(fmt::format("enters or leaves a {} as a context manager", Py_TYPE(self)->tp_name));
  if (is_enum_member(self) && is_container(self))
    interpreter.stop("calls a method of an enum member that is a container");
  const bool external = interpreter.externals.is_external(self);
  if (guards::is_constant(self) || is_value_object(self))
    return call_value_method(interpreter, bound, self, name, arguments);
  if (name == "__reduce_ex__" && arguments.positional.size() == 1)
    if (Ref parts = reduced_object(interpreter, self, arguments.positional[0].get())) return parts;
  if (name == "__init__" && is_object_method(bound)) {
    const bool has_arguments = !arguments.positional.empty() || !arguments.keywords.empty();
    return object_takes(interpreter, Py_TYPE(self), false, has_arguments) ? Ref::borrow(Py_None) : Ref();
  }
  if (name == "__get__" && PyFunction_Check(self) && !arguments.positional.empty() &&
      arguments.positional[0] != Py_None)
    return bind_descriptor(interpreter, self, arguments.positional[0].get(),
                           Py_TYPE(arguments.positional[0].get()));
  if (name == "__eq__" || name == "__ne__") {
    if (std::optional<Ref> found = search_sequence(interpreter, self, name, arguments)) return *found;
    if (arguments.positional.size() == 1 && !is_container(self))
      return call_equality(interpreter, bound, self, name == "__ne__" && is_object_method(bound),
                           arguments.positional[0].get());
  }
  if (name == "__hash__" || name == "__repr__" || name == "__str__" || name == "__format__" ||
      name == "__sizeof__" || name == "__dir__")
    interpreter.stop(fmt::format("calls {} of an object of type {}", name, Py_TYPE(self)->tp_name));
  if (name == "__enter__" || name == "__exit__") {
    if (!external && c_class_name(Py_TYPE(self)).starts_with("torch._C.")) {
      for (Ref& value : arguments.positional)
        if (is_unknown_traceback(value.get())) value = Ref::borrow(Py_None);
      return call_real_plain(interpreter, bound, arguments);
    }
    interpreter.stop(fmt::format("enters a context manager of type {}", Py_TYPE(self)->tp_name));
  }
  const bool container = is_container(self);
  if (container && !PyDict_Check(self) && !PyAnySet_Check(self) && among(kTakesIndex, name) &&
      !arguments.positional.empty()) {
    refuse_own_code(interpreter, arguments.positional[0].get(), name);
    arguments.positional[0] = known(interpreter, arguments.positional[0].get(), "an index");
  }
  const std::array<PyObject*, 1> operands = {self};
  if (auto result =
          with_scalars(interpreter, operands, [&] { return call_real_plain(interpreter, bound, arguments); }))
    return *result;
  if (is_pattern_query(self, name, arguments)) {
    if (external) pin(interpreter, self);
    return call_real(interpreter, bound, arguments);
  }
  if (external) {
    if (auto result = call_container_method(interpreter, self, name, arguments)) return std::move(*result);
    const bool special = PyDict_Check(self) && native_base(Py_TYPE(self)) != &PyDict_Type;
    if (special && !among(kReadsDict, name))
      interpreter.stop(fmt::format("calls method {} of an object of type {}", name, Py_TYPE(self)->tp_name));
    if (container && !among(kMutators, name)) {
      Ref copy = materialize(interpreter, self);
      if (name.starts_with("__reduce") && Py_TYPE(copy.get()) != Py_TYPE(self))
        interpreter.stop(
            fmt::format("calls method {} of an object of type {}", name, Py_TYPE(self)->tp_name));
      if (Shadow* s = interpreter.shadows.find(self)) s->iterated = true;
      Ref result = call_on_copy(interpreter, copy.get(), name, std::move(arguments));
      const bool itself = result == copy && (PyTuple_CheckExact(self) || PyFrozenSet_CheckExact(self));
      return itself ? Ref::borrow(self) : result;
    }
    if (among(kMutators, name))
      interpreter.stop(fmt::format("changes a {} made before the call", Py_TYPE(self)->tp_name));
    if ((Py_TYPE(self) == &PyDictProxy_Type)) interpreter.stop("reads a mapping proxy");
    interpreter.stop(fmt::format("calls method {} of an object of type {}", name, Py_TYPE(self)->tp_name));
  }
  if ((Py_TYPE(self) == &PyDictProxy_Type)) return call_real_plain(interpreter, bound, arguments);
  if (container || is_builtin_iterator(self) || PyExceptionInstance_Check(self) || PyDictKeys_Check(self) ||
      PyDictValues_Check(self) || PyDictItems_Check(self) || Py_TYPE(self) == &PyProperty_Type) {
    if (name == "sort" && PyList_Check(self)) return sort_in_place(interpreter, self, arguments);
    if (std::optional<Ref> found = search_sequence(interpreter, self, name, arguments)) return *found;
    if (name == "index" || name == "count" || name == "remove") {
      refuse_own_code(interpreter, self, name);
      Arguments shown;
      for (const Ref& value : arguments.positional)
        shown.positional.push_back(plain(interpreter, value.get(), "a method"));
      const Ref copy = plain(interpreter, self, "a method");
      return call_real(interpreter,
                       Ref::steal(PyObject_GetAttrString(copy.get(), std::string(name).c_str())).get(),
                       shown);
    }
    if ((PyDict_Check(self) || PyAnySet_Check(self)) && !arguments.positional.empty() &&
        !among(kReadsArguments, name))
      arguments.positional[0] = key_of(interpreter, arguments.positional[0].get());
    if (name == "with_traceback") interpreter.stop("replaces a traceback");
    if (std::optional<Ref> merged = merge_into(interpreter, self, name, arguments)) return *merged;
    for (Ref& value : arguments.positional) {
      if (!among(kReadsArguments, name) || PyExceptionInstance_Check(self)) continue;
      if (is_generator(value.get()) && name.starts_with("__"))
        interpreter.stop("gives a generator to " + std::string(name));
      // Operators need an operand of the same kind. Only `list +=` and `dict |=` take any iterable.
      if (name == "__add__" || name == "__or__" || (name == "__ior__" && PyAnySet_Check(self))) {
        value = materialize(interpreter, value.get());
        continue;
      }
      refuse_own_iteration(interpreter, value.get());
      if (PyAnySet_Check(self) && !guards::is_constant(value.get()))
        value = items_for_set(interpreter, value.get());
      else if (PyDict_Check(value.get()))
        value = materialize(interpreter, value.get());
      else if (!guards::is_constant(value.get()))
        value = drain(interpreter, value.get(), PyUnicode_Check(self));
      if (!value) return {};
    }
    const bool keeps = (PyList_Check(self) || PyDict_Check(self) || is_deque_type(Py_TYPE(self))) &&
                       among(kKeepsArgument, name);
    Ref result = keeps ? call_as_it_is(bound, arguments) : call_real(interpreter, bound, arguments);
    if (!result && PyErr_Occurred() && PyErr_ExceptionMatches(trace::trace_error()))
      stop_on_torch_error(interpreter);
    return result;
  }
  if (c_class_name(Py_TYPE(self)).starts_with("torch._C.")) return call_torch(interpreter, bound, arguments);
  interpreter.stop(fmt::format("calls method {} of an object of type {}", name, Py_TYPE(self)->tp_name));
}

}  // namespace oxy::eval
