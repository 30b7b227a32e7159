#include "torch_api/symbolic_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <variant>

#include "sym/relations/layout.h"

namespace oxy::torch_api {

namespace {

using c10::SymNode;
using sym::Condition;
using sym::Expr;

constexpr int64_t kMaxExponent = 16;  // of a power that is multiplied out

// A float that is computed of integers, at least one of which is no constant:
// factor * (numerator / denominator) ** exponent.
struct Quotient {
  Expr numerator;
  Expr denominator;
  double factor = 1;
  double exponent = 1;

  // Without a factor and an exponent.
  bool is_plain() const { return factor == 1 && exponent == 1; }
  bool is_number() const { return numerator == Expr(1) && denominator == Expr(1); }
};

Quotient product(const Quotient& a, const Quotient& b) {
  return {a.numerator * b.numerator, a.denominator * b.denominator, a.factor * b.factor,
          a.is_number() ? b.exponent : a.exponent};
}

Quotient inverse(const Quotient& a) {
  return {a.denominator, a.numerator, 1 / a.factor, a.exponent};
}

// Whether a product of them is one.
bool can_multiply(const Quotient& a, const Quotient& b) {
  return a.exponent == b.exponent || a.is_number() || b.is_number();
}

using Value = std::variant<Expr, Condition, double, Quotient>;

// A number as such a float. Nothing: it is a condition.
std::optional<Quotient> as_quotient(const Value& value) {
  constexpr double kMostExact = 1LL << 53;
  if (const auto* quotient = std::get_if<Quotient>(&value)) return *quotient;
  if (const auto* integer = std::get_if<Expr>(&value)) return Quotient{*integer, 1};
  const auto* number = std::get_if<double>(&value);
  if (number == nullptr) return std::nullopt;
  if (std::trunc(*number) != *number || !(std::abs(*number) < kMostExact)) return Quotient{1, 1, *number};
  return Quotient{static_cast<int64_t>(*number), 1};
}

class SymbolicNode final : public c10::SymNodeImpl {
 public:
  SymbolicNode(SymbolsPointer symbols, Value value)
      : symbols_(std::move(symbols)), value_(std::move(value)) {}

  const Value& value() const { return value_; }
  const SymbolsPointer& symbols() const { return symbols_; }

  bool is_int() override { return std::holds_alternative<Expr>(value_); }
  bool is_bool() override { return std::holds_alternative<Condition>(value_); }
  bool is_float() override { return !is_int() && !is_bool(); }

