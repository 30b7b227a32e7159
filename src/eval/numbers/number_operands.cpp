#include "eval/numbers/number_operands.h"

#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "eval/numbers/float_of_data.h"
#include "eval/numbers/symbolic_integer.h"
#include "eval/numbers/varying_number.h"
#include "eval/python/objects.h"
#include "guards/constants.h"
#include "runtime/values/tensor_object.h"

namespace oxy::eval {

using guards::CheckKind;

namespace {

// Methods of tensors that take a tensor without dimensions in place of a number.
constexpr std::array<std::string_view, 37> kTakesTensors = {
    "pow_",       "remainder_",  "fmod_",    "greater_equal",
    "less_equal", "not_equal",   "add",      "add_",
    "sub",        "sub_",        "subtract", "mul",
    "mul_",       "multiply",    "div",      "div_",
    "divide",     "true_divide", "lerp",     "lerp_",
    "addcdiv",    "addcdiv_",    "addcmul",  "addcmul_",
    "eq",         "ne",          "lt",       "le",
    "gt",         "ge",          "less",     "greater",
    "fmod",       "remainder",   "pow",      "copysign",
    "xlogy"};

// Those among them that would round a number to the type of 16 bits that a tensor has, or a product with it
// before something is added.
constexpr std::array<std::string_view, 14> kRoundsNumbers = {
    "lerp", "lerp_", "addcdiv",  "addcdiv_", "addcmul",   "addcmul_",   "fmod",
    "pow",  "xlogy", "copysign", "pow_",     "remainder", "remainder_", "fmod_"};

// Methods whose numbers become elements, or are compared with such, and that take tensors for all numbers.
constexpr std::array<std::string_view, 13> kTakesElements = {
    "fill",  "fill_",     "masked_fill", "masked_fill_", "clamp",      "clamp_", "clip",
    "clip_", "clamp_min", "clamp_min_",  "clamp_max",    "clamp_max_", "lerp"};

template <size_t N>
bool among(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool fits_int64(PyObject* integer) {
  int overflow = 0;
  PyLong_AsLongLongAndOverflow(integer, &overflow);
  return overflow == 0;
}

// The tensor without dimensions whose number an int or float that depends on data is; undefined if it is no
// such number.
at::Tensor tensor_of_data(Interpreter& interpreter, PyObject* varying) {
  if (at::Tensor data = float_of_data(interpreter, varying); data.defined()) return data;
  const std::optional<sym::Expr>& expression = interpreter.numbers.varying.at(varying).expression;
  const bool is_symbol = expression && expression->kind() == sym::Kind::Variable;
  return is_symbol ? interpreter.recorder.tensor_of_symbol(expression->variable_id()) : at::Tensor();
}

// Whether a tensor without dimensions may stand for a float beside the tensor in a calculation.
bool takes_floats(const at::Tensor& tensor) {
  const at::ScalarType type = tensor.scalar_type();
  if (is_narrow(tensor)) return tensor.dim() > 0;
  return type == at::kFloat || type == at::kDouble || at::isIntegralType(type, /*includeBool=*/true);
}

// The type of that tensor: what PyTorch gives a number there.
at::ScalarType type_beside(const at::Tensor& tensor) {
  // Kernels for types of 16 bits take the number as it is.
  if (is_narrow(tensor)) return at::kDouble;
  return at::isFloatingType(tensor.scalar_type()) ? tensor.scalar_type()
                                                  : c10::get_default_dtype_as_scalartype();
}

bool can_calculate(Interpreter& interpreter, const at::Tensor& tensor, PyObject* varying) {
  PyObject* const value = interpreter.numbers.varying.at(varying).value.get();
  if (is_float_of_data(interpreter, varying)) return takes_floats(tensor);
  if (!value) {
    const bool takes_integers = tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kDouble ||
                                tensor.scalar_type() == at::kLong;
    return takes_integers && tensor_of_data(interpreter, varying).defined();
  }
  if (PyFloat_CheckExact(value)) return takes_floats(tensor) && guards::fits_type(value, type_beside(tensor));
  switch (tensor.scalar_type()) {
    case at::kFloat:
    case at::kDouble:
      return fits_int64(value);
    case at::kLong:
      return PyLong_CheckExact(value) && fits_int64(value);
    default:
      return false;
  }
}

// A trace tensor of `type` for a number that is known before the graph runs and fits into the type.
at::Tensor input_of_number(Interpreter& interpreter, PyObject* varying, at::ScalarType type) {
  const SourceId source = varying_source(interpreter, varying);
  Ref& input = interpreter.numbers.inputs[source];
  PyObject* const value = interpreter.numbers.varying.at(varying).value.get();
  if (type != at::kDouble && PyFloat_CheckExact(value))
    interpreter.guards().require(source, CheckKind::FitsType, nullptr, static_cast<int64_t>(type));
  if (!input) {
    Ref real;
    {
      const trace::Recorder::Pause pause;
      real = Ref::steal(runtime::wrap_tensor(PyFloat_CheckExact(value)
                                                 ? at::scalar_tensor(PyFloat_AS_DOUBLE(value), at::kDouble)
                                                 : at::scalar_tensor(PyLong_AsLongLong(value), at::kLong)));
    }
    if (PyLong_CheckExact(value)) interpreter.guards().require(source, CheckKind::FitsInt64, nullptr);
    input = Ref::steal(interpreter.recorder.add_input(real.get()));
    if (!input) interpreter.stop("a number that cannot be traced");
    if (const auto& expression = interpreter.numbers.varying.at(varying).expression)
      interpreter.recorder.set_number(input.get(), *expression);
    interpreter.externals.keep_alive.push_back(real);
    interpreter.capture->inputs.push_back(source);
  }
  return runtime::tensor_of(input.get()).to(type);
}

// A trace tensor that stands for the number in a calculation with `tensor`.
Ref as_tensor(Interpreter& interpreter, PyObject* varying, const at::Tensor& tensor) {
  // What only kernels use is not read by the host.
  const auto number = [&] {
    if (is_float_of_data(interpreter, varying))
      return float_of_data(interpreter, varying).to(tensor.device(), type_beside(tensor));
    if (depends_on_data(interpreter, varying))
      return tensor_of_data(interpreter, varying).to(tensor.scalar_type());
    return input_of_number(
        interpreter, varying,
        is_varying_float(interpreter, varying) ? type_beside(tensor) : tensor.scalar_type());
  };
  return Ref::steal(runtime::wrap_tensor(number()));
}

}  // namespace

at::Tensor varying_as_double(Interpreter& interpreter, PyObject* varying) {
  return input_of_number(interpreter, varying, at::kDouble);
}

bool is_narrow(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kHalf || tensor.scalar_type() == at::kBFloat16;
}

std::optional<std::pair<Ref, Ref>> as_tensors(Interpreter& interpreter, PyObject* left, PyObject* right) {
  PyObject* const other = trace::is_trace_tensor(left) ? left : right;
  PyObject* const varying = other == left ? right : left;
  if (!trace::is_trace_tensor(other) || !is_varying_number(varying)) return std::nullopt;
  const at::Tensor& tensor = runtime::tensor_of(other);
  // The graph module of a backend of the user's has calls of the program's alone, and takes ints.
  if (interpreter.torch_calls || !can_calculate(interpreter, tensor, varying)) return std::nullopt;
  Ref number = as_tensor(interpreter, varying, tensor);
  return other == left ? std::pair(Ref::borrow(left), std::move(number))
                       : std::pair(std::move(number), Ref::borrow(right));
}

std::optional<std::pair<Ref, Ref>> as_rounded_tensors(Interpreter& interpreter, PyObject* left,
                                                      PyObject* right) {
  const bool is_right = trace::is_trace_tensor(left);
  PyObject* const number = is_right ? right : left;
  PyObject* const other = is_right ? left : right;
  if (interpreter.torch_calls || !trace::is_trace_tensor(other) || !is_varying_float(interpreter, number))
    return as_tensors(interpreter, left, right);
  const at::Tensor& tensor = runtime::tensor_of(other);
  if (!is_narrow(tensor)) return as_tensors(interpreter, left, right);
  const at::Tensor exact = is_float_of_data(interpreter, number)
                               ? float_of_data(interpreter, number).to(tensor.device())
                               : varying_as_double(interpreter, number);
  Ref rounded = Ref::steal(runtime::wrap_tensor(exact.to(tensor.scalar_type())));
  return is_right ? std::pair(Ref::borrow(left), std::move(rounded))
                  : std::pair(std::move(rounded), Ref::borrow(right));
}

bool fits_finite(Interpreter& interpreter, PyObject* number, at::ScalarType type) {
  if (is_float_of_data(interpreter, number)) return is_finite_in(interpreter, number, type);
  const bool varies = is_varying_number(number);
  PyObject* const value = varies ? interpreter.numbers.varying.at(number).value.get() : number;
  if (!std::isfinite(PyFloat_AS_DOUBLE(value)) || !guards::fits_type(value, type)) return false;
  if (!varies) return true;
  const SourceId source = varying_source(interpreter, number);
  interpreter.guards().require(source, CheckKind::Finite, nullptr);
  if (type != at::kDouble)
    interpreter.guards().require(source, CheckKind::FitsType, nullptr, static_cast<int64_t>(type));
  return true;
}

std::optional<Ref> as_element(Interpreter& interpreter, PyObject* number, const at::Tensor& tensor) {
  const at::ScalarType type = tensor.scalar_type();
  const auto element = [&](const at::Tensor& given) {
    return Ref::steal(runtime::wrap_tensor(given.to(tensor.device(), type)));
  };
  if (interpreter.torch_calls) return std::nullopt;
  if (is_varying_number(number) && !is_varying_float(interpreter, number)) {
    if (!can_calculate(interpreter, tensor, number)) return std::nullopt;
    return as_tensor(interpreter, number, tensor);
  }
  if (!at::isFloatingType(type)) return std::nullopt;
  if (is_float_of_data(interpreter, number)) {
    if (!fits(interpreter, number, type)) return std::nullopt;
    return element(float_of_data(interpreter, number));
  }
  if (is_varying_number(number)) {
    PyObject* const value = interpreter.numbers.varying.at(number).value.get();
    if (!guards::fits_type(value, type)) return std::nullopt;
    const at::Tensor input = varying_as_double(interpreter, number);
    interpreter.guards().require(varying_source(interpreter, number), CheckKind::FitsType, nullptr,
                                 static_cast<int64_t>(type));
    return element(input);
  }
  if (!PyFloat_CheckExact(number) && !PyLong_CheckExact(number)) return std::nullopt;
  const Ref real = Ref::steal(PyNumber_Float(number));
  if (!real) PyErr_Clear();
  if (!real || !guards::fits_type(real.get(), type)) return std::nullopt;
  return Ref::steal(runtime::wrap_tensor(at::scalar_tensor(PyFloat_AS_DOUBLE(real.get()), tensor.options())));
}

namespace {

// The arguments of one of kTakesElements with elements in place of all numbers. Nothing: no float among them
// varies, or one has to be known.
std::optional<Arguments> elements_for_numbers(Interpreter& interpreter, const at::Tensor& tensor,
                                              std::string_view method, const Arguments& arguments) {
  if (!among(kTakesElements, method)) return std::nullopt;
  if (!at::isFloatingType(tensor.scalar_type()) || !takes_floats(tensor)) return std::nullopt;
  const auto is_one = [&](const Ref& value) { return is_varying_float(interpreter, value.get()); };
  const auto is_named_one = [&](const auto& keyword) { return is_one(keyword.second); };
  if (std::ranges::none_of(arguments.positional, is_one) &&
      std::ranges::none_of(arguments.keywords, is_named_one))
    return std::nullopt;
  Arguments tensors = arguments;
  const auto replace = [&](Ref& value) {
    const bool is_number =
        is_varying_number(value.get()) || PyFloat_CheckExact(value.get()) || PyLong_CheckExact(value.get());
    if (!is_number) return true;
    std::optional<Ref> element = as_element(interpreter, value.get(), tensor);
    if (element) value = std::move(*element);
    return element.has_value();
  };
  for (Ref& value : tensors.positional)
    if (!replace(value)) return std::nullopt;
  for (auto& [name, value] : tensors.keywords)
    if (!replace(value)) return std::nullopt;
  return tensors;
}

// The name of a function of the torch module that is also a method of tensors.
std::string_view name_of_function(PyObject* callable) {
  if (!PyCFunction_Check(callable)) return "";
  const char* const name = reinterpret_cast<PyCFunctionObject*>(callable)->m_ml->ml_name;
  return callable == well_known("torch", name) ? name : "";
}

}  // namespace

std::optional<Arguments> tensors_for_varying(Interpreter& interpreter, PyObject* callable,
                                             std::string_view method, const Arguments& arguments) {
  if (interpreter.torch_calls) return std::nullopt;
  const auto varies = [](const Ref& value) { return is_varying_number(value.get()); };
  const auto named_varies = [&](const auto& keyword) { return varies(keyword.second); };
  if (std::ranges::none_of(arguments.positional, varies) &&
      std::ranges::none_of(arguments.keywords, named_varies))
    return std::nullopt;
  PyObject* self = PyCFunction_Check(callable) ? PyCFunction_GET_SELF(callable) : nullptr;
  if (method.empty()) method = name_of_function(callable);
  if ((!self || !runtime::is_tensor(self)) && !arguments.positional.empty())
    self = arguments.positional[0].get();
  if (!self || !trace::is_trace_tensor(self)) return std::nullopt;
  const at::Tensor& tensor = runtime::tensor_of(self);
  if (auto elements = elements_for_numbers(interpreter, tensor, method, arguments)) return elements;
  bool has_some = false, has_others = false;
  const auto look = [&](const Ref& value) {
    if (is_float_of_data(interpreter, value.get()) && method.starts_with("lerp"))
      has_others = true;
    else if (is_varying_number(value.get()))
      (can_calculate(interpreter, tensor, value.get()) ? has_some : has_others) = true;
  };
  for (const Ref& value : arguments.positional) look(value);
  for (const auto& [name, value] : arguments.keywords) look(value);
  // A keyword factor of tensors that are not floating-point has to stay a number.
  const bool needs_number =
      (!arguments.keywords.empty() && !at::isFloatingType(tensor.scalar_type())) ||
      (is_narrow(tensor) && (!arguments.keywords.empty() || among(kRoundsNumbers, method)));
  if (!has_some || has_others || needs_number || !among(kTakesTensors, method)) return std::nullopt;
  Arguments tensors = arguments;
  const auto replace = [&](Ref& value) {
    if (is_varying_number(value.get())) value = as_tensor(interpreter, value.get(), tensor);
  };
  for (Ref& value : tensors.positional) replace(value);
  for (auto& [name, value] : tensors.keywords) replace(value);
  return tensors;
}

}  // namespace oxy::eval
