#include "eval/numbers/varying_number.h"

#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <array>
#include <vector>

#include "eval/numbers/float_of_data.h"
#include "eval/numbers/symbolic_integer.h"
#include "eval/numbers/symbolic_size.h"
#include "eval/python/objects.h"
#include "eval/state/evaluation.h"
#include "eval/state/interpreter.h"
#include "guards/constants.h"
#include "runtime/values/tensor_object.h"

namespace oxy::eval {

using bytecode::BinaryKind;
using guards::CheckKind;
using guards::kNoSource;

namespace {

// Each calculation costs some 50 ns at every call. It costs more for integers of many bits.
constexpr int kMostCalculations = 256;
constexpr size_t kMostBits = 256;

bool is_number(PyObject* object) {
  return PyLong_Check(object) ? PyLong_CheckExact(object) || PyBool_Check(object)
                              : PyFloat_CheckExact(object);
}

bool is_small(PyObject* number) {
  return !PyLong_Check(number) || _PyLong_NumBits(number) <= kMostBits;
}

bool fits_int64(PyObject* integer) {
  int overflow = 0;
  PyLong_AsLongLongAndOverflow(integer, &overflow);
  return overflow == 0;
}

// The functions of `operator`, in the order of BinaryKind. Null: not calculated again (powers may be of any
// size).
constexpr std::array<const char*, 13> kBinary = {"add", "and_", "floordiv", nullptr, nullptr,   "mul", "mod",
                                                 "or_", "pow",  "rshift",   "sub",   "truediv", "xor"};
constexpr std::array<const char*, 6> kCompare = {"lt", "le", "eq", "ne", "gt", "ge"};

// Functions of numbers whose results are numbers.
bool is_function_of_numbers(PyObject* callable) {
  for (PyTypeObject* type : {&PyLong_Type, &PyFloat_Type, &PyBool_Type})
    if (callable == reinterpret_cast<PyObject*>(type)) return true;
  if (!PyCFunction_Check(callable)) return false;
  for (const char* name : {"abs", "round", "min", "max"})
    if (callable == well_known("builtins", name)) return true;
  PyObject* const math = well_known("math", "");
  return math != nullptr && PyCFunction_GET_SELF(callable) == math;
}

// Methods of tensors that take a tensor without dimensions in place of a number.
constexpr std::array<std::string_view, 20> kTakesTensors = {
    "add",     "add_",     "sub",     "sub_",     "mul", "mul_", "div", "div_", "lerp", "lerp_",
    "addcdiv", "addcdiv_", "addcmul", "addcmul_", "eq",  "ne",   "lt",  "le",   "gt",   "ge"};

}  // namespace

Ref admit_varying(Interpreter& interpreter, PyObject* number, SourceId source) {
  interpreter.guards().mark_varying(source);
  interpreter.guards().require(source, CheckKind::Type, reinterpret_cast<PyObject*>(Py_TYPE(number)));
  return make_varying(interpreter, {Ref::borrow(number), source, std::nullopt});
}

Ref make_varying(Interpreter& interpreter, Numbers::Varying number) {
  Ref object = Ref::steal(new_varying_object());
  interpreter.externals.keep_alive.push_back(object);
  interpreter.numbers.varying.emplace(object.get(), std::move(number));
  return object;
}

namespace {

[[noreturn]] void refuse_float_of_data(Interpreter& interpreter) {
  interpreter.stop("needs to know a float that depends on data");
}

}  // namespace

SourceId varying_source(Interpreter& interpreter, PyObject* object) {
  Numbers::Varying& number = interpreter.numbers.varying.at(object);
  if (number.data.defined()) refuse_float_of_data(interpreter);
  if (number.source == kNoSource) number.source = source_of(interpreter, *number.expression);
  return number.source;
}

PyTypeObject* varying_class(Interpreter& interpreter, PyObject* object) {
  const Numbers::Varying& number = interpreter.numbers.varying.at(object);
  if (number.value) return Py_TYPE(number.value.get());
  if (number.data.defined()) return &PyFloat_Type;
  return number.condition ? &PyBool_Type : &PyLong_Type;
}

Ref constant_of(Interpreter& interpreter, PyObject* object) {
  if (!is_varying_number(object)) return Ref::borrow(object);
  const Numbers::Varying& number = interpreter.numbers.varying.at(object);
  if (number.source != kNoSource && interpreter.externals.unguarded &&
      interpreter.externals.unguarded->contains(interpreter.guards().describe(number.source)))
    interpreter.stop("uses a number or text that was another one at each call");
  if (number.data.defined()) refuse_float_of_data(interpreter);
  if (number.condition) return Ref::borrow(decide(interpreter, *number.condition) ? Py_True : Py_False);
  if (number.expression) return specialised(interpreter, *number.expression);
  if (number.unbacked) specialised(interpreter, *number.unbacked);  // refuses, unless it is known meanwhile
  interpreter.guards().require(number.source, CheckKind::Equal, number.value.get());
  return number.value;
}

namespace {

// What an int is at this call that is made of sizes alone, some of which are marked unbacked. Null: the graph
// computes it.
Ref value_of_sizes(Interpreter& interpreter, const sym::Expr& expression) {
  const sym::ShapeEnvironment& environment = interpreter.numbers.symbols->environment;
  bool is_known = true;
  const auto value_of = [&](int64_t id) -> std::optional<int64_t> {
    const auto unbacked = interpreter.numbers.unbacked_values.find(id);
    if (unbacked != interpreter.numbers.unbacked_values.end()) return unbacked->second;
    return environment.symbol(sym::SymbolId{id}).hint;
  };
  for (const sym::Expr& variable : sym::variables(expression))
    is_known = is_known && value_of(variable.variable_id()).has_value();
  if (!is_known) return {};
  return Ref::steal(PyLong_FromLongLong(sym::evaluate(expression, value_of)));
}

// The result of a pure function of one or two numbers, of which at least one varies, as a varying number.
// Nothing: it cannot be calculated again, so the caller has to use constants.
std::optional<Ref> calculated(Interpreter& interpreter, PyObject* function,
                              std::span<PyObject* const> operands) {
  if (!function || operands.empty() || operands.size() > 2 ||
      interpreter.numbers.calculations >= kMostCalculations)
    return std::nullopt;
  std::array<PyObject*, 2> values = {};
  std::array<SourceId, 2> sources = {kNoSource, kNoSource};
  std::array<Ref, 2> sizes;
  std::optional<sym::Expr> unbacked;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (is_float_of_data(interpreter, operands[i])) {
      refuse_float_of_data(interpreter);
    } else if (depends_on_data(interpreter, operands[i])) {
      const std::optional<sym::Expr>& expression = interpreter.numbers.varying.at(operands[i]).expression;
      if (expression) sizes[i] = value_of_sizes(interpreter, *expression);
      if (!sizes[i]) interpreter.stop("calculates with a number that depends on data");
      values[i] = sizes[i].get();
      sources[i] = varying_source(interpreter, operands[i]);
      unbacked = expression;
    } else if (is_varying_number(operands[i])) {
      const Numbers::Varying& number = interpreter.numbers.varying.at(operands[i]);
      values[i] = number.value.get();
      if (number.unbacked) unbacked = number.unbacked;
      sources[i] = varying_source(interpreter, operands[i]);
    } else if (is_number(operands[i])) {
      values[i] = operands[i];
      sources[i] = interpreter.guards().pinned(operands[i]);
    } else {
      return std::nullopt;
    }
  }
  Ref result = Ref::steal(PyObject_Vectorcall(function, values.data(), operands.size(), nullptr));
  if (!result) PyErr_Clear();  // the caller goes on with constants, which raises it again
  if (!result || !is_number(result.get()) || !is_small(result.get())) return std::nullopt;
  if (unbacked && !PyFloat_CheckExact(result.get())) return std::nullopt;  // constants are refused
  ++interpreter.numbers.calculations;
  const SourceId source = interpreter.guards().calculated(function, sources[0], sources[1]);
  if (!PyBool_Check(result.get())) {
    interpreter.guards().require(source, CheckKind::Type, reinterpret_cast<PyObject*>(Py_TYPE(result.get())));
    return make_varying(interpreter,
                        {.value = result, .source = source, .expression = {}, .unbacked = unbacked});
  }
  interpreter.guards().require(source, CheckKind::Equal, result.get());
  return result;
}

// The tensor without dimensions whose number an int or float that depends on data is; undefined if it is no
// such number.
at::Tensor tensor_of_data(Interpreter& interpreter, PyObject* varying) {
  if (at::Tensor data = float_of_data(interpreter, varying); data.defined()) return data;
  const std::optional<sym::Expr>& expression = interpreter.numbers.varying.at(varying).expression;
  const bool is_symbol = expression && expression->kind() == sym::Kind::Variable;
  return is_symbol ? interpreter.recorder.tensor_of_symbol(expression->variable_id()) : at::Tensor();
}

bool can_calculate(Interpreter& interpreter, const at::Tensor& tensor, PyObject* varying) {
  PyObject* const value = interpreter.numbers.varying.at(varying).value.get();
  if (is_float_of_data(interpreter, varying)) return takes_floats(tensor);
  if (!value) {
    const bool takes_integers = tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kDouble ||
                                tensor.scalar_type() == at::kLong;
    return takes_integers && tensor_of_data(interpreter, varying).defined();
  }
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return PyFloat_CheckExact(value) ? guards::fits_float(value) : fits_int64(value);
    case at::kDouble:
      return PyFloat_CheckExact(value) || fits_int64(value);
    case at::kLong:
      return PyLong_CheckExact(value) && fits_int64(value);
    default:
      return false;
  }
}

