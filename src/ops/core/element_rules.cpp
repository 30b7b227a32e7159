#include "ops/core/element_rules.h"

#include <cmath>

#include "aten/dtype.h"
#include "ops/core/element_wise.h"

namespace oxy::ops {

namespace {

using sym::Condition;

// Floating types hold larger ones, but half precision rounds some of them.
constexpr int64_t kLargestFloat = 256;
constexpr int64_t kLargestInt32 = (int64_t{1} << 31) - 1;

std::optional<Element> element_of_number(const graph::Argument& argument) {
  if (const bool* flag = std::get_if<bool>(&argument)) return Condition(*flag);
  if (const Expr* integer = std::get_if<Expr>(&argument)) return *integer;
  const double* number = std::get_if<double>(&argument);
  if (number == nullptr || !(std::abs(*number) <= static_cast<double>(kLargestFloat)) ||
      std::floor(*number) != *number)
    return std::nullopt;
  return Expr(static_cast<int64_t>(*number));
}

// The coordinates of an operand that is broadcast. Nothing where it is not known which dimensions repeat it.
std::optional<Coordinates> broadcast(const std::vector<Expr>& operand, const std::vector<Expr>& result,
                                     const Coordinates& at) {
  if (operand.size() > result.size() || at.size() != result.size()) return std::nullopt;
  const size_t more = result.size() - operand.size();
  Coordinates own;
  for (size_t d = 0; d < operand.size(); ++d) {
    if (operand[d] != Expr(1) && !(operand[d] == result[more + d])) return std::nullopt;
    own.push_back(operand[d] == Expr(1) ? Expr(0) : at[more + d]);
  }
  return own;
}

// Intervals do not tell that a coordinate is less than its size.
Condition less_than(const Expr& a, const Expr& b) {
  return sym::known_less(a, b) ? Condition(true) : sym::less(a, b);
}

Condition at_most(const Expr& a, const Expr& b) {
  return sym::known_less_equal(a, b) ? Condition(true) : sym::less_equal(a, b);
}

using Compare = Condition (*)(const Expr& a, const Expr& b);

// A truth value is 0 or 1. What is compared with it is a number.
std::optional<Element> truth_compared(const Condition& truth, const Expr& number, Compare compare) {
  const std::optional<bool> if_false = compare(0, number).constant();
  const std::optional<bool> if_true = compare(1, number).constant();
  if (!if_false || !if_true) return std::nullopt;
  if (*if_false == *if_true) return Condition(*if_true);
  return *if_true ? truth : !truth;
}

// The first two arguments, in the type in which eager computes with them.
struct Operands {
  std::optional<Element> first, second;
  bool are_known() const { return first && second; }
};

Operands operands_of(const ElementContext& context, const Coordinates& at) {
  const std::optional<DType> common = context.common_type();
  if (!common) return {};
  return {context.operand(0, at, *common), context.operand(1, at, *common)};
}

std::optional<Element> compared(const ElementContext& context, const Coordinates& at, Compare compare) {
  const Operands operands = operands_of(context, at);
  if (!operands.are_known()) return std::nullopt;
  const std::optional<Expr> left = as_number(*operands.first), right = as_number(*operands.second);
  if (left && right) return compare(*left, *right);
  return right ? truth_compared(std::get<Condition>(*operands.first), *right, compare) : std::nullopt;
}

// Whether its second argument is added once.
bool is_plain_sum(const ElementContext& context) {
  return context.integer(2) == Expr(1);
}

// Of logical operators, which take numbers as well.
std::optional<Condition> truth_operand(const ElementContext& context, size_t place, const Coordinates& at) {
  const TensorMeta* const tensor = context.tensor(place);
  const std::optional<Element> element =
      tensor == nullptr ? std::nullopt : context.operand(place, at, tensor->dtype);
  return element ? as_truth(*element) : std::nullopt;
}

// One part decides alone, if it has the value that decides. Where the result is no truth value, bits are
// combined: of 0 and 1 as truth values are, but other bits are not known, so that only a 0 decides alone.
std::optional<Element> combined(const ElementContext& context, const Coordinates& at, bool decides) {
  std::optional<Condition> a, b;
  const bool are_truth_values = context.result().dtype == DType::Bool;
  if (are_truth_values) {
    a = truth_operand(context, 0, at);
    b = truth_operand(context, 1, at);
  } else {
    const Operands operands = operands_of(context, at);
    if (operands.first) a = as_truth(*operands.first, true);
    if (operands.second) b = as_truth(*operands.second, true);
  }
  if (are_truth_values || !decides)
    for (const std::optional<Condition>& part : {a, b})
      if (part && part->constant() == decides) return Condition(decides);
  if (!a || !b) return std::nullopt;
  return decides ? Condition::any({*a, *b}) : Condition::all({*a, *b});
}

// What is outside is 0.
std::optional<Element> triangle(const ElementContext& context, const Coordinates& at, bool is_lower) {
  const std::optional<Element> element = context.of_argument(0, at);
  const std::optional<Expr> diagonal = context.integer(1);
  if (!element || !diagonal || at.size() < 2) return std::nullopt;
  const std::optional<Condition> truth = as_truth(*element, true);
  if (!truth) return std::nullopt;
  const Expr limit = at[at.size() - 2] + *diagonal, &column = at.back();
  return Condition::all({is_lower ? sym::less_equal(column, limit) : sym::less_equal(limit, column), *truth});
}

bool lies_within(const Expr& position, const Expr& size) {
  return sym::known_less_equal(0, position) && sym::known_less(position, size);
}

}  // namespace

std::optional<Element> held(DType dtype, const Element& element) {
  if (is_complex(dtype)) return std::nullopt;
  if (dtype == DType::Bool) {
    const std::optional<Condition> truth = as_truth(element);
    return truth ? std::optional<Element>(*truth) : std::nullopt;
  }
  if (std::holds_alternative<Condition>(element)) return element;
  const sym::Range range = std::get<Expr>(element).range();
  const auto lies_in = [&](int64_t low, int64_t high) {
    return (low <= range.low && range.high <= high) ? std::optional(element) : std::nullopt;
  };
  if (is_floating(dtype))
    return range.low == range.high ? lies_in(-kLargestFloat, kLargestFloat) : std::nullopt;
  if (dtype == DType::Int32) return lies_in(-kLargestInt32, kLargestInt32);
  return dtype == DType::Int64 ? lies_in(sym::kMinInt + 1, sym::kMaxInt - 1) : lies_in(0, 127);
}

std::optional<Expr> as_number(const Element& element) {
  if (const Expr* number = std::get_if<Expr>(&element)) return *number;
  const std::optional<bool> known = std::get<Condition>(element).constant();
  return known ? std::optional(Expr(*known ? 1 : 0)) : std::nullopt;
}

std::optional<Condition> as_truth(const Element& element, bool is_zero_or_one) {
  if (const Condition* truth = std::get_if<Condition>(&element)) return *truth;
  const Expr& number = std::get<Expr>(element);
  if (is_zero_or_one && number != Expr(0) && number != Expr(1)) return std::nullopt;
  return sym::not_equal(number, 0);
}

const TensorMeta* ElementContext::tensor(size_t place) const {
  const auto* ref = std::get_if<graph::ValueRef>(&argument(place));
  return ref == nullptr ? nullptr : &meta(ref->id);
}

std::optional<Element> ElementContext::operand(size_t place, const Coordinates& at, DType dtype) const {
  const TensorMeta* const operand = tensor(place);
  if (operand == nullptr) {
    const std::optional<Element> number = element_of_number(argument(place));
    return number ? held(dtype, *number) : std::nullopt;
  }
  const std::optional<Coordinates> own = broadcast(operand->sizes, result().sizes, at);
  const std::optional<Element> element = own ? of_argument(place, *own) : std::nullopt;
  return element ? held(dtype, *element) : std::nullopt;
}

std::optional<DType> ElementContext::common_type() const {
  Promotion promotion(DType::Float32);
  bool has_fraction = false, has_floating_tensor = false;
  for (const size_t place : {0, 1}) {
    if (const TensorMeta* const operand = tensor(place)) {
      promotion.add_tensor(*operand);
      has_floating_tensor = has_floating_tensor || is_floating(operand->dtype);
    } else {
      promotion.add_number(argument(place));
      has_fraction = has_fraction || std::holds_alternative<double>(argument(place));
    }
  }
  // Whole numbers and a fraction have PyTorch's default type.
  return has_fraction && !has_floating_tensor ? std::nullopt : std::optional(promotion.result());
}

std::optional<Element> ElementContext::of_argument(size_t place, const Coordinates& at) const {
  const auto* ref = std::get_if<graph::ValueRef>(&argument(place));
  return ref == nullptr || meta(ref->id).sizes.size() != at.size() ? std::nullopt : element(ref->id, at);
}

std::optional<Expr> ElementContext::integer(size_t place) const {
  if (place >= node_.args.size()) return std::nullopt;
  const Expr* number = std::get_if<Expr>(&node_.args[place]);
  return number == nullptr ? std::nullopt : std::optional(*number);
}

std::optional<size_t> ElementContext::dimension(size_t place) const {
  const std::optional<Expr> given = integer(place);
  const auto rank = static_cast<int64_t>(result().sizes.size());
  if (!given || !given->is_constant()) return std::nullopt;
  const int64_t dimension = given->constant() < 0 ? given->constant() + rank : given->constant();
  return 0 <= dimension && dimension < rank ? std::optional(static_cast<size_t>(dimension)) : std::nullopt;
}

namespace elements {

std::optional<Element> zeros(const ElementContext& /*context*/, const Coordinates& /*at*/) {
  return Expr(0);
}

std::optional<Element> ones(const ElementContext& /*context*/, const Coordinates& /*at*/) {
  return Expr(1);
}

std::optional<Element> filled(const ElementContext& context, const Coordinates& /*at*/) {
  return element_of_number(context.argument(1));
}

std::optional<Element> filled_alike(const ElementContext& context, const Coordinates& /*at*/) {
  return element_of_number(context.argument(2));
}

std::optional<Element> scalar_tensor(const ElementContext& context, const Coordinates& /*at*/) {
  return element_of_number(context.argument(0));
}

std::optional<Element> count_to(const ElementContext& /*context*/, const Coordinates& at) {
  return at.at(0);
}

std::optional<Element> count_from(const ElementContext& context, const Coordinates& at) {
  const std::optional<Expr> start = context.integer(0), step = context.integer(2);
  // arange(start, end) has its dtype there.
  const bool is_stepless = !std::holds_alternative<double>(context.argument(2)) && !step;
  if (!start || !context.integer(1) || (!step && !is_stepless)) return std::nullopt;
  return *start + (step ? *step : Expr(1)) * at.at(0);
}

std::optional<Element> sum(const ElementContext& context, const Coordinates& at) {
  const Operands operands = operands_of(context, at);
  if (!operands.are_known() || !is_plain_sum(context)) return std::nullopt;
  const std::optional<Expr> left = as_number(*operands.first), right = as_number(*operands.second);
  return left && right ? std::optional<Element>(*left + *right) : std::nullopt;
}

std::optional<Element> difference(const ElementContext& context, const Coordinates& at) {
  const Operands operands = operands_of(context, at);
  if (!operands.are_known() || !is_plain_sum(context)) return std::nullopt;
  const std::optional<Expr> left = as_number(*operands.first), right = as_number(*operands.second);
  return left && right ? std::optional<Element>(*left - *right) : std::nullopt;
}

std::optional<Element> less(const ElementContext& context, const Coordinates& at) {
  return compared(context, at, &less_than);
}

std::optional<Element> less_equal(const ElementContext& context, const Coordinates& at) {
  return compared(context, at, &at_most);
}

std::optional<Element> greater(const ElementContext& context, const Coordinates& at) {
  return compared(context, at, [](const Expr& a, const Expr& b) { return less_than(b, a); });
}

std::optional<Element> greater_equal(const ElementContext& context, const Coordinates& at) {
  return compared(context, at, [](const Expr& a, const Expr& b) { return at_most(b, a); });
}

std::optional<Element> equal(const ElementContext& context, const Coordinates& at) {
  return compared(context, at, &sym::equal);
}

std::optional<Element> not_equal(const ElementContext& context, const Coordinates& at) {
  return compared(context, at, &sym::not_equal);
}

std::optional<Element> conjunction(const ElementContext& context, const Coordinates& at) {
  return combined(context, at, false);
}

std::optional<Element> disjunction(const ElementContext& context, const Coordinates& at) {
  return combined(context, at, true);
}

std::optional<Element> negation(const ElementContext& context, const Coordinates& at) {
  if (context.result().dtype != DType::Bool) return std::nullopt;
  const std::optional<Condition> truth = truth_operand(context, 0, at);
  return truth ? std::optional<Element>(!*truth) : std::nullopt;
}

std::optional<Element> chosen(const ElementContext& context, const Coordinates& at) {
  const DType dtype = context.result().dtype;
  std::optional<Element> a = context.operand(1, at, dtype), b = context.operand(2, at, dtype);
  const std::optional<Condition> condition = truth_operand(context, 0, at);
  if (condition && condition->constant()) return *condition->constant() ? a : b;
  if (!a || !b) return std::nullopt;
  if (*a == *b) return a;
  const std::optional<Condition> if_true = as_truth(*a, true), if_false = as_truth(*b, true);
  if (!condition || !if_true || !if_false) return std::nullopt;
  return Condition::any({Condition::all({*condition, *if_true}), Condition::all({!*condition, *if_false})});
}

std::optional<Element> lower_triangle(const ElementContext& context, const Coordinates& at) {
  return triangle(context, at, true);
}

std::optional<Element> upper_triangle(const ElementContext& context, const Coordinates& at) {
  return triangle(context, at, false);
}

// Parts of one element may go on as the long one does: position_ids with the position before the first one.
std::optional<Element> joined(const ElementContext& context, const Coordinates& at) {
  const auto* parts = std::get_if<graph::ValueList>(&context.argument(0));
  const std::optional<size_t> along = context.dimension(1);
  if (parts == nullptr || !along) return std::nullopt;
  std::optional<Expr> formula;  // with `place` for the position within all
  const Expr place = context.coordinate(context.result().sizes[*along]);
  std::vector<std::pair<Expr, Expr>> single;  // positions, elements
  Expr start = 0;
  for (const graph::ValueId part : parts->ids) {
    const std::vector<Expr>& sizes = context.meta(part).sizes;
    if (sizes.size() != at.size()) return std::nullopt;  // an empty one, whatever its dimensions are
    const Expr within = sizes[*along] == Expr(1) ? Expr(0) : context.coordinate(sizes[*along]);
    Coordinates own = at;
    own[*along] = within;
    const std::optional<Element> element = context.element(part, own);
    const std::optional<Expr> number = element ? as_number(*element) : std::nullopt;
    if (!number) return std::nullopt;
    if (sizes[*along] == Expr(1)) {
      single.emplace_back(start, *number);
    } else if (formula) {
      return std::nullopt;
    } else {
      const int64_t id = within.variable_id();
      formula = sym::substitute(*number, [&](int64_t variable) {
        return variable == id ? std::optional(place - start) : std::nullopt;
      });
    }
    start = start + sizes[*along];
  }
  if (!formula) return std::nullopt;
  const auto at_place = [&](const Expr& position) {
    return sym::substitute(*formula, [&](int64_t variable) {
      return variable == place.variable_id() ? std::optional(position) : std::nullopt;
    });
  };
  for (const auto& [position, element] : single)
    if (!(at_place(position) == element)) return std::nullopt;
  return at_place(at[*along]);
}

std::optional<Element> indexed(const ElementContext& context, const Coordinates& at) {
  const auto* indices = std::get_if<graph::ValueList>(&context.argument(1));
  const TensorMeta* const tensor = context.tensor(0);
  if (indices == nullptr || tensor == nullptr || indices->ids.size() > tensor->sizes.size())
    return std::nullopt;
  // The dimensions that the indices make stand in front of those without an index.
  const size_t rest = tensor->sizes.size() - indices->ids.size();
  if (rest > at.size()) return std::nullopt;
  const auto front = static_cast<std::ptrdiff_t>(at.size() - rest);
  const std::vector<Expr>& sizes = context.result().sizes;
  const std::vector<Expr> made(sizes.begin(), sizes.begin() + front);
  Coordinates own;
  for (size_t d = 0; d < indices->ids.size(); ++d) {
    const graph::ValueId index = indices->ids[d];
    if (index == graph::kNoValue || is_mask(context.meta(index).dtype)) return std::nullopt;
    const std::optional<Coordinates> of_index =
        broadcast(context.meta(index).sizes, made, {at.begin(), at.begin() + front});
    const std::optional<Element> element = of_index ? context.element(index, *of_index) : std::nullopt;
    const std::optional<Expr> position = element ? as_number(*element) : std::nullopt;
    if (!position || !lies_within(*position, tensor->sizes[d])) return std::nullopt;
    own.push_back(*position);
  }
  own.insert(own.end(), at.begin() + front, at.end());
  return context.of_argument(0, own);
}

std::optional<Element> running_sum(const ElementContext& context, const Coordinates& at) {
  const std::optional<size_t> along = context.dimension(1);
  const TensorMeta* const tensor = context.tensor(0);
  if (!along || tensor == nullptr || tensor->sizes.size() != at.size()) return std::nullopt;
  Coordinates other = at;
  other[*along] = context.coordinate(tensor->sizes[*along]);
  const std::optional<Element> element = context.of_argument(0, other);
  const std::optional<Expr> number = element ? as_number(*element) : std::nullopt;
  if (!number) return std::nullopt;
  for (const Expr& variable : sym::variables(*number))
    if (variable == other[*along]) return std::nullopt;
  return *number * (at[*along] + 1);
}

}  // namespace elements

}  // namespace oxy::ops
