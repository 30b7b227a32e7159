#include "eval/sizes/specified_sizes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "eval/sizes/specification_error.h"
#include "runtime/values/tensor_object.h"

namespace oxy::eval {

using cpy::Ref;

namespace {

Ref expect(PyObject* object) {
  if (object == nullptr) throw Interrupted{};
  return Ref::steal(object);
}

// An attribute of a module that torch or Python itself has, imported if need be.
Ref member(const char* module, const char* name) {
  const Ref imported = expect(PyImport_ImportModule(module));
  return expect(PyObject_GetAttrString(imported.get(), name));
}

std::string text_of(PyObject* object) {
  const Ref text = expect(PyObject_Repr(object));
  const char* const utf8 = PyUnicode_AsUTF8(text.get());
  if (utf8 == nullptr) PyErr_Clear();
  return utf8 == nullptr ? "?" : utf8;
}

bool is_sequence(PyObject* object) {
  return PyTuple_Check(object) || PyList_Check(object);
}

// The children of an object that torch's pytree takes apart; null: it does not know the class.
Ref children_of(PyObject* object) {
  if (is_sequence(object)) return Ref::borrow(object);
  const Ref known = member("torch.utils._pytree", "SUPPORTED_NODES");
  PyObject* const node = PyDict_GetItemWithError(known.get(), reinterpret_cast<PyObject*>(Py_TYPE(object)));
  if (node == nullptr) {
    if (PyErr_Occurred()) throw Interrupted{};
    return {};
  }
  const Ref flattened = expect(PyObject_CallMethod(node, "flatten_fn", "O", object));
  const Ref children = expect(PySequence_GetItem(flattened.get(), 0));
  return expect(PySequence_List(children.get()));
}

struct BoundArguments {
  std::vector<std::string> parameters;  // all of the callable
  Ref arguments;                        // a dict of those that the call gives, in order
  std::string variadic;                 // the parameter of further positional arguments; empty: there is none
  std::string keywords;                 // of further keywords
};

// Nothing: the arguments do not fit the callable, and the call will say so. Throws Interrupted if it has no
// signature.
std::optional<BoundArguments> bind(PyObject* target, PyObject* const* args, size_t positional,
                                   PyObject* kwnames) {
  const Ref module_class = member("torch.nn", "Module");
  const int is_module = PyObject_IsInstance(target, module_class.get());
  if (is_module < 0) throw Interrupted{};
  const Ref called = is_module ? expect(PyObject_GetAttrString(target, "forward")) : Ref::borrow(target);
  const Ref signature_of = member("inspect", "signature");
  const Ref signature = expect(PyObject_CallOneArg(signature_of.get(), called.get()));
  const Ref binder = expect(PyObject_GetAttrString(signature.get(), "bind"));
  const Ref bound = Ref::steal(PyObject_Vectorcall(binder.get(), args, positional, kwnames));
  if (!bound) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw Interrupted{};
    PyErr_Clear();
    return std::nullopt;
  }
  BoundArguments result;
  result.arguments = expect(PyObject_GetAttrString(bound.get(), "arguments"));
  const Ref parameters = expect(PyObject_GetAttrString(signature.get(), "parameters"));
  const Ref values = expect(PyMapping_Values(parameters.get()));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(values.get()); ++i) {
    PyObject* const parameter = PyList_GET_ITEM(values.get(), i);
    const Ref name = expect(PyObject_GetAttrString(parameter, "name"));
    const Ref kind = expect(PyObject_GetAttrString(parameter, "kind"));
    const char* const text = PyUnicode_AsUTF8(name.get());
    if (text == nullptr) throw Interrupted{};
    const auto is = [&](const char* what) {
      return expect(PyObject_GetAttrString(parameter, what)) == kind.get();
    };
    if (is("VAR_POSITIONAL")) result.variadic = text;
    if (is("VAR_KEYWORD")) result.keywords = text;
    result.parameters.emplace_back(text);
  }
  return result;
}

}  // namespace

