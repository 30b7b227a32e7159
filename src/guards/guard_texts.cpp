// What guards say of themselves: for explain(), logs and the reasons of recompiles.
#include <fmt/format.h>

#include "guards/constants.h"
#include "guards/guard_set.h"
#include "runtime/values/tensor_object.h"

namespace oxy::guards {
namespace {

// How a check reads between the place and what it is compared with.
const char* relation(CheckKind kind) {
  switch (kind) {
    case CheckKind::Identity:
    case CheckKind::Same:
      return "is";
    case CheckKind::Type:
      return "type is";
    case CheckKind::Equal:
      return "==";
    case CheckKind::Length:
      return "len ==";
    case CheckKind::DictKeys:
      return "keys are";
    case CheckKind::Absent:
      return "lacks";
    case CheckKind::SetEqual:
      return "set ==";
    case CheckKind::SetOrder:
      return "in order ==";
    case CheckKind::DequeLimit:
      return "has the same maxlen";
    case CheckKind::Tensor:
      return "tensor";
    case CheckKind::Unbound:
      return "unbound";
    case CheckKind::Present:
      return "present";
    case CheckKind::NoGradientHooks:
      return "has no hooks on its gradient";
    case CheckKind::FitsType:
      return "fits its type";
    case CheckKind::Finite:
      return "is finite";
    case CheckKind::Definition:
      return "is the same method of C code";
    case CheckKind::FitsInt64:
      return "fits 64 bits";
    case CheckKind::Unfinalized:
      return "has no finalizer";
    case CheckKind::Elements:
      return "has the same elements";
  }
  return "?";
}

std::string name_of(PyObject* function) {
  cpy::Ref name = cpy::Ref::steal(PyObject_GetAttrString(function, "__name__"));
  const char* utf8 = name ? PyUnicode_AsUTF8(name.get()) : nullptr;
  PyErr_Clear();
  return utf8 ? utf8 : "?";
}

// The repr() of what has one that runs no code of the program's, the class of what else there is.
cpy::Ref safe_repr(PyObject* object) {
  if (PyType_Check(object)) return cpy::Ref::steal(PyType_Type.tp_repr(object));
  if (is_constant(object) || is_value(object) || PyFunction_Check(object) || PyCFunction_CheckExact(object) ||
      PyCode_Check(object))
    return cpy::Ref::steal(PyObject_Repr(object));
  return cpy::Ref::steal(PyUnicode_FromFormat("<%s object>", Py_TYPE(object)->tp_name));
}

std::string show(PyObject* object) {
  if (!object) return "missing";
  if (PyTuple_CheckExact(object)) {
    std::string items;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i) {
      PyObject* const item = PyTuple_GET_ITEM(object, i);
      items += fmt::format("{}{}", i == 0 ? "" : ", ", PyTuple_Check(item) ? "(...)" : show(item));
    }
    return fmt::format("({}{})", items, PyTuple_GET_SIZE(object) == 1 ? "," : "");
  }
  const cpy::Ref repr = safe_repr(object);
  const char* utf8 = repr ? PyUnicode_AsUTF8(repr.get()) : nullptr;
  if (!utf8) {
    PyErr_Clear();
    return "?";
  }
  return utf8;
}

// As show(), in at most 60 characters.
std::string show_briefly(PyObject* object) {
  const cpy::Ref text = cpy::Ref::steal(PyUnicode_FromString(show(object).c_str()));
  const bool is_long = text && PyUnicode_GET_LENGTH(text.get()) > 60;
  const cpy::Ref part = is_long ? cpy::Ref::steal(PyUnicode_Substring(text.get(), 0, 57)) : text;
  const char* utf8 = part ? PyUnicode_AsUTF8(part.get()) : nullptr;
  PyErr_Clear();
  return utf8 ? fmt::format("{}{}", utf8, is_long ? "..." : "") : "?";
}

// " (file.py:12 in forward)", or nothing.
std::string asked_at(const Check& check) {
  return check.asked_at.empty() ? "" : fmt::format(" ({})", check.asked_at);
}

}  // namespace

std::string GuardSet::describe(SourceId id) const {
  const Source& source = nodes_[id].source;
  const std::string base = source.base == kNoSource ? "" : describe(source.base);
  switch (source.kind) {
    case SourceKind::Root: {
      const char* label = PyUnicode_AsUTF8(source.key.get());
      return label ? label : "?";
    }
    case SourceKind::Pinned:
      if (PyObject* module_name =
              PyModule_Check(source.key.get()) ? PyModule_GetNameObject(source.key.get()) : nullptr) {
        std::string name = PyUnicode_AsUTF8(module_name);
        Py_DECREF(module_name);
        return name;
      }
      if (!PyDict_Check(source.key.get())) return show_briefly(source.key.get());
      return PyDict_GetItemString(source.key.get(), "__name__") ? "globals" : "a dict";
    case SourceKind::InstanceDict:
      return base + ".__dict__";
    case SourceKind::DictItem:
      return fmt::format("{}[{}]", base, show_briefly(source.key.get()));
    case SourceKind::ListItem:
    case SourceKind::TupleItem:
    case SourceKind::DequeItem:
      return fmt::format("{}[{}]", base, source.index);
    case SourceKind::CellContents:
      return base + ".cell_contents";
    case SourceKind::FunctionCode:
      return base + ".__code__";
    case SourceKind::FunctionDefaults:
      return base + ".__defaults__";
    case SourceKind::FunctionKwDefaults:
      return base + ".__kwdefaults__";
    case SourceKind::FunctionGlobals:
      return base + ".__globals__";
    case SourceKind::FunctionClosure:
      return base + ".__closure__";
    case SourceKind::MethodFunction:
      return base + ".__func__";
    case SourceKind::MethodSelf:
      return base + ".__self__";
    case SourceKind::Member:
      return fmt::format("{}.{}", base, name_of(source.key.get()));
    case SourceKind::ContextVariable:
      return base + ".get()";
    case SourceKind::WeakReferent:
      return base + "()";
    case SourceKind::Calculated:
      return source.other == kNoSource
                 ? fmt::format("{}({})", name_of(source.key.get()), base)
                 : fmt::format("{}({}, {})", name_of(source.key.get()), base, describe(source.other));
    case SourceKind::TensorSize:
      return fmt::format("{}.size({})", base, source.index);
    case SourceKind::TensorStride:
      return fmt::format("{}.stride({})", base, source.index);
    case SourceKind::TensorOffset:
      return base + ".storage_offset()";
    case SourceKind::TensorElement:
      return fmt::format("{}.flatten()[{}]", base, source.index);
    case SourceKind::SetMember:
      return fmt::format("{} in {}", show_briefly(source.key.get()), base);
  }
  return "?";
}