// A trace tensor of `type` for a number that is known before the graph runs.
at::Tensor input_of_number(Interpreter& interpreter, PyObject* varying, at::ScalarType type) {
  const SourceId source = varying_source(interpreter, varying);
  Ref& input = interpreter.numbers.inputs[source];
  PyObject* const value = interpreter.numbers.varying.at(varying).value.get();
  if (type == at::kFloat && PyFloat_CheckExact(value))
    interpreter.guards().require(source, CheckKind::FitsFloat, nullptr);
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
  const at::Tensor number =
      is_float_of_data(interpreter, varying)  ? float_beside(interpreter, varying, tensor)
      : depends_on_data(interpreter, varying) ? tensor_of_data(interpreter, varying).to(tensor.scalar_type())
                                              : input_of_number(interpreter, varying, tensor.scalar_type());
  return Ref::steal(runtime::wrap_tensor(number));
}

// The operands, a trace tensor and a varying number in either order, as two trace tensors. Nothing: they are
// others.
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

}  // namespace

at::Tensor varying_as_double(Interpreter& interpreter, PyObject* varying) {
  return input_of_number(interpreter, varying, at::kDouble);
}

std::optional<Ref> varying_arithmetic(Interpreter& interpreter, BinaryKind kind, bool in_place,
                                      PyObject* left, PyObject* right) {
  const bool is_simple = kind == BinaryKind::Add || kind == BinaryKind::Subtract ||
                         kind == BinaryKind::Multiply || kind == BinaryKind::TrueDivide;
  // A tensor to the power of a number has a gradient of its own formula.
  const bool is_power = kind == BinaryKind::Power && is_varying_number(left) &&
                        trace::is_trace_tensor(right) &&
                        at::isFloatingType(runtime::tensor_of(right).scalar_type());
  if (trace::is_trace_tensor(left) || trace::is_trace_tensor(right)) {
    const auto tensors = is_simple || is_power ? as_tensors(interpreter, left, right) : std::nullopt;
    if (!tensors) return std::nullopt;
    // Tensor.__rtruediv__ is the product with the reciprocal.
    if (kind == BinaryKind::TrueDivide && tensors->second == right) {
      const Ref reciprocal = call_method(interpreter, right, "reciprocal", {});
      return binary(interpreter, BinaryKind::Multiply, false, reciprocal.get(), tensors->first.get());
    }
    return binary(interpreter, kind, in_place && tensors->first == left, tensors->first.get(),
                  tensors->second.get());
  }
  if (auto result = integer_arithmetic(interpreter, kind, left, right)) return result;
  if (auto result = float_arithmetic(interpreter, kind, left, right)) return result;
  const char* name = kBinary[static_cast<size_t>(kind)];
  const std::array<PyObject*, 2> operands = {left, right};
  return name ? calculated(interpreter, well_known("operator", name), operands) : std::nullopt;
}