  SymNode add(const SymNode& other) override {
    const auto sum = [](const Quotient& a, const Quotient& b) -> std::optional<Quotient> {
      if (!a.is_plain() || !b.is_plain()) return std::nullopt;
      return Quotient{a.numerator * b.denominator + b.numerator * a.denominator,
                      a.denominator * b.denominator};
    };
    return arithmetic(other, [](const auto& a, const auto& b) { return a + b; }, sum);
  }
  SymNode sub(const SymNode& other) override {
    const auto difference = [](const Quotient& a, const Quotient& b) -> std::optional<Quotient> {
      if (!a.is_plain() || !b.is_plain()) return std::nullopt;
      return Quotient{a.numerator * b.denominator - b.numerator * a.denominator,
                      a.denominator * b.denominator};
    };
    return arithmetic(other, [](const auto& a, const auto& b) { return a - b; }, difference);
  }
  SymNode mul(const SymNode& other) override {
    const auto of_quotients = [](const Quotient& a, const Quotient& b) {
      return can_multiply(a, b) ? std::optional(product(a, b)) : std::nullopt;
    };
    return arithmetic(other, [](const auto& a, const auto& b) { return a * b; }, of_quotients);
  }
  SymNode neg() override {
    if (const auto* quotient = std::get_if<Quotient>(&value_))
      return node(quotient->is_plain() ? Quotient{-quotient->numerator, quotient->denominator}
                                       : product({1, 1, -1}, *quotient));
    return is_float() ? node(-floating()) : node(-integer());
  }
  SymNode floordiv(const SymNode& other) override {
    if (is_float()) return node(std::floor(floating() / number(operand(other))));
    return node(sym::floordiv(integer(), divisor(other)));
  }
  SymNode mod(const SymNode& other) override {
    if (is_float()) {
      const double b = number(operand(other));
      return node(floating() - std::floor(floating() / b) * b);
    }
    return node(sym::mod(integer(), divisor(other)));
  }
  SymNode truediv(const SymNode& other) override {
    const Value right = operand(other);
    const std::optional<Quotient> a = as_quotient(value_), b = as_quotient(right);
    const bool has_symbols =
        std::holds_alternative<Quotient>(value_) || std::holds_alternative<Quotient>(right);
    if (has_symbols && a && b && !(b->numerator == Expr(0)) && b->factor != 0 &&
        can_multiply(*a, inverse(*b)))
      return quotient(product(*a, inverse(*b)));
    return node(number(value_) / number(right));
  }
  SymNode pow(const SymNode& other) override {
    const Value exponent = operand(other);
    const auto* const base = std::get_if<Quotient>(&value_);
    if (const auto* e = std::get_if<double>(&exponent); e && base && base->factor > 0)
      return quotient({base->numerator, base->denominator, std::pow(base->factor, *e), base->exponent * *e});
    if (is_float() || is_floating(exponent)) return node(std::pow(number(value_), number(exponent)));
    const int64_t n = specialised(exponent);
    if (n < 0) return node(std::pow(number(value_), static_cast<double>(n)));
    if (n > kMaxExponent) throw Unsupported(fmt::format("a size to the power {}", n));
    return node(sym::product(std::vector<Expr>(static_cast<size_t>(n), integer())));
  }
  SymNode sym_min(const SymNode& other) override {
    if (is_float()) return node(std::min(floating(), number(operand(other))));
    return node(sym::min(integer(), get<Expr>(operand(other))));
  }
  SymNode sym_max(const SymNode& other) override {
    if (is_float()) return node(std::max(floating(), number(operand(other))));
    return node(sym::max(integer(), get<Expr>(operand(other))));
  }
  SymNode ceil() override { return is_float() ? node(rounded(std::ceil(floating()))) : clone(); }
  SymNode floor() override { return is_float() ? node(rounded(std::floor(floating()))) : clone(); }

  SymNode eq(const SymNode& other) override {
    return emptiness(other, true, compared(other, std::equal_to<>(), sym::equal));
  }
  SymNode ne(const SymNode& other) override {
    return emptiness(other, false, compared(other, std::not_equal_to<>(), sym::not_equal));
  }
  SymNode lt(const SymNode& other) override { return compared(other, std::less<>(), sym::less); }
  SymNode le(const SymNode& other) override { return compared(other, std::less_equal<>(), sym::less_equal); }
  SymNode gt(const SymNode& other) override {
    return compared(other, std::greater<>(), [](const Expr& a, const Expr& b) { return sym::less(b, a); });
  }
  SymNode ge(const SymNode& other) override {
    return compared(other, std::greater_equal<>(),
                    [](const Expr& a, const Expr& b) { return sym::less_equal(b, a); });
  }

  SymNode sym_and(const SymNode& other) override {
    return node(Condition::all({condition(), get<Condition>(operand(other))}));
  }
  SymNode sym_or(const SymNode& other) override {
    return node(Condition::any({condition(), get<Condition>(operand(other))}));
  }
  SymNode sym_not() override { return node(!condition()); }
  SymNode sym_ite(const SymNode& then_value, const SymNode& else_value) override {
    return decided() ? then_value : else_value;
  }

