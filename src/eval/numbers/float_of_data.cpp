#include "eval/numbers/float_of_data.h"

#include <ATen/ops/isfinite.h>
#include <ATen/ops/isinf.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "eval/numbers/number_operands.h"
#include "eval/numbers/symbolic_integer.h"
#include "eval/numbers/varying_number.h"
#include "eval/python/objects.h"
#include "guards/constants.h"
#include "runtime/values/host.h"
#include "runtime/values/tensor_object.h"
#include "trace/session/session.h"

namespace oxy::eval {

using bytecode::BinaryKind;
using bytecode::Op;

namespace {

// Every integer up to it is a float.
constexpr int64_t kLargestExact = int64_t{1} << 53;
// Beyond it no symbol goes.
constexpr double kLargestSymbol = 0x1p61;

bool may_depend_on_data(Interpreter& interpreter) {
  if (!interpreter.numbers.symbols) return false;
  const trace::Session& session = interpreter.recorder.session();
  return session.reads_data && !session.is_fake;
}

Ref make_float(Interpreter& interpreter, at::Tensor value, at::ScalarType type = at::kDouble) {
  Numbers::Varying number;
  number.data = std::move(value);
  number.data_type = type;
  return make_varying(interpreter, std::move(number));
}

// A symbol for the integer in a tensor without dimensions.
sym::Expr symbol_of(const at::Tensor& tensor) {
  return torch_api::expression_of(tensor.item().toSymInt());
}

// The truth of a tensor of bools without dimensions.
sym::Condition condition_of(const at::Tensor& tensor) {
  return sym::not_equal(symbol_of(tensor.to(at::kByte)), 0);
}

// With a guard, if the sizes at hand say so.
bool has_one_element(Interpreter& interpreter, const at::Tensor& tensor) {
  return std::ranges::all_of(tensor.sym_sizes(), [&](const c10::SymInt& size) {
    const sym::Expr e = torch_api::expression_of(size);
    const std::optional<int64_t> value = interpreter.numbers.symbols->environment.hint(e);
    return value == 1 && decide(interpreter, sym::equal(e, 1));
  });
}

// What the tensor holds now: the program may write to it later. Gradients do not flow through numbers.
at::Tensor number_in(const at::Tensor& tensor, at::ScalarType type) {
  return tensor.detach().to(type, /*non_blocking=*/false, /*copy=*/true).view(at::IntArrayRef());
}

bool is_known(Interpreter& interpreter, const at::Tensor& tensor) {
  const Ref object = Ref::steal(runtime::wrap_tensor(tensor));
  return interpreter.recorder.known_elements(object.get()).has_value();
}

bool is_real(const at::Tensor& tensor) {
  const at::ScalarType type = tensor.scalar_type();
  return at::isFloatingType(type) || at::isIntegralType(type, /*includeBool=*/true);
}

// Whether item() of the tensor may be a node of the graph.
bool can_compute(Interpreter& interpreter, const at::Tensor& tensor) {
  return may_depend_on_data(interpreter) && tensor.layout() == c10::kStrided &&
         has_one_element(interpreter, tensor) && !is_known(interpreter, tensor);
}

// The integer nearest to a float in the direction that `rounded` went; nothing if eager would raise at once.
// What is no number, or is too large for a symbol, fails a check of the run.
Ref integer_of(Interpreter& interpreter, const at::Tensor& rounded) {
  if (!rely_on(interpreter, condition_of(rounded.abs().lt(kLargestSymbol))))
    interpreter.stop("makes an int of a float that is no finite number");
  return integer(interpreter, symbol_of(rounded.to(at::kLong)));
}

// Whether the int is a float, as a fact or as a check of the run.
bool is_exact(Interpreter& interpreter, const sym::Expr& e) {
  return rely_on(interpreter, sym::less_equal(e, kLargestExact)) &&
         rely_on(interpreter, sym::less_equal(-kLargestExact, e));
}

// A number as one operand of a calculation in float64.
struct Operand {
  at::Tensor tensor;
  bool is_float = false;
  std::optional<sym::Expr> integer;  // of an int of the program's
  std::optional<double> constant;
};

// Nothing: it is no number, or one that a float64 may not hold.
std::optional<Operand> operand_of(Interpreter& interpreter, PyObject* object, c10::Device device) {
  Operand result;
  if (is_float_of_data(interpreter, object)) {
    result.tensor = float_of_data(interpreter, object).to(device);
    result.is_float = true;
    return result;
  }
  const auto constant = [&](double value, bool is_float) {
    result.constant = value;
    result.is_float = is_float;
    result.tensor = at::scalar_tensor(value, at::TensorOptions(at::kDouble).device(device));
    return result;
  };
  if (PyFloat_CheckExact(object)) return constant(PyFloat_AS_DOUBLE(object), true);
  if (PyBool_Check(object)) return constant(object == Py_True ? 1 : 0, false);
  if (PyLong_CheckExact(object)) {
    int overflow = 0;
    const int64_t value = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow != 0 || value > kLargestExact || value < -kLargestExact) return std::nullopt;
    result.integer = sym::Expr(value);
    return constant(static_cast<double>(value), false);
  }
  if (!is_varying_number(object)) return std::nullopt;
  if (varying_class(interpreter, object) == &PyFloat_Type) {
    result.tensor = varying_as_double(interpreter, object).to(device);
    result.is_float = true;
    return result;
  }
  if (varying_class(interpreter, object) != &PyLong_Type) return std::nullopt;
  result.integer = expression_of(interpreter, object);
  if (!result.integer) return std::nullopt;
  result.tensor = integer_tensor(interpreter, *result.integer, device).to(at::kDouble);
  return result;
}

// Of an int that depends on data the symbols, and none of other objects.
std::vector<sym::Expr> symbols_of_data(Interpreter& interpreter, PyObject* object) {
  if (!is_varying_number(object) || !depends_on_data(interpreter, object)) return {};
  const std::optional<sym::Expr>& expression = interpreter.numbers.varying.at(object).expression;
  return expression ? sym::variables(*expression) : std::vector<sym::Expr>();
}

// Whether the graph computes one of the ints. Sizes that are marked unbacked are known before it runs.
bool are_computed(Interpreter& interpreter, std::span<PyObject* const> objects) {
  const auto is_computed = [&](const sym::Expr& symbol) {
    const int64_t id = symbol.variable_id();
    return !interpreter.numbers.unbacked_values.contains(id) &&
           !interpreter.numbers.symbols->environment.symbol(sym::SymbolId{id}).hint;
  };
  return std::ranges::any_of(objects, [&](PyObject* object) {
    return std::ranges::any_of(symbols_of_data(interpreter, object), is_computed);
  });
}

// Where what they are computed from lies.
c10::Device device_of(Interpreter& interpreter, std::span<PyObject* const> objects) {
  for (PyObject* object : objects) {
    if (const at::Tensor data = float_of_data(interpreter, object); data.defined()) return data.device();
    for (const sym::Expr& symbol : symbols_of_data(interpreter, object)) {
      const at::Tensor tensor = interpreter.recorder.tensor_of_symbol(symbol.variable_id());
      if (tensor.defined()) return tensor.device();
    }
  }
  return c10::Device(runtime::kHost);
}

// All of them, if they are numbers. Integers are floats exactly if `exact`, or are rounded as Python does.
std::optional<std::vector<Operand>> operands_of(Interpreter& interpreter, std::span<PyObject* const> objects,
                                                bool exact) {
  const c10::Device device = device_of(interpreter, objects);
  std::vector<Operand> result;
  for (PyObject* object : objects) {
    std::optional<Operand> operand = operand_of(interpreter, object, device);
    if (!operand) return std::nullopt;
    if (exact && operand->integer && !is_exact(interpreter, *operand->integer)) return std::nullopt;
    result.push_back(std::move(*operand));
  }
  return result;
}

bool any_float_of_data(Interpreter& interpreter, std::span<PyObject* const> objects) {
  return std::ranges::any_of(objects, [&](PyObject* o) { return is_float_of_data(interpreter, o); });
}

// Python raises for a zero divisor.
bool is_checked_divisor(Interpreter& interpreter, const Operand& divisor) {
  if (divisor.constant) return *divisor.constant != 0;
  if (divisor.integer) return rely_on(interpreter, sym::not_equal(*divisor.integer, 0));
  return rely_on(interpreter, condition_of(divisor.tensor.ne(0)));
}

at::Tensor compared(const at::Tensor& a, const at::Tensor& b, int operation) {
  switch (operation) {
    case Py_LT:
      return a.lt(b);
    case Py_LE:
      return a.le(b);
    case Py_EQ:
      return a.eq(b);
    case Py_NE:
      return a.ne(b);
    case Py_GT:
      return a.gt(b);
    default:
      return a.ge(b);
  }
}

// Nothing: it may be negative, and then math.sqrt() raises.
std::optional<Ref> root_of(Interpreter& interpreter, PyObject* number) {
  const at::Tensor value = float_of_data(interpreter, number);
  if (!rely_on(interpreter, !condition_of(value.lt(0)))) return std::nullopt;
  return make_float(interpreter, value.sqrt());
}

// min() and max() of floats: the first of those that no other is before, as Python compares.
Ref extreme(Interpreter& interpreter, std::span<const Operand> operands, bool is_min) {
  at::Tensor result = operands[0].tensor;
  for (const Operand& next : operands.subspan(1)) {
    const at::Tensor is_before = is_min ? next.tensor.lt(result) : next.tensor.gt(result);
    result = at::where(is_before, next.tensor, result);
  }
  return make_float(interpreter, result);
}

}  // namespace