SpecifiedSizes::Place SpecifiedSizes::Place::item(const std::string& key) const {
  Place result{fmt::format("{}[{}]", of_specification, key), fmt::format("{}[{}]", of_argument, key), {}};
  for (const std::string& source : sources) result.sources.push_back(fmt::format("{}[{}]", source, key));
  return result;
}

SpecifiedSizes::SpecifiedSizes(PyObject* specification, PyObject* target, PyObject* const* args,
                               size_t nargsf, PyObject* kwnames) {
  const std::optional<BoundArguments> bound =
      bind(target, args, static_cast<size_t>(PyVectorcall_NARGS(nargsf)), kwnames);
  if (!bound) return;
  const std::vector<std::string>& parameters = bound->parameters;
  std::map<std::string, std::pair<PyObject*, std::string>> entries;  // by parameter: the part and its place
  if (PyDict_Check(specification)) {
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t position = 0;
    while (PyDict_Next(specification, &position, &key, &value)) {
      const char* const name = PyUnicode_Check(key) ? PyUnicode_AsUTF8(key) : nullptr;
      if (name == nullptr || std::ranges::find(parameters, name) == parameters.end()) {
        PyErr_Clear();
        raise_specification(PyExc_ValueError,
                            fmt::format("dynamic_shapes names {}, which is no parameter: they are {}",
                                        text_of(key), fmt::join(parameters, ", ")));
      }
      entries.emplace(name, std::pair(value, fmt::format("dynamic_shapes['{}']", name)));
    }
  } else {
    const auto count = static_cast<size_t>(PySequence_Fast_GET_SIZE(specification));
    const auto given = static_cast<size_t>(PyDict_GET_SIZE(bound->arguments.get()));
    if (count > parameters.size() || count < given)
      raise_specification(
          PyExc_ValueError,
          fmt::format("dynamic_shapes has {} entries for the {} arguments of the call; give one each, or a "
                      "dict with those that matter",
                      count, given));
    for (size_t i = 0; i < count; ++i)
      entries.emplace(parameters[i],
                      std::pair(PySequence_Fast_GET_ITEM(specification, static_cast<Py_ssize_t>(i)),
                                fmt::format("dynamic_shapes[{}]", i)));
  }
  PyObject *key = nullptr, *value = nullptr;
  Py_ssize_t position = 0;
  size_t index = 0;  // of a positional argument
  while (PyDict_Next(bound->arguments.get(), &position, &key, &value)) {
    const std::string name = PyUnicode_AsUTF8(key);
    const auto entry = entries.find(name);
    const size_t first = index;
    index += name == bound->variadic ? static_cast<size_t>(PyTuple_GET_SIZE(value)) : 1;
    if (entry == entries.end()) continue;
    const auto& [part, place] = entry->second;
    match(part, value, {place, name, {name, fmt::format("args[{}]", first)}});
    // A whole call has further arguments as roots of their own.
    for (const auto& [known, said] : std::map(ints_)) {
      const std::string inside = name + "[";
      if (!known.starts_with(inside)) continue;
      if (name == bound->variadic) {
        const size_t end = known.find(']');
        const size_t item = std::stoul(known.substr(inside.size(), end - inside.size()));
        ints_.emplace(fmt::format("args[{}]{}", first + item, known.substr(end + 1)), said);
      }
      if (name == bound->keywords) {
        const size_t end = known.find("']");
        ints_.emplace(known.substr(inside.size() + 1, end - inside.size() - 1) + known.substr(end + 2), said);
      }
    }
  }
}

const std::vector<Dimension>* SpecifiedSizes::of_tensor(PyObject* tensor) const {
  const auto found = tensors_.find(tensor);
  return found == tensors_.end() ? nullptr : &found->second;
}

const Dimension* SpecifiedSizes::of_int(const std::string& place) const {
  const auto found = ints_.find(place);
  return found == ints_.end() ? nullptr : &found->second;
}

