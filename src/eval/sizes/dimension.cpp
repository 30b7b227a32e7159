#include "eval/sizes/dimension.h"

#include <fmt/format.h>

#include <algorithm>

#include "cpy/ref.h"
#include "eval/python/attribute.h"
#include "eval/sizes/specification_error.h"

namespace oxy::eval {

namespace {

using cpy::Ref;

std::string text_attribute(PyObject* object, const char* name) {
  const Ref value = attribute_or_null(object, name);
  if (!value || !PyUnicode_Check(value.get())) return "";
  const char* const text = PyUnicode_AsUTF8(value.get());
  if (text == nullptr) PyErr_Clear();
  return text == nullptr ? "" : text;
}

// torch writes "no bound" as an object that is no int, or as None.
sym::Range range_attributes(PyObject* object) {
  return {exact_int(attribute_or_null(object, "min").get()).value_or(-sym::kMaxInt),
          std::min(exact_int(attribute_or_null(object, "max").get()).value_or(sym::kMaxInt), sym::kMaxInt)};
}

// As a mark has it: sizes without bounds may be narrowed by the program.
sym::Range promised(const sym::Range& range) {
  return range.low <= 0 && range.high >= sym::kMaxInt ? sym::Range{} : range;
}

// The member's name in the enum of torch.export's hints; empty: the object is no hint.
std::string hint_name(PyObject* object) {
  const Ref type = PyType_Check(object) ? Ref() : attribute_or_null(object, "type");
  return type ? text_attribute(type.get(), "name") : "";
}

bool is_named(PyObject* object) {
  const auto has = [&](const char* name) { return static_cast<bool>(attribute_or_null(object, name)); };
  // The bounds of a size that follows from another one may raise.
  return !text_attribute(object, "__name__").empty() &&
         ((has("root") && has("fn")) || (has("min") && has("max")));
}

// The value of the linear function at `x`.
int64_t value_at(PyObject* function, int64_t x, const std::string& place) {
  const Ref argument = Ref::steal(PyLong_FromLongLong(x));
  const Ref result = Ref::steal(PyObject_CallOneArg(function, argument.get()));
  if (!result) throw Interrupted{};
  const std::optional<int64_t> value = exact_int(result.get());
  if (!value)
    raise_specification(PyExc_TypeError,
                        fmt::format("{}: the size that follows from another one is a {}, no int", place,
                                    Py_TYPE(result.get())->tp_name));
  return *value;
}

Dimension named_dimension(PyObject* object, const std::string& place) {
  Dimension result;
  const Ref root = attribute_or_null(object, "root");
  const Ref function = root ? attribute_or_null(object, "fn") : Ref();
  const bool is_derived = function && PyCallable_Check(function.get());
  PyObject* const named = is_derived ? root.get() : object;
  result.name = text_attribute(named, "__name__");
  result.named_range = range_attributes(named);
  result.named_range.low = std::max<int64_t>(result.named_range.low, 0);
  sym::Range range = result.named_range;
  if (is_derived) {
    result.offset = value_at(function.get(), 0, place);
    result.factor = value_at(function.get(), 1, place) - result.offset;
    if (result.factor < 1)
      raise_specification(PyExc_ValueError,
                          fmt::format("{}: a size may only grow with '{}'", place, result.name));
    const auto mapped = [&](int64_t bound) {
      int64_t value = 0;
      const bool fits = !__builtin_mul_overflow(bound, result.factor, &value) &&
                        !__builtin_add_overflow(value, result.offset, &value) && value < sym::kMaxInt;
      return bound < sym::kMaxInt && fits ? value : sym::kMaxInt;
    };
    range = {std::max<int64_t>(mapped(range.low), 0), mapped(range.high)};
  }
  result.mark = {sym::MarkKind::Dynamic, promised(range),
                 fmt::format("the dimension '{}' of {}", text_attribute(object, "__name__"), place)};
  return result;
}

}  // namespace

std::optional<int64_t> exact_int(PyObject* object) {
  if (object == nullptr || !PyLong_CheckExact(object)) return std::nullopt;
  int overflow = 0;
  const int64_t value = PyLong_AsLongLongAndOverflow(object, &overflow);
  return overflow == 0 ? std::optional(value) : std::nullopt;
}

Dimension read_dimension(PyObject* object, const std::string& place) {
  if (object == Py_None) return {.mark = {sym::MarkKind::Static}};
  if (PyLong_CheckExact(object)) {
    const std::optional<int64_t> value = exact_int(object);
    if (!value || *value < 0)
      raise_specification(PyExc_ValueError, fmt::format("{}: no size is this number", place));
    return {.mark = {sym::MarkKind::Static}, .value = value};
  }
  const std::string hint = hint_name(object);
  const sym::Range range = hint.empty() ? sym::Range{} : promised(range_attributes(object));
  const std::string said = fmt::format("Dim.{} of {}", hint, place);
  const bool is_auto = hint == "AUTO";
  if (is_auto || hint == "DYNAMIC")
    return {.mark = {is_auto ? sym::MarkKind::MaybeDynamic : sym::MarkKind::Dynamic, range, said},
            .name = text_attribute(object, "__name__")};
  if (hint == "STATIC") return {.mark = {sym::MarkKind::Static}};
  if (is_named(object)) return named_dimension(object, place);
  raise_specification(
      PyExc_TypeError,
      fmt::format("{} is a {}: a size is None, an int, a torch.export.Dim, or Dim.AUTO, Dim.DYNAMIC or "
                  "Dim.STATIC",
                  place, Py_TYPE(object)->tp_name));
}

std::string bounds_text(const sym::Range& range) {
  std::string text;
  if (range.low > 0) text = fmt::format("at least {}", range.low);
  if (range.high < sym::kMaxInt) text += fmt::format("{}at most {}", text.empty() ? "" : " and ", range.high);
  return text;
}

}  // namespace oxy::eval