  SymNode is_contiguous(c10::ArrayRef<SymNode> sizes, c10::ArrayRef<SymNode> strides) override {
    return node(sym::contiguous(integers(sizes), integers(strides)));
  }
  SymNode is_channels_last_contiguous_2d(c10::ArrayRef<SymNode> sizes,
                                         c10::ArrayRef<SymNode> strides) override {
    return node(sym::channels_last_contiguous(integers(sizes), integers(strides), 2));
  }
  SymNode is_channels_last_contiguous_3d(c10::ArrayRef<SymNode> sizes,
                                         c10::ArrayRef<SymNode> strides) override {
    return node(sym::channels_last_contiguous(integers(sizes), integers(strides), 3));
  }
  SymNode is_channels_last_strides_2d(c10::ArrayRef<SymNode> sizes, c10::ArrayRef<SymNode> strides) override {
    return node(sym::channels_last_strides(integers(sizes), integers(strides), 2));
  }
  SymNode is_channels_last_strides_3d(c10::ArrayRef<SymNode> sizes, c10::ArrayRef<SymNode> strides) override {
    return node(sym::channels_last_strides(integers(sizes), integers(strides), 3));
  }
  SymNode is_non_overlapping_and_dense(c10::ArrayRef<SymNode> sizes,
                                       c10::ArrayRef<SymNode> strides) override {
    // Where the order matters both dimensions have more than one index.
    return node(sym::non_overlapping_and_dense(
        integers(sizes), integers(strides), [this](const Expr& a, const Expr& b) {
          return environment().decide_general(sym::less(a, b), symbols_->where);
        }));
  }

  SymNode clone() override { return node(value_); }
  SymNode sym_float() override {
    if (is_float()) return clone();
    return quotient({simplified(value_), 1});
  }
  // PyTorch writes the end of a slice that goes on as the largest number, and compares sizes with it. No
  // symbol reaches kMaxInt, so that it compares alike.
  SymNode wrap_int(int64_t value) override {
    return node(Expr(std::clamp(value, -sym::kMaxInt, sym::kMaxInt)));
  }
  SymNode wrap_float(double value) override { return node(value); }
  SymNode wrap_bool(bool value) override { return node(Condition(value)); }

  int64_t guard_int(const char*, int64_t) override { return specialised(value_); }
  double guard_float(const char*, int64_t) override { return number(value_); }
  bool guard_bool(const char*, int64_t) override { return decided(); }
  bool guard_size_oblivious(const char*, int64_t) override {
    return environment().decide_general(condition(), symbols_->where);
  }
  bool guard_or_false(const char*, int64_t) override { return general_or(false); }
  bool guard_or_true(const char*, int64_t) override { return general_or(true); }
  bool statically_known_true(const char*, int64_t) override {
    return environment().answer(condition()) == sym::Answer::True;
  }
  bool expect_true(const char*, int64_t) override {
    return environment().check(condition(), symbols_->where) != sym::Checked::Fails;
  }
  int64_t int_() override { return specialised(value_); }
  bool bool_() override { return decided(); }

  bool has_hint() override {
    if (is_int()) return environment().hint(integer()).has_value();
    return is_float() || environment().hint(condition()).has_value();
  }
  // Python code of torch's may give it to the program (Tensor.__format__): it is the number's.
  std::string str() override {
    if (is_int()) return fmt::format("{}", specialised(value_));
    if (is_float()) return fmt::format("{}", floating());
    return decided() ? "True" : "False";
  }
  std::optional<int64_t> constant_int() override {
    return is_int() ? simplified(value_).as_constant() : std::nullopt;
  }
  std::optional<int64_t> maybe_as_int() override { return constant_int(); }
  std::optional<bool> constant_bool() override { return is_bool() ? condition().constant() : std::nullopt; }

 private:
  sym::ShapeEnvironment& environment() { return symbols_->environment; }

  SymNode node(Value value) const { return c10::make_intrusive<SymbolicNode>(symbols_, std::move(value)); }

  Value operand(const SymNode& other) const {
    if (const auto* ours = dynamic_cast<const SymbolicNode*>(other.get())) {
      if (ours->symbols_ != symbols_) throw Unsupported("symbolic integers of two captures meet");
      return ours->value_;
    }
    if (const auto value = other->constant_int()) return Expr(*value);
    if (const auto value = other->constant_bool()) return Condition(*value);
    throw Unsupported("a symbolic integer of another compiler");
  }

