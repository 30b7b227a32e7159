#include "eval/numbers/symbolic_integer.h"

#include <algorithm>
#include <array>

#include "base/log.h"
#include "eval/numbers/float_of_data.h"
#include "eval/numbers/varying_number.h"
#include "eval/python/objects.h"
#include "eval/state/interpreter.h"
#include "guards/integer_part.h"

namespace oxy::eval {

using bytecode::BinaryKind;
using guards::kNoSource;
using guards::SourceKind;
using sym::Expr;

namespace {

constexpr int64_t kHighestPower = 8;
constexpr int64_t kFarthestShift = 32;

sym::ShapeEnvironment& environment(Interpreter& interpreter) {
  return interpreter.numbers.symbols->environment;
}

std::optional<int64_t> small_int(PyObject* object) {
  const std::optional<int64_t> value = guards::read_integer(guards::IntegerPart::Value, -1, object);
  return value && *value < sym::kMaxInt && *value > -sym::kMaxInt ? value : std::nullopt;
}

Ref truth_object(bool value) {
  return Ref::borrow(value ? Py_True : Py_False);
}

bool any_symbolic(Interpreter& interpreter, std::span<PyObject* const> objects) {
  return std::ranges::any_of(objects,
                             [&](PyObject* object) { return is_symbolic_integer(interpreter, object); });
}

// The expressions of all, if there are such and one has symbols. A bool is 0 or 1 to an operator, but no int
// to what may return it (min, max).
enum class Bools : uint8_t { AreNone, AreIntegers };
std::optional<std::vector<Expr>> expressions_of(Interpreter& interpreter, std::span<PyObject* const> objects,
                                                Bools bools) {
  if (!any_symbolic(interpreter, objects)) return std::nullopt;
  std::vector<Expr> result;
  for (PyObject* object : objects) {
    std::optional<Expr> expression = PyBool_Check(object) && bools == Bools::AreIntegers
                                         ? std::optional<Expr>(object == Py_True ? 1 : 0)
                                         : expression_of(interpreter, object);
    if (!expression) return std::nullopt;
    result.push_back(std::move(*expression));
  }
  return result;
}

std::optional<Expr> power(const Expr& base, const Expr& exponent) {
  const std::optional<int64_t> count = exponent.as_constant();
  if (!count || *count < 0 || *count > kHighestPower) return std::nullopt;
  return sym::product(std::vector<Expr>(static_cast<size_t>(*count), base));
}

std::optional<Expr> shifted(const Expr& value, const Expr& distance, bool is_left) {
  const std::optional<int64_t> bits = distance.as_constant();
  if (!bits || *bits < 0 || *bits > kFarthestShift) return std::nullopt;
  const Expr factor(int64_t{1} << *bits);
  return is_left ? value * factor : sym::floordiv(value, factor);
}

// Nothing: the operator raises, or the result is no expression.
std::optional<Expr> arithmetic(Interpreter& interpreter, BinaryKind kind, const Expr& a, const Expr& b) {
  switch (kind) {
    case BinaryKind::Add:
      return a + b;
    case BinaryKind::Subtract:
      return a - b;
    case BinaryKind::Multiply:
      return a * b;
    case BinaryKind::FloorDivide:
    case BinaryKind::Remainder:
      if (!decide(interpreter, sym::not_equal(b, 0))) return std::nullopt;
      return kind == BinaryKind::FloorDivide ? sym::floordiv(a, b) : sym::mod(a, b);
    case BinaryKind::Power:
      return power(a, b);
    case BinaryKind::LeftShift:
    case BinaryKind::RightShift:
      return shifted(a, b, kind == BinaryKind::LeftShift);
    default:
      return std::nullopt;
  }
}

sym::Condition relation(int operation, const Expr& a, const Expr& b) {
  switch (operation) {
    case Py_LT:
      return sym::less(a, b);
    case Py_LE:
      return sym::less_equal(a, b);
    case Py_EQ:
      return sym::equal(a, b);
    case Py_NE:
      return sym::not_equal(a, b);
    case Py_GT:
      return sym::less(b, a);
    default:
      return sym::less_equal(b, a);
  }
}

SourceId calculation(Interpreter& interpreter, const char* module, const char* function, SourceId left,
                     SourceId right) {
  return interpreter.guards().calculated(well_known(module, function), left, right);
}

SourceId combined(Interpreter& interpreter, const char* module, const char* function,
                  std::span<const Expr> operands) {
  SourceId result = source_of(interpreter, operands[0]);
  for (const Expr& operand : operands.subspan(1))
    result = calculation(interpreter, module, function, result, source_of(interpreter, operand));
  return result;
}

SourceId source_of_symbol(Interpreter& interpreter, int64_t id) {
  const guards::SymbolSource& from = interpreter.numbers.symbol_sources.at(static_cast<size_t>(id));
  switch (from.part) {
    case guards::IntegerPart::Value:
      return from.source;
    case guards::IntegerPart::Size:
      return interpreter.guards().derived(SourceKind::TensorSize, from.source, nullptr, from.dimension);
    case guards::IntegerPart::Stride:
      return interpreter.guards().derived(SourceKind::TensorStride, from.source, nullptr, from.dimension);
    case guards::IntegerPart::Offset:
      return interpreter.guards().derived(SourceKind::TensorOffset, from.source);
    case guards::IntegerPart::Element:
      return interpreter.guards().derived(SourceKind::TensorElement, from.source, nullptr, from.dimension);
  }
  return kNoSource;
}

}  // namespace

Ref integer(Interpreter& interpreter, const Expr& expression) {
  const Expr known = interpreter.numbers.symbols ? environment(interpreter).simplify(expression) : expression;
  if (known.is_constant()) return Ref::steal(PyLong_FromLongLong(known.constant()));
  const std::optional<int64_t> value = environment(interpreter).hint(known);
  const auto is_at_hand = [&](const Expr& symbol) {
    return environment(interpreter).hint(symbol).has_value();
  };
  if (!value && std::ranges::all_of(sym::variables(known), is_at_hand))
    throw sym::ArithmeticError("a number of more than 64 bits");
  Ref at_hand = value ? Ref::steal(PyLong_FromLongLong(*value)) : Ref();
  return make_varying(interpreter, {std::move(at_hand), kNoSource, known});
}

namespace {

// Why a number is no constant, for the log.
std::string why_symbol(const Interpreter& interpreter, const sym::Mark& mark) {
  if (!mark.said.empty()) return mark.said;
  if (mark.kind != sym::MarkKind::None) return "it is marked";
  if (interpreter.options.all_numbers_vary) return "dynamic=True";
  if (interpreter.options.all_sizes_vary) return "numbers of these calls have changed";
  return "it has changed";
}

}  // namespace

Expr new_symbol(Interpreter& interpreter, const guards::SymbolSource& from, sym::SymbolKind kind,
                int64_t value, const sym::Mark& mark) {
  std::string name = interpreter.guards().describe(from.source);
  if (from.part == guards::IntegerPart::Size) name += fmt::format(".size({})", from.dimension);
  if (from.part == guards::IntegerPart::Stride) name += fmt::format(".stride({})", from.dimension);
  if (from.part == guards::IntegerPart::Offset) name += ".storage_offset()";
  if (from.part == guards::IntegerPart::Element) name += fmt::format(".flatten()[{}]", from.dimension);
  const std::string shown = log_enabled(Channel::Dynamic) ? name : "";
  Expr symbol =
      environment(interpreter).admit(kind, {from.source.number(), std::move(name), ""}, value, mark);
  log(Channel::Dynamic, "{} = {}, {} at this call: {}", symbol.str(), shown, value,
      why_symbol(interpreter, mark));
  // Symbols of data, which have none, may have been made since.
  interpreter.numbers.symbol_sources.resize(static_cast<size_t>(symbol.variable_id()));
  interpreter.numbers.symbol_sources.push_back(from);
  if (mark.kind == sym::MarkKind::Unbacked)
    interpreter.numbers.unbacked_values.emplace(symbol.variable_id(), value);
  return symbol;
}

bool is_symbolic_integer(Interpreter& interpreter, PyObject* object) {
  return is_varying_number(object) && interpreter.numbers.symbols &&
         varying_class(interpreter, object) == &PyLong_Type;
}

bool depends_on_data(Interpreter& interpreter, PyObject* object) {
  return is_varying_number(object) && !interpreter.numbers.varying.at(object).value;
}

std::optional<Expr> expression_of(Interpreter& interpreter, PyObject* object) {
  if (!interpreter.numbers.symbols) return std::nullopt;
  if (depends_on_data(interpreter, object)) return interpreter.numbers.varying.at(object).expression;
  if (!is_varying_number(object)) {
    const std::optional<int64_t> value = small_int(object);
    return value ? std::optional<Expr>(*value) : std::nullopt;
  }
  Numbers::Varying& number = interpreter.numbers.varying.at(object);
  if (number.expression) return number.expression;
  const std::optional<int64_t> value = small_int(number.value.get());
  if (!value) return std::nullopt;
  number.expression =
      new_symbol(interpreter, {number.source, guards::IntegerPart::Value}, sym::SymbolKind::Integer, *value);
  return number.expression;
}

std::optional<sym::Condition> undecided_truth(Interpreter& interpreter, PyObject* object) {
  if (!depends_on_data(interpreter, object)) return std::nullopt;
  if (is_float_of_data(interpreter, object)) return is_not_zero(interpreter, object);
  const Numbers::Varying& number = interpreter.numbers.varying.at(object);
  const sym::Condition condition =
      number.condition ? *number.condition : sym::not_equal(*number.expression, 0);
  return environment(interpreter).depends_on_data(condition) ? std::optional(condition) : std::nullopt;
}

Ref truth_of(Interpreter& interpreter, const sym::Condition& condition) {
  if (!environment(interpreter).depends_on_data(condition))
    return truth_object(decide(interpreter, condition));
  return make_varying(interpreter, {Ref(), kNoSource, std::nullopt, condition});
}

bool rely_on(Interpreter& interpreter, const sym::Condition& condition) {
  return environment(interpreter).check(condition, interpreter.numbers.symbols->where) != sym::Checked::Fails;
}

bool decide(Interpreter& interpreter, const sym::Condition& condition) {
  return environment(interpreter).decide(condition, interpreter.numbers.symbols->where);
}

Ref specialised(Interpreter& interpreter, const Expr& expression) {
  return Ref::steal(PyLong_FromLongLong(
      environment(interpreter).specialise(expression, interpreter.numbers.symbols->where)));
}

SourceId source_of(Interpreter& interpreter, const Expr& expression) {
  const auto operands = expression.is_constant() ? std::span<const Expr>() : expression.operands();
  switch (expression.kind()) {
    case sym::Kind::Constant:
      return interpreter.guards().pinned(Ref::steal(PyLong_FromLongLong(expression.constant())).get());
    case sym::Kind::Variable:
      return source_of_symbol(interpreter, expression.variable_id());
    case sym::Kind::Sum:
      return combined(interpreter, "operator", "add", operands);
    case sym::Kind::Product:
      return combined(interpreter, "operator", "mul", operands);
    case sym::Kind::FloorDiv:
      return combined(interpreter, "operator", "floordiv", operands);
    case sym::Kind::Mod:
      return combined(interpreter, "operator", "mod", operands);
    case sym::Kind::Min:
      return combined(interpreter, "builtins", "min", operands);
    case sym::Kind::Max:
      return combined(interpreter, "builtins", "max", operands);
  }
  return kNoSource;
}

std::optional<Ref> integer_arithmetic(Interpreter& interpreter, BinaryKind kind, PyObject* left,
                                      PyObject* right) {
  const std::array<PyObject*, 2> operands = {left, right};
  const auto values = expressions_of(interpreter, operands, Bools::AreIntegers);
  if (!values) return std::nullopt;
  try {
    const std::optional<Expr> result = arithmetic(interpreter, kind, (*values)[0], (*values)[1]);
    return result ? std::optional(integer(interpreter, *result)) : std::nullopt;
  } catch (const sym::ArithmeticError&) {
    return std::nullopt;  // Python's ints have no limit
  }
}

std::optional<Ref> integer_comparison(Interpreter& interpreter, PyObject* left, PyObject* right,
                                      int operation) {
  const std::array<PyObject*, 2> operands = {left, right};
  const auto values = expressions_of(interpreter, operands, Bools::AreIntegers);
  if (!values) return std::nullopt;
  return truth_of(interpreter, relation(operation, (*values)[0], (*values)[1]));
}

std::optional<Ref> integer_unary(Interpreter& interpreter, bytecode::Op op, PyObject* operand) {
  const auto values = expressions_of(interpreter, std::array<PyObject*, 1>{operand}, Bools::AreNone);
  if (!values) return std::nullopt;
  const Expr& value = (*values)[0];
  return integer(interpreter, op == bytecode::Op::UnaryNegative ? -value
                              : op == bytecode::Op::UnaryInvert ? -value - 1
                                                                : value);
}

std::optional<Ref> integer_call(Interpreter& interpreter, PyObject* callable,
                                std::span<const Ref> positional) {
  std::vector<PyObject*> objects;
  for (const Ref& value : positional) objects.push_back(value.get());
  const auto is = [&](const char* module, const char* name) { return callable == well_known(module, name); };
  if (is("builtins", "divmod") && objects.size() == 2) {
    const auto part = [&](BinaryKind kind) {
      return integer_arithmetic(interpreter, kind, objects[0], objects[1]);
    };
    const std::optional<Ref> quotient = part(BinaryKind::FloorDivide);
    std::optional<Ref> rest = quotient && *quotient ? part(BinaryKind::Remainder) : quotient;
    if (!rest || !*rest) return rest;
    return Ref::steal(PyTuple_Pack(2, quotient->get(), rest->get()));
  }
  const bool is_bool = callable == reinterpret_cast<PyObject*>(&PyBool_Type);
  const bool is_same = callable == reinterpret_cast<PyObject*>(&PyLong_Type) || is("builtins", "round") ||
                       is("math", "floor") || is("math", "ceil") || is("math", "trunc") ||
                       is("operator", "index");
  const bool is_min = is("builtins", "min"), is_max = is("builtins", "max");
  const bool is_absolute = is("builtins", "abs");
  if (!is_bool && !is_same && !is_min && !is_max && !is_absolute) return std::nullopt;
  if (objects.size() != 1 && !is_min && !is_max) return std::nullopt;
  if ((is_min || is_max) && objects.size() < 2) return std::nullopt;
  const auto values = expressions_of(interpreter, objects, Bools::AreNone);
  if (!values) return std::nullopt;
  Expr result = (*values)[0];
  if (is_bool) return truth_object(decide(interpreter, sym::not_equal(result, 0)));
  if (is_absolute) result = sym::max(result, -result);
  for (const Expr& value : std::span(*values).subspan(1))
    result = is_min ? sym::min(result, value) : sym::max(result, value);
  return integer(interpreter, result);
}

}  // namespace oxy::eval
