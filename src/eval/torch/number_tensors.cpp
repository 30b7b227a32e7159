#include "eval/torch/number_tensors.h"

#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>
#include <torch/csrc/Device.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/Size.h>

#include "eval/numbers/float_of_data.h"
#include "eval/numbers/number_operands.h"
#include "eval/numbers/symbolic_integer.h"
#include "eval/numbers/varying_number.h"
#include "eval/python/objects.h"
#include "runtime/values/host.h"
#include "runtime/values/tensor_object.h"

namespace oxy::eval {

at::Tensor number_tensor(Interpreter& interpreter, PyObject* number) {
  if (PyFloat_CheckExact(number)) return at::scalar_tensor(PyFloat_AS_DOUBLE(number), at::kDouble);
  const std::optional<sym::Expr> expression = expression_of(interpreter, number);
  return expression ? integer_tensor(interpreter, *expression, c10::Device(runtime::kHost))
                    : varying_as_double(interpreter, number);
}

namespace {

constexpr Py_ssize_t kMostNumbers = 64;  // each of which is a node of the graph
constexpr int kMostDimensions = 2;

struct Asked {
  at::ScalarType type = at::ScalarType::Undefined;  // if none is asked for
  c10::Device device{runtime::kHost};
};

// Nothing: there are other keywords.
std::optional<Asked> options_of(const Arguments& arguments) {
  Asked asked;
  for (const auto& [keyword, value] : arguments.keywords) {
    if (value.get() == Py_None) continue;
    const bool is_type = PyUnicode_CompareWithASCIIString(keyword.get(), "dtype") == 0;
    if (is_type && THPDtype_Check(value.get()))
      asked.type = reinterpret_cast<THPDtype*>(value.get())->scalar_type;
    else if (PyUnicode_CompareWithASCIIString(keyword.get(), "device") == 0 && THPDevice_Check(value.get()))
      asked.device = reinterpret_cast<THPDevice*>(value.get())->device;
    else
      return std::nullopt;
  }
  return asked;
}

bool is_list(PyObject* object) {
  return PyList_CheckExact(object) || PyTuple_CheckExact(object) || THPSize_Check(object);
}

std::span<PyObject* const> items_of(PyObject* list) {
  return {PySequence_Fast_ITEMS(list), static_cast<size_t>(PySequence_Fast_GET_SIZE(list))};
}

// What numbers there are.
struct Contents {
  size_t count = 0;
  bool varies = false;     // one of them does
  bool has_float = false;  // one of them is a float
};

// False: there is something else, or the lists are not equally long.
bool look_at(Interpreter& interpreter, PyObject* data, int dimensions, Contents& contents) {
  if (is_list(data)) {
    if (dimensions == 0) return false;
    const auto items = items_of(data);
    if (items.empty()) return false;
    for (PyObject* item : items) {
      const bool is_alike = is_list(item) == is_list(items[0]) &&
                            (!is_list(item) || items_of(item).size() == items_of(items[0]).size());
      if (!is_alike || !look_at(interpreter, item, dimensions - 1, contents)) return false;
    }
    return true;
  }
  ++contents.count;
  if (is_varying_number(data)) {
    const bool is_float = varying_class(interpreter, data) == &PyFloat_Type;
    contents.varies = true;
    contents.has_float = contents.has_float || is_float;
    return is_float ? !depends_on_data(interpreter, data) : expression_of(interpreter, data).has_value();
  }
  contents.has_float = contents.has_float || PyFloat_CheckExact(data);
  return PyFloat_CheckExact(data) || (PyLong_CheckExact(data) && expression_of(interpreter, data));
}

at::Tensor tensor_of(Interpreter& interpreter, PyObject* data, const Asked& asked) {
  if (!is_list(data)) {
    at::Tensor number = number_tensor(interpreter, data);
    if (at::isFloatingType(asked.type)) number = number.to(at::kDouble);  // as Python converts an int
    return number.to(asked.device, asked.type, false, /*copy=*/true);
  }
  std::vector<at::Tensor> parts;
  for (PyObject* item : items_of(data)) parts.push_back(tensor_of(interpreter, item, asked));
  return at::stack(parts);
}

}  // namespace

std::optional<Ref> tensor_of_varying(Interpreter& interpreter, const Arguments& arguments) {
  if (arguments.positional.size() != 1 || !interpreter.numbers.symbols) return std::nullopt;
  std::optional<Asked> asked = options_of(arguments);
  if (!asked) return std::nullopt;
  PyObject* const data = arguments.positional[0].get();
  Contents contents;
  if (!look_at(interpreter, data, kMostDimensions, contents) || !contents.varies ||
      contents.count > kMostNumbers)
    return std::nullopt;
  if (asked->type == at::ScalarType::Undefined)
    asked->type = contents.has_float ? c10::get_default_dtype_as_scalartype() : at::kLong;
  // Types that hold each of the numbers.
  const bool holds_all = asked->type == at::kFloat || asked->type == at::kDouble ||
                         (asked->type == at::kLong && !contents.has_float);
  if (!holds_all) return std::nullopt;
  return Ref::steal(runtime::wrap_tensor(tensor_of(interpreter, data, *asked)));
}

}  // namespace oxy::eval