  template <class T>
  static const T& get(const Value& value) {
    const T* found = std::get_if<T>(&value);
    check(found != nullptr, "a symbolic value is of another type");
    return *found;
  }
  const Expr& integer() const { return get<Expr>(value_); }
  const Condition& condition() const { return get<Condition>(value_); }
  double floating() { return number(value_); }

  int64_t specialised(const Value& value) {
    return environment().specialise(get<Expr>(value), symbols_->where);
  }
  // As a float; an integer is specialised.
  double number(const Value& value) {
    if (const auto* quotient = std::get_if<Quotient>(&value))
      return number_of(*quotient, specialised(quotient->numerator), specialised(quotient->denominator));
    return is_floating(value) ? get<double>(value) : static_cast<double>(specialised(value));
  }
  static bool is_floating(const Value& value) {
    return std::holds_alternative<double>(value) || std::holds_alternative<Quotient>(value);
  }

  SymNode quotient(const Quotient& value) {
    const Expr numerator = environment().simplify(value.numerator),
               denominator = environment().simplify(value.denominator);
    if (numerator.is_constant() && denominator.is_constant())
      return node(number_of(value, numerator.constant(), denominator.constant()));
    return node(Quotient{numerator, denominator, value.factor, value.exponent});
  }
  static double number_of(const Quotient& value, int64_t numerator, int64_t denominator) {
    const double ratio = static_cast<double>(numerator) / static_cast<double>(denominator);
    return value.is_plain() ? ratio : value.factor * std::pow(ratio, value.exponent);
  }

  bool decided() {
    if (emptiness_)
      return environment().expect_empty(emptiness_->count, symbols_->where) == emptiness_->is_empty;
    return environment().expect(condition(), symbols_->where);
  }
  bool general_or(bool otherwise) {
    if (symbols_->is_general) {
      const std::optional<bool> at_hand = environment().hint(condition());
      if (const auto general = environment().general_answer(condition())) {
        symbols_->answered_generally |= at_hand.value_or(*general) != *general;
        return *general;
      }
      if (at_hand.value_or(otherwise) == otherwise) return otherwise;  // right for all values, who asks says
    }
    return environment().decide_general_or(condition(), otherwise, symbols_->where);
  }
  Expr simplified(const Value& value) { return environment().simplify(get<Expr>(value)); }

  // Python raises for a zero divisor. PyTorch's C++ does not get here with one.
  Expr divisor(const SymNode& other) {
    Expr e = simplified(operand(other));
    if (e == Expr(0)) throw sym::ArithmeticError("a size is divided by zero");
    return e;
  }

  static Expr rounded(double value) {
    if (!(std::abs(value) < static_cast<double>(sym::kMaxInt)))
      throw sym::ArithmeticError("a float that is rounded is no size");
    return static_cast<int64_t>(value);
  }

  std::vector<Expr> integers(c10::ArrayRef<SymNode> nodes) {
    std::vector<Expr> list;
    for (const SymNode& other : nodes) list.push_back(simplified(operand(other)));
    return list;
  }

  template <class Function, class OfQuotients>
  SymNode arithmetic(const SymNode& other, const Function& function, const OfQuotients& of_quotients) {
    const Value right = operand(other);
    if (std::holds_alternative<Quotient>(value_) || std::holds_alternative<Quotient>(right))
      if (const std::optional<Quotient> a = as_quotient(value_), b = as_quotient(right); a && b)
        if (const std::optional<Quotient> result = of_quotients(*a, *b)) return quotient(*result);
    if (is_float() || is_floating(right)) return node(function(number(value_), number(right)));
    return node(environment().simplify(function(integer(), get<Expr>(right))));
  }