std::optional<Ref> varying_unary(Interpreter& interpreter, bytecode::Op op, PyObject* operand) {
  using bytecode::Op;
  if (auto result = integer_unary(interpreter, op, operand)) return result;
  if (auto result = float_unary(interpreter, op, operand)) return result;
  const char* function = op == Op::UnaryNegative ? "neg" : op == Op::UnaryInvert ? "invert" : "pos";
  const std::array<PyObject*, 1> operands = {operand};
  return calculated(interpreter, well_known("operator", function), operands);
}

std::optional<Ref> varying_comparison(Interpreter& interpreter, PyObject* left, PyObject* right,
                                      int operation) {
  if (trace::is_trace_tensor(left) || trace::is_trace_tensor(right)) {
    const auto tensors = as_tensors(interpreter, left, right);
    if (!tensors) return std::nullopt;
    return compare(interpreter, tensors->first.get(), tensors->second.get(), operation);
  }
  if (auto result = integer_comparison(interpreter, left, right, operation)) return result;
  if (auto result = float_comparison(interpreter, left, right, operation)) return result;
  const std::array<PyObject*, 2> operands = {left, right};
  return calculated(interpreter, well_known("operator", kCompare[static_cast<size_t>(operation)]), operands);
}

namespace {

// size.numel() of a torch.Size with varying items. Nothing: it is another call.
std::optional<Ref> count_of_size(Interpreter& interpreter, PyObject* callable, const Arguments& arguments) {
  const bool is_bound = PyCFunction_Check(callable);
  if (!is_bound && callable != well_known("torch", "Size.numel")) return std::nullopt;
  if (arguments.positional.size() != (is_bound ? 0 : 1)) return std::nullopt;
  PyObject* const self = is_bound ? PyCFunction_GET_SELF(callable) : arguments.positional[0].get();
  const bool is_count =
      !is_bound || std::string_view(reinterpret_cast<PyCFunctionObject*>(callable)->m_ml->ml_name) == "numel";
  if (!self || PySlice_Check(self) || !has_varying_part(self) || !is_count) return std::nullopt;
  return element_count(interpreter, self);
}

}  // namespace