void SpecifiedSizes::match(PyObject* specification, PyObject* object, const Place& place) {
  if (object == Py_None) return;  // of an argument that a call may leave out
  if (runtime::is_tensor(object)) return match_tensor(specification, object, place);
  if (PyLong_CheckExact(object)) return match_int(specification, object, place);
  if (PyDict_Check(object)) return match_dict(specification, object, place);
  if (const Ref children = children_of(object)) return match_items(specification, children.get(), place);
  if (specification != Py_None)
    raise_specification(
        PyExc_ValueError,
        fmt::format("{} says something of {}, which is a {}: only tensors and ints have sizes, "
                    "others need None",
                    place.of_specification, place.of_argument, Py_TYPE(object)->tp_name));
}

void SpecifiedSizes::match_dict(PyObject* specification, PyObject* dict, const Place& place) {
  if (specification != Py_None && !PyDict_Check(specification))
    raise_specification(PyExc_ValueError, fmt::format("{} has to be a dict, as {} is one, or None",
                                                      place.of_specification, place.of_argument));
  const bool has_keys = specification != Py_None;
  PyObject *key = nullptr, *part = nullptr;
  Py_ssize_t position = 0;
  while (has_keys && PyDict_Next(specification, &position, &key, &part)) {
    const int contains = PyDict_Contains(dict, key);
    if (contains < 0) throw Interrupted{};
    if (contains == 0)
      raise_specification(PyExc_ValueError,
                          fmt::format("{} names the key {}, which {} does not have", place.of_specification,
                                      text_of(key), place.of_argument));
  }
  const Ref items = expect(PyDict_Items(dict));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
    PyObject* const item = PyList_GET_ITEM(items.get(), i);
    PyObject* const name = PyTuple_GET_ITEM(item, 0);
    PyObject* const said = has_keys ? PyDict_GetItemWithError(specification, name) : Py_None;
    if (said == nullptr && PyErr_Occurred()) throw Interrupted{};
    if (said != nullptr) match(said, PyTuple_GET_ITEM(item, 1), place.item(text_of(name)));
  }
}

void SpecifiedSizes::match_items(PyObject* specification, PyObject* items, const Place& place) {
  const bool is_none = specification == Py_None;
  if (!is_none && !is_sequence(specification))
    raise_specification(PyExc_ValueError,
                        fmt::format("{} has to be a tuple or list with an entry for each item of {}, or None",
                                    place.of_specification, place.of_argument));
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(items);
  if (!is_none && PySequence_Fast_GET_SIZE(specification) != count)
    raise_specification(PyExc_ValueError,
                        fmt::format("{} has {} entries, and {} has {} items", place.of_specification,
                                    PySequence_Fast_GET_SIZE(specification), place.of_argument, count));
  for (Py_ssize_t i = 0; i < count; ++i)
    match(is_none ? Py_None : PySequence_Fast_GET_ITEM(specification, i), PySequence_Fast_GET_ITEM(items, i),
          place.item(std::to_string(i)));
}

void SpecifiedSizes::match_int(PyObject* specification, PyObject* number, const Place& place) {
  const Dimension said = read_dimension(specification, place.of_specification);
  if (!said.name.empty() && said.mark.kind == sym::MarkKind::Dynamic)
    raise_specification(PyExc_ValueError,
                        fmt::format("{} gives the int {} a name: an int can be None, an int, Dim.AUTO, "
                                    "Dim.DYNAMIC or Dim.STATIC",
                                    place.of_specification, place.of_argument));
  int overflow = 0;
  const int64_t value = PyLong_AsLongLongAndOverflow(number, &overflow);
  if (overflow == 0) check_size(said, value, place.of_argument, place);
  for (const std::string& source : place.sources) ints_.emplace(source, said);
}