  template <class OfFloats, class OfIntegers>
  SymNode compared(const SymNode& other, const OfFloats& of_floats, const OfIntegers& of_integers) {
    const Value right = operand(other);
    if (std::holds_alternative<Quotient>(value_) || std::holds_alternative<Quotient>(right)) {
      const std::optional<Quotient> a = as_quotient(value_), b = as_quotient(right);
      const bool are_integers =
          a && b && a->is_plain() && b->is_plain() && a->denominator == Expr(1) && b->denominator == Expr(1);
      if (are_integers) return node(of_integers(a->numerator, b->numerator));
    }
    if (is_float() || is_floating(right)) return node(Condition(of_floats(number(value_), number(right))));
    return node(of_integers(integer(), get<Expr>(right)));
  }

  // A comparison with zero, which asks whether there are elements.
  struct Emptiness {
    Expr count;
    bool is_empty = true;  // whether the condition is that there are none
  };
  SymNode emptiness(const SymNode& other, bool is_empty, SymNode comparison) const {
    const Value right = operand(other);
    const auto *count = std::get_if<Expr>(&value_), *zero = std::get_if<Expr>(&right);
    if (count != nullptr && zero != nullptr && *zero == Expr(0))
      static_cast<SymbolicNode&>(*comparison).emptiness_ = {*count, is_empty};
    return comparison;
  }

  SymbolsPointer symbols_;
  Value value_;
  std::optional<Emptiness> emptiness_;  // what the condition says, if it is that
};

const SymbolicNode& ours(const c10::SymNodeImpl* node) {
  const auto* found = dynamic_cast<const SymbolicNode*>(node);
  if (!found) throw Unsupported("a symbolic integer of another compiler");
  return *found;
}

}  // namespace

std::optional<bool> Symbols::decide_layout(const Condition& question) {
  const std::optional<bool> answer = environment.hint(question);
  if (answer) environment.promise(*answer ? question : !question, where ? where() : "");
  return answer;
}

void Symbols::decide_ones(std::span<const Expr> sizes) {
  std::vector<Condition> are_one;
  for (const Expr& size : sizes) are_one.push_back(sym::equal(environment.simplify(size), 1));
  const Condition question = Condition::all(std::move(are_one));
  const std::optional<bool> known = question.constant();
  if (known ? *known : decide_layout(question) == true) needs_exact_ones = true;
}

void Symbols::fix_ones() {
  for (const sym::Symbol& symbol : environment.symbols())
    if (symbol.kind == sym::SymbolKind::Size) decide_layout(sym::equal(symbol.variable, 1));
  needs_exact_ones = true;
}

c10::SymInt to_torch(const SymbolsPointer& symbols, const Expr& e) {
  if (const auto value = e.as_constant()) return *value;
  return c10::SymInt(SymNode(c10::make_intrusive<SymbolicNode>(symbols, e)));
}

c10::SymBool to_torch(const SymbolsPointer& symbols, const Condition& condition) {
  if (const auto value = condition.constant()) return *value;
  return c10::SymBool(SymNode(c10::make_intrusive<SymbolicNode>(symbols, condition)));
}

Expr expression_of(const c10::SymInt& value) {
  if (const auto number = value.maybe_as_int()) return *number;
  return std::get<Expr>(ours(value.toSymNodeImplUnowned()).value());
}

std::optional<FloatOfSizes> float_of_sizes(const c10::SymFloat& value) {
  if (!value.is_symbolic()) return std::nullopt;
  const c10::SymNode held = value.toSymNodeImpl();
  const auto* const node = dynamic_cast<const SymbolicNode*>(held.get());
  const auto* const quotient = node == nullptr ? nullptr : std::get_if<Quotient>(&node->value());
  if (quotient == nullptr) return std::nullopt;
  return FloatOfSizes{to_torch(node->symbols(), quotient->numerator),
                      to_torch(node->symbols(), quotient->denominator), quotient->factor, quotient->exponent};
}

Condition condition_of(const c10::SymBool& value) {
  if (const auto known = value.maybe_as_bool()) return *known;
  return std::get<Condition>(ours(value.toSymNodeImplUnowned()).value());
}

}  // namespace oxy::torch_api