at::Tensor integer_tensor(Interpreter& interpreter, const sym::Expr& e, c10::Device device) {
  const at::Tensor of_data =
      e.kind() == sym::Kind::Variable ? interpreter.recorder.tensor_of_symbol(e.variable_id()) : at::Tensor();
  if (of_data.defined()) return of_data.to(device, at::kLong);
  const c10::SymInt value = torch_api::to_torch(interpreter.numbers.symbols, e);
  return at::scalar_tensor(c10::Scalar(value), at::TensorOptions(at::kLong).device(device));
}

bool is_float_of_data(Interpreter& interpreter, PyObject* object) {
  return is_varying_number(object) && interpreter.numbers.varying.at(object).data.defined();
}

at::Tensor float_of_data(Interpreter& interpreter, PyObject* object) {
  return is_varying_number(object) ? interpreter.numbers.varying.at(object).data : at::Tensor();
}

sym::Condition is_not_zero(Interpreter& interpreter, PyObject* number) {
  return condition_of(float_of_data(interpreter, number).ne(0));
}

bool fits(Interpreter& interpreter, PyObject* number, at::ScalarType type) {
  const Numbers::Varying& varying = interpreter.numbers.varying.at(number);
  const at::ScalarType own = varying.data_type;
  const bool own_is_narrow = own == at::kHalf || own == at::kBFloat16;
  if (type == own || type == at::kDouble || (type == at::kFloat && own_is_narrow)) return true;
  const at::Tensor is_in_range = varying.data.abs().le(guards::largest_of(type));
  return rely_on(interpreter, condition_of(is_in_range.logical_or(at::isfinite(varying.data).logical_not())));
}