void SpecifiedSizes::match_tensor(PyObject* specification, PyObject* tensor, const Place& place) {
  const at::Tensor& real = runtime::tensor_of(tensor);
  const int64_t rank = real.dim();
  std::vector<Dimension> said(static_cast<size_t>(rank));
  const auto read = [&](int64_t d, PyObject* object, const std::string& key) {
    said[static_cast<size_t>(d)] = read_dimension(object, fmt::format("{}[{}]", place.of_specification, key));
  };
  if (specification == Py_None) {
    for (Dimension& dimension : said) dimension.mark.kind = sym::MarkKind::Static;
  } else if (PyDict_Check(specification)) {
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t position = 0;
    while (PyDict_Next(specification, &position, &key, &value)) {
      int overflow = 0;
      const int64_t number = PyLong_CheckExact(key) ? PyLong_AsLongLongAndOverflow(key, &overflow) : rank;
      if (overflow != 0 || number < -rank || number >= rank)
        raise_specification(PyExc_ValueError,
                            fmt::format("{} names the dimension {}, and {} has {}", place.of_specification,
                                        text_of(key), place.of_argument, rank));
      read(number < 0 ? number + rank : number, value, std::to_string(number));
    }
  } else if (is_sequence(specification)) {
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(specification);
    if (count != rank)
      raise_specification(PyExc_ValueError,
                          fmt::format("{} has {} entries, and {} has {} dimensions", place.of_specification,
                                      count, place.of_argument, rank));
    for (Py_ssize_t d = 0; d < count; ++d)
      read(d, PySequence_Fast_GET_ITEM(specification, d), std::to_string(d));
  } else {
    raise_specification(PyExc_TypeError,
                        fmt::format("{} is a {}: a tensor needs a dict of dimensions, a tuple or list of all "
                                    "of them, or None",
                                    place.of_specification, Py_TYPE(specification)->tp_name));
  }
  for (int64_t d = 0; d < rank; ++d)
    check_size(said[static_cast<size_t>(d)], real.size(d), fmt::format("{}.size({})", place.of_argument, d),
               place);
  const auto [known, is_new] = tensors_.emplace(tensor, said);
  if (is_new) held_.push_back(Ref::borrow(tensor));
  if (is_new) return;
  // An argument that is given twice.
  for (size_t d = 0; d < said.size(); ++d) {
    Dimension& first = known->second[d];
    if (first.mark.kind == sym::MarkKind::None) first = said[d];
    const bool is_same = said[d].mark.kind == sym::MarkKind::None ||
                         (first.mark.kind == said[d].mark.kind && first.name == said[d].name);
    if (!is_same)
      raise_specification(
          PyExc_ValueError,
          fmt::format("{} says another thing of dimension {} than was said of the same tensor "
                      "before",
                      place.of_specification, d));
  }
}

void SpecifiedSizes::check_size(const Dimension& said, int64_t size, const std::string& name,
                                const Place& place) {
  if (said.value && *said.value != size)
    raise_specification(
        PyExc_RuntimeError,
        fmt::format("{} is {}, but {} says that it is {}; Dim.STATIC allows any number, each compiled for "
                    "itself",
                    name, size, place.of_specification, *said.value));
  const sym::Range& range = said.mark.range;
  if (size < range.low || size > range.high)
    raise_specification(PyExc_RuntimeError, fmt::format("{} is {}, but {} is {}; give it other bounds", name,
                                                        size, said.mark.said, bounds_text(range)));
  if (said.name.empty()) return;
  const int64_t distance = size - said.offset;
  if (distance % said.factor != 0)
    raise_specification(PyExc_RuntimeError, fmt::format("{} is {}, and no '{}' makes {} that number", name,
                                                        size, said.name, said.mark.said));
  const NamedNumber number{said.named_range, distance / said.factor, name, size, place.of_specification};
  const auto [known, is_new] = named_.emplace(said.name, number);
  if (is_new) return;
  const NamedNumber& first = known->second;
  if (!(first.range == number.range))
    raise_specification(
        PyExc_ValueError,
        fmt::format("dynamic_shapes has two dimensions '{}' with different bounds, in {} and {}", said.name,
                    first.place, place.of_specification));
  if (first.value != number.value)
    raise_specification(
        PyExc_RuntimeError,
        fmt::format("{} is {} and {} is {}, but dynamic_shapes says that '{}' is one number: {} there and {} "
                    "here; give them different names, or Dim.AUTO",
                    first.of, first.size, name, size, said.name, first.value, number.value));
}

}  // namespace oxy::eval