std::optional<Ref> call_on_varying(Interpreter& interpreter, PyObject* callable, const Arguments& arguments) {
  if (!std::ranges::any_of(arguments.positional,
                           [](const Ref& value) { return is_varying_number(value.get()); }) ||
      !arguments.keywords.empty())
    return count_of_size(interpreter, callable, arguments);
  if (auto result = integer_call(interpreter, callable, arguments.positional)) return result;
  if (auto result = float_call(interpreter, callable, arguments.positional)) return result;
  if (!is_function_of_numbers(callable)) return std::nullopt;
  std::vector<PyObject*> operands;
  for (const Ref& value : arguments.positional) operands.push_back(value.get());
  return calculated(interpreter, callable, operands);
}

namespace {

// Methods whose numbers become elements, or are compared with such, and that take tensors for all numbers.
constexpr std::array<std::string_view, 12> kTakesElements = {
    "fill_", "masked_fill", "masked_fill_", "clamp",     "clamp_",     "clip",
    "clip_", "clamp_min",   "clamp_min_",   "clamp_max", "clamp_max_", "lerp"};

// The same for floats that depend on data.
std::optional<Arguments> tensors_for_floats(Interpreter& interpreter, const at::Tensor& tensor,
                                            std::string_view method, const Arguments& arguments) {
  const at::ScalarType type = tensor.scalar_type();
  if (std::ranges::find(kTakesElements, method) == kTakesElements.end()) return std::nullopt;
  if (!at::isFloatingType(type) || !takes_floats(tensor)) return std::nullopt;
  const auto is_one = [&](const Ref& value) { return is_float_of_data(interpreter, value.get()); };
  const auto is_named_one = [&](const auto& keyword) { return is_one(keyword.second); };
  if (std::ranges::none_of(arguments.positional, is_one) &&
      std::ranges::none_of(arguments.keywords, is_named_one))
    return std::nullopt;
  Arguments tensors = arguments;
  const auto replace = [&](Ref& value) {
    if (is_float_of_data(interpreter, value.get())) {
      if (!fits(interpreter, value.get(), type)) return false;
      value = Ref::steal(runtime::wrap_tensor(
          float_of_data(interpreter, value.get()).to(tensor.device(), tensor.scalar_type())));
    } else if (PyFloat_CheckExact(value.get()) || PyLong_CheckExact(value.get())) {
      const Ref number = Ref::steal(PyNumber_Float(value.get()));
      if (!number || (type != at::kDouble && !guards::fits_float(number.get()))) return false;
      value = Ref::steal(
          runtime::wrap_tensor(at::scalar_tensor(PyFloat_AS_DOUBLE(number.get()), tensor.options())));
    }
    return true;
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

std::optional<Ref> tensor_for_varying(Interpreter& interpreter, PyObject* number, PyObject* tensor) {
  if (interpreter.torch_calls || !is_varying_number(number)) return std::nullopt;
  const at::Tensor& beside = runtime::tensor_of(tensor);
  if (!can_calculate(interpreter, beside, number)) return std::nullopt;
  return as_tensor(interpreter, number, beside);
}

std::optional<Arguments> tensors_for_varying(Interpreter& interpreter, PyObject* callable,
                                             std::string_view method, const Arguments& arguments) {
  if (interpreter.torch_calls) return std::nullopt;
  PyObject* self = PyCFunction_Check(callable) ? PyCFunction_GET_SELF(callable) : nullptr;
  if (method.empty()) method = name_of_function(callable);
  if ((!self || !runtime::is_tensor(self)) && !arguments.positional.empty())
    self = arguments.positional[0].get();
  if (!self || !trace::is_trace_tensor(self)) return std::nullopt;
  const at::Tensor& tensor = runtime::tensor_of(self);
  if (const auto clamped = tensors_for_floats(interpreter, tensor, method, arguments)) return clamped;
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
  const bool has_factor = !arguments.keywords.empty() && !at::isFloatingType(tensor.scalar_type());
  if (!has_some || has_others || has_factor ||
      std::ranges::find(kTakesTensors, method) == kTakesTensors.end())
    return std::nullopt;
  Arguments tensors = arguments;
  const auto replace = [&](Ref& value) {
    if (is_varying_number(value.get())) value = as_tensor(interpreter, value.get(), tensor);
  };
  for (Ref& value : tensors.positional) replace(value);
  for (auto& [name, value] : tensors.keywords) replace(value);
  return tensors;
}

}  // namespace oxy::eval