bool is_finite_in(Interpreter& interpreter, PyObject* number, at::ScalarType type) {
  const Numbers::Varying& varying = interpreter.numbers.varying.at(number);
  return rely_on(interpreter, condition_of(varying.data.abs().le(guards::largest_of(type))));
}

std::optional<Ref> tensor_of_floats(Interpreter& interpreter, PyObject* values) {
  const auto wrapped = [](const at::Tensor& tensor) { return Ref::steal(runtime::wrap_tensor(tensor)); };
  const at::TensorOptions options(c10::Device(runtime::kHost));
  const at::ScalarType type = c10::get_default_dtype_as_scalartype();
  if (is_float_of_data(interpreter, values))
    return wrapped(float_of_data(interpreter, values).to(options.dtype(type), false, /*copy=*/true));
  if (!PyList_CheckExact(values) && !PyTuple_CheckExact(values)) return std::nullopt;
  std::vector<PyObject*> objects;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(values); ++i)
    objects.push_back(PySequence_Fast_GET_ITEM(values, i));
  const auto is_float = [&](PyObject* o) {
    return PyFloat_CheckExact(o) || is_float_of_data(interpreter, o);
  };
  if (!any_float_of_data(interpreter, objects) || !std::ranges::all_of(objects, is_float))
    return std::nullopt;
  const auto operands = operands_of(interpreter, objects, /*exact=*/false);
  if (!operands) return std::nullopt;
  std::vector<at::Tensor> elements;
  for (const Operand& operand : *operands) elements.push_back(operand.tensor);
  return wrapped(at::stack(elements).to(options.dtype(type)));
}

