#include "eval/numbers/varying_number.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <array>
#include <vector>

#include "eval/numbers/float_of_data.h"
#include "eval/numbers/number_operands.h"
#include "eval/numbers/symbolic_integer.h"
#include "eval/numbers/symbolic_size.h"
#include "eval/python/objects.h"
#include "eval/state/evaluation.h"
#include "eval/state/interpreter.h"
#include "guards/constants.h"
#include "runtime/device/autocast.h"
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

namespace {

// A number that is made of symbols is taken for what it is now: so are those that the user has marked
// dynamic, which is an error.
void contradict_marks(Interpreter& interpreter, const Numbers::Varying& number) {
  for (const sym::Expr& variable : number.variables) {
    const sym::Symbol& symbol =
        interpreter.numbers.symbols->environment.symbol(sym::SymbolId{variable.variable_id()});
    if (symbol.mark.kind == sym::MarkKind::Dynamic) specialised(interpreter, variable);
  }
}

}  // namespace

bool is_varying_float(Interpreter& interpreter, PyObject* object) {
  return is_varying_number(object) && varying_class(interpreter, object) == &PyFloat_Type;
}

bool is_float(Interpreter& interpreter, PyObject* object) {
  return PyFloat_CheckExact(object) || is_varying_float(interpreter, object);
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
  contradict_marks(interpreter, number);
  // Guards tell one NaN from another by identity, and a calculated one is a new object at each call.
  if (guards::is_nan(number.value.get())) interpreter.stop("needs to know a number that is NaN");
  interpreter.guards().require(number.source, CheckKind::Equal, number.value.get(), 0,
                               short_line_text(*interpreter.frame));
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
  std::vector<sym::Expr> variables;
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
      std::ranges::copy(number.variables, std::back_inserter(variables));
      if (number.expression)
        std::ranges::copy(sym::variables(*number.expression), std::back_inserter(variables));
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
    return make_varying(interpreter, {.value = result,
                                      .source = source,
                                      .expression = {},
                                      .unbacked = unbacked,
                                      .variables = std::move(variables)});
  }
  interpreter.guards().require(source, CheckKind::Equal, result.get());
  return result;
}

// Whether an integer exponent is one that the tensor's type holds, with a guard: others are rounded in
// another way than in eager. True for floats, which are asked elsewhere, and for numbers of data.
bool holds_exponent(Interpreter& interpreter, const at::Tensor& tensor, PyObject* number) {
  if (!is_symbolic_integer(interpreter, number) || depends_on_data(interpreter, number)) return true;
  const std::optional<sym::Expr> exponent = expression_of(interpreter, number);
  const at::ScalarType type = tensor.scalar_type();
  if (!exponent || !at::isFloatingType(type)) return true;
  const int64_t most = type == at::kBFloat16 ? 1 << 8
                       : type == at::kHalf   ? 1 << 11
                       : type == at::kFloat  ? 1 << 24
                                             : int64_t{1} << 53;
  return decide(interpreter, sym::less_equal(-most, *exponent)) &&
         decide(interpreter, sym::less_equal(*exponent, most));
}

// A binary operator of a trace tensor and a varying number. Nothing: it needs the number itself.
std::optional<Ref> tensor_arithmetic(Interpreter& interpreter, BinaryKind kind, bool in_place, PyObject* left,
                                     PyObject* right) {
  const bool is_simple = kind == BinaryKind::Add || kind == BinaryKind::Subtract ||
                         kind == BinaryKind::Multiply || kind == BinaryKind::TrueDivide;
  const bool is_right = trace::is_trace_tensor(left);
  const at::Tensor& tensor = runtime::tensor_of(is_right ? left : right);
  PyObject* const number = is_right ? right : left;
  const bool varies_as_float = is_varying_float(interpreter, number);
  if (kind == BinaryKind::Power && is_right && !holds_exponent(interpreter, tensor, number))
    return binary(interpreter, kind, in_place, left, constant_of(interpreter, number).get());
  // PyTorch's formula for the gradient asks whether the exponent is 0, which it cannot of a symbol.
  const bool has_gradient = at::GradMode::is_enabled() && tensor.requires_grad();
  const bool is_power = kind == BinaryKind::Power && (varies_as_float || !is_right || has_gradient);
  const bool is_other =
      is_power || (varies_as_float && (kind == BinaryKind::Remainder || kind == BinaryKind::FloorDivide));
  if (!is_simple && (!is_other || !at::isFloatingType(tensor.scalar_type()))) return std::nullopt;
  const bool rounds = kind == BinaryKind::Remainder || kind == BinaryKind::FloorDivide ||
                      (kind == BinaryKind::Power && !is_right);
  // Beside a tensor without dimensions the number would decide the type. A power takes it as it is.
  if (is_narrow(tensor) && !rounds && (kind == BinaryKind::Power || tensor.dim() == 0)) {
    const bool may_have_form = !in_place && !runtime::autocast_type(tensor.device().type());
    const bool has_form =
        may_have_form &&
        (varies_as_float ? fits_finite(interpreter, number, tensor.scalar_type()) : is_power && is_right);
    if (!has_form) return std::nullopt;
    const Ref wide = call_method(interpreter, is_right ? left : right, "float", {});
    const auto result = tensor_arithmetic(interpreter, kind, false, is_right ? wide.get() : left,
                                          is_right ? right : wide.get());
    if (!result) return std::nullopt;
    return Ref::steal(runtime::wrap_tensor(runtime::tensor_of(result->get()).to(tensor.scalar_type())));
  }
  const auto tensors =
      rounds ? as_rounded_tensors(interpreter, left, right) : as_tensors(interpreter, left, right);
  if (!tensors) return std::nullopt;
  // Tensor.__rtruediv__ is the product with the reciprocal.
  if (kind == BinaryKind::TrueDivide && tensors->second == right) {
    const Ref reciprocal = call_method(interpreter, right, "reciprocal", {});
    return binary(interpreter, BinaryKind::Multiply, false, reciprocal.get(), tensors->first.get());
  }
  Ref result = binary(interpreter, kind, in_place && tensors->first == left, tensors->first.get(),
                      tensors->second.get());
  // The result of a number's power is contiguous.
  if (result && kind == BinaryKind::Power && !is_right)
    return call_method(interpreter, result.get(), "contiguous", {});
  return result;
}

}  // namespace

std::optional<Ref> varying_arithmetic(Interpreter& interpreter, BinaryKind kind, bool in_place,
                                      PyObject* left, PyObject* right) {
  if (trace::is_trace_tensor(left) || trace::is_trace_tensor(right))
    return tensor_arithmetic(interpreter, kind, in_place, left, right);
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
    const auto tensors = as_rounded_tensors(interpreter, left, right);
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

}  // namespace oxy::eval