std::string GuardSet::explain_failure(std::span<PyObject* const> roots) {
  fast_valid_ = false;
  for (const TypeLookup& lookup : type_lookups_) {
    if (lookup.order && reinterpret_cast<PyTypeObject*>(lookup.type.get())->tp_mro != lookup.order.get())
      return fmt::format("the bases of {} changed", show(lookup.type.get()));
    for (const auto& [name, found] : lookup.names)
      if (_PyType_Lookup(reinterpret_cast<PyTypeObject*>(lookup.type.get()), name.get()) != found.get())
        return fmt::format("attribute {} of {} was replaced", show(name.get()), show(lookup.type.get()));
  }
  if (const std::optional<Failure> failure = first_failure(roots)) {
    const std::string where = describe(failure->source);
    if (!failure->check) return where + " can no longer be reached";
    PyObject* value = this->value(failure->source);
    const Check& check = *failure->check;
    switch (check.kind) {
      case CheckKind::Tensor:
        return runtime::is_tensor(value)
                   ? where + ": " +
                         tensors_[TensorGuardId(check.number)].difference(runtime::tensor_of(value))
                   : where + ": was a tensor, is not";
      case CheckKind::Type:
        return fmt::format("type({}): was {}, is {}", where, show(check.object.get()),
                           value ? show(reinterpret_cast<PyObject*>(Py_TYPE(value))) : "missing");
      case CheckKind::Length:
        return fmt::format("len({}): was {}, is {}", where, check.number, value ? length_of(value) : -1);
      case CheckKind::DictKeys:
        return fmt::format("the keys of {} changed", where);
      case CheckKind::Absent:
        return fmt::format("{} now has {}", where, show(check.object.get()));
      case CheckKind::Present:
        return fmt::format("{}: was there, is missing", where);
      case CheckKind::Unbound:
        return fmt::format("{}: was missing, is {}", where, show(value));
      case CheckKind::Identity:
        // Two objects of one class may look alike.
        return fmt::format("{}: was {}, is {}{}", where, show(check.object.get()), show(value),
                           value && show(value) == show(check.object.get()) ? ", another one" : "");
      case CheckKind::Elements:
        return fmt::format("the elements of {}, which decide what is done, changed", where);
      case CheckKind::NoGradientHooks:
        return fmt::format("{} has hooks on its gradient", where);
      case CheckKind::Same:
        return fmt::format("{} is no longer {}", where, describe(SourceId(check.number)));
      default:
        return fmt::format("{}{}: was {}, is {}", where, asked_at(check), show(check.object.get()),
                           show(value));
    }
  }
  for (const DistinctGroup& group : distinct_)
    for (size_t i = 0; i < group.sources.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        if (value(group.sources[i]) == value(group.sources[j]))
          return fmt::format("{} is now {}", describe(group.sources[i]), describe(group.sources[j]));
  if (symbols_.empty() || check_symbols()) return "";
  const std::string relation = symbols_.explain();
  return relation.empty() ? "a size or number that varies does not fit 64 bits" : relation;
}

std::vector<std::string> GuardSet::describe_all() const {
  std::vector<std::string> lines;
  for (const Check& check : checks_) {
    const std::string where = describe(check.source);
    switch (check.kind) {
      case CheckKind::Tensor: {
        const TensorGuard& t = tensors_[TensorGuardId(check.number)];
        std::string sizes;
        for (int64_t size : t.sizes)
          sizes += (sizes.empty() ? "" : ", ") + (size == kAnyInteger ? "any" : std::to_string(size));
        lines.push_back(fmt::format("{} tensor {}[{}]{}", where, c10::toString(t.dtype), sizes,
                                    t.requires_grad ? " requires grad" : ""));
        break;
      }
      case CheckKind::Length:
        lines.push_back(fmt::format("len({}) == {}", where, check.number));
        break;
      case CheckKind::Same:
        lines.push_back(
            fmt::format("{} {} {}", where, relation(check.kind), describe(SourceId(check.number))));
        break;
      default:
        lines.push_back(fmt::format("{} {}{}{}", where, relation(check.kind),
                                    check.object ? " " + show(check.object.get()) : "", asked_at(check)));
    }
  }
  for (const DistinctGroup& group : distinct_)
    lines.push_back(fmt::format("{} objects are different ones", group.sources.size()));
  for (const TypeLookup& lookup : type_lookups_)
    lines.push_back(fmt::format("{}: {} attributes unchanged", show(lookup.type.get()), lookup.names.size()));
  lines.insert(lines.end(), symbols_.texts().begin(), symbols_.texts().end());
  return lines;
}

}  // namespace oxy::guards