std::optional<Ref> item_of_data(Interpreter& interpreter, const at::Tensor& tensor) {
  if (!at::isFloatingType(tensor.scalar_type()) && tensor.scalar_type() != at::kBool) return std::nullopt;
  if (!can_compute(interpreter, tensor)) return std::nullopt;
  if (tensor.scalar_type() != at::kBool)
    return make_float(interpreter, number_in(tensor, at::kDouble), tensor.scalar_type());
  return truth_of(interpreter, condition_of(number_in(tensor, at::kBool)));
}

std::optional<sym::Condition> truth_of_tensor(Interpreter& interpreter, PyObject* tensor) {
  if (!trace::is_trace_tensor(tensor)) return std::nullopt;
  const at::Tensor& value = runtime::tensor_of(tensor);
  if (!is_real(value) || !can_compute(interpreter, value)) return std::nullopt;
  return condition_of(number_in(value.ne(0), at::kBool));
}

std::optional<Ref> converted_item(Interpreter& interpreter, PyTypeObject* type, const at::Tensor& tensor) {
  if (!is_real(tensor) || !can_compute(interpreter, tensor)) return std::nullopt;
  const bool is_floating = at::isFloatingType(tensor.scalar_type());
  if (type == &PyFloat_Type)
    return make_float(interpreter, number_in(tensor, at::kDouble),
                      is_floating ? tensor.scalar_type() : at::kDouble);
  if (is_floating) return integer_of(interpreter, number_in(tensor, at::kDouble).trunc());
  return integer(interpreter, symbol_of(number_in(tensor, at::kLong)));
}

std::optional<Ref> float_arithmetic(Interpreter& interpreter, BinaryKind kind, PyObject* left,
                                    PyObject* right) {
  const std::array<PyObject*, 2> objects = {left, right};
  const bool is_quotient = kind == BinaryKind::TrueDivide;
  if (!is_quotient && kind != BinaryKind::Add && kind != BinaryKind::Subtract && kind != BinaryKind::Multiply)
    return std::nullopt;
  const bool of_data = any_float_of_data(interpreter, objects);
  const bool of_integers =
      !of_data && (depends_on_data(interpreter, left) || depends_on_data(interpreter, right));
  if (!of_data && !(of_integers && may_depend_on_data(interpreter))) return std::nullopt;
  if (of_integers && !are_computed(interpreter, objects)) return std::nullopt;
  // Python rounds the quotient of two ints once.
  const auto is_integer = [&](PyObject* o) {
    return PyLong_Check(o) || (is_varying_number(o) && varying_class(interpreter, o) == &PyLong_Type);
  };
  const auto operands =
      operands_of(interpreter, objects, is_quotient && is_integer(left) && is_integer(right));
  if (!operands) return std::nullopt;
  const Operand &a = (*operands)[0], &b = (*operands)[1];
  if (!is_quotient && !a.is_float && !b.is_float) return std::nullopt;  // an int of Python's, without a limit
  switch (kind) {
    case BinaryKind::Add:
      return make_float(interpreter, a.tensor.add(b.tensor));
    case BinaryKind::Subtract:
      return make_float(interpreter, a.tensor.sub(b.tensor));
    case BinaryKind::Multiply:
      return make_float(interpreter, a.tensor.mul(b.tensor));
    default:
      if (!is_checked_divisor(interpreter, b)) return std::nullopt;
      return make_float(interpreter, a.tensor.div(b.tensor));
  }
}

std::optional<Ref> float_unary(Interpreter& interpreter, Op op, PyObject* operand) {
  const at::Tensor value = float_of_data(interpreter, operand);
  if (!value.defined() || op == Op::UnaryInvert) return std::nullopt;
  return op == Op::UnaryNegative ? make_float(interpreter, value.neg()) : Ref::borrow(operand);
}

std::optional<Ref> float_comparison(Interpreter& interpreter, PyObject* left, PyObject* right,
                                    int operation) {
  const std::array<PyObject*, 2> objects = {left, right};
  if (!any_float_of_data(interpreter, objects)) return std::nullopt;
  const auto operands = operands_of(interpreter, objects, /*exact=*/true);
  if (!operands) return std::nullopt;
  return truth_of(interpreter,
                  condition_of(compared((*operands)[0].tensor, (*operands)[1].tensor, operation)));
}

std::optional<Ref> float_call(Interpreter& interpreter, PyObject* callable, std::span<const Ref> positional) {
  std::vector<PyObject*> objects;
  for (const Ref& value : positional) objects.push_back(value.get());
  const auto is = [&](const char* module, const char* name) { return callable == well_known(module, name); };
  const auto is_type = [&](PyTypeObject& type) { return callable == reinterpret_cast<PyObject*>(&type); };
  const bool is_root = is("math", "sqrt");
  if ((is_type(PyFloat_Type) || is_root) && objects.size() == 1 && may_depend_on_data(interpreter) &&
      are_computed(interpreter, objects)) {
    const auto operands = operands_of(interpreter, objects, /*exact=*/false);
    if (!operands) return std::nullopt;
    const Ref number = make_float(interpreter, (*operands)[0].tensor);
    return is_root ? root_of(interpreter, number.get()) : std::optional(number);
  }
  if (!any_float_of_data(interpreter, objects)) return std::nullopt;
  const bool is_min = is("builtins", "min"), is_max = is("builtins", "max");
  if ((is_min || is_max) && objects.size() > 1) {
    const auto operands = operands_of(interpreter, objects, /*exact=*/true);
    // Which one it is decides the type.
    if (!operands || !std::ranges::all_of(*operands, &Operand::is_float)) return std::nullopt;
    return extreme(interpreter, *operands, is_min);
  }
  if (objects.size() != 1) return std::nullopt;
  const at::Tensor value = float_of_data(interpreter, objects[0]);
  if (is_type(PyBool_Type)) return truth_of(interpreter, is_not_zero(interpreter, objects[0]));
  if (is("builtins", "abs") || is("math", "fabs")) return make_float(interpreter, value.abs());
  if (is("math", "isnan")) return truth_of(interpreter, condition_of(at::isnan(value)));
  if (is("math", "isinf")) return truth_of(interpreter, condition_of(at::isinf(value)));
  if (is("math", "isfinite")) return truth_of(interpreter, condition_of(at::isfinite(value)));
  if (is_type(PyLong_Type) || is("math", "trunc")) return integer_of(interpreter, value.trunc());
  if (is("math", "floor")) return integer_of(interpreter, value.floor());
  if (is("math", "ceil")) return integer_of(interpreter, value.ceil());
  if (is("builtins", "round")) return integer_of(interpreter, value.round());
  return is_root ? root_of(interpreter, objects[0]) : std::nullopt;
}

}  // namespace oxy::eval
