#include "sym/program/integer_program.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sym/node.h"
#include "sym/program/definitions.h"

namespace oxy::sym {

// Lays out slots: a number that is used twice is computed once.
class IntegerProgramBuilder {
 public:
  using Operation = IntegerProgram::Operation;

  IntegerProgramBuilder(IntegerProgram& program, std::span<const int64_t> inputs) : program_(program) {
    for (const int64_t id : inputs) inputs_.emplace(id, slot_of_new());
    program_.inputs_ = inputs.size();
  }

  // Constants come first, so that their slots lie together.
  void add_constants(const Expr& e) {
    if (e.is_constant()) add_constant(e.constant());
    for (const Expr& operand : e.operands()) add_constants(operand);
  }
  void add_constants(const Condition& condition) {
    if (const std::optional<bool> value = condition.constant()) add_constant(*value ? 1 : 0);
    if (condition.kind() == ConditionKind::Relation) {
      const Comparands sides = comparands(condition.relation());
      // A linear relation needs none of them, which only costs the run a copy of each.
      for (const Expr* side : {&sides.left, &sides.right}) add_constants(*side), add_coefficients(*side);
    }
    if (condition.kind() == ConditionKind::Any) add_constant(0);
    for (const Condition& part : condition.parts()) add_constants(part);
  }
  // A sum is computed by adding and subtracting: of a negative term its positive is a number of the program.
  void add_coefficients(const Expr& e) {
    if (e.kind() == Kind::Sum)
      for (const Expr& term : terms(e))
        if (const Monomial m = monomial(term); m.coefficient < 0) add_constant(-m.coefficient);
    for (const Expr& operand : e.operands()) add_coefficients(operand);
  }

  void require(const Condition& condition, int32_t number) {
    condition_ = number;
    if (condition.kind() == ConditionKind::All) {
      for (const Condition& part : condition.parts()) require(part, number);
    } else if (condition.kind() == ConditionKind::Any) {
      emit(Operation::NeedTrue, 0, truth(condition), 0);
    } else {
      const Comparands sides = comparands(condition.relation());
      if (require_linear(condition.relation(), sides)) return;
      const uint16_t left = slot(sides.left);
      emit(needed(sides.comparison), 0, left, slot(sides.right));
    }
  }

  uint16_t compute(const Expr& e) {
    condition_ = -1;
    return slot(e);
  }

  static IntegerProgram compile(std::span<const int64_t> inputs, std::span<const Definition> definitions,
                                std::span<const Expr> results) {
    IntegerProgram program;
    IntegerProgramBuilder builder(program, inputs);
    const auto add_numbers = [&](const Expr& e) { builder.add_constants(e), builder.add_coefficients(e); };
    for (const Definition& definition : definitions) add_numbers(definition.value);
    std::ranges::for_each(results, add_numbers);
    for (const Definition& definition : definitions)
      builder.inputs_.emplace(definition.variable, builder.compute(definition.value));
    for (const Expr& result : results) program.results_.push_back(builder.compute(result));
    program.slots_ = builder.slots();
    return program;
  }

  size_t slots() const { return next_; }

 private:
  // In one instruction, if that is fewer and the relation is one of a sum of small multiples of inputs.
  bool require_linear(const Relation& relation, const Comparands& sides) {
    const auto is_computed = [](const Expr& e) { return !e.is_constant() && e.kind() != Kind::Variable; };
    if (!is_computed(sides.left) && !is_computed(sides.right)) return false;
    constexpr int64_t kLargest = int64_t{1} << 30;
    const auto is_small = [&](int64_t n) { return -kLargest < n && n < kLargest; };
    IntegerProgram::Linear linear{.kind = relation.kind()};
    std::vector<IntegerProgram::Term> multiples;
    for (const Expr& term : terms(relation.value())) {
      if (term.is_constant()) {
        linear.constant = term.constant();
        continue;
      }
      const Monomial m = monomial(term);
      if (m.factors.size() != 1 || m.factors[0].kind() != Kind::Variable || !is_small(m.coefficient))
        return false;
      multiples.push_back({static_cast<int32_t>(m.coefficient), slot(m.factors[0])});
    }
    linear.terms = static_cast<uint16_t>(multiples.size());
    program_.terms_.insert(program_.terms_.end(), multiples.begin(), multiples.end());
    program_.linear_.push_back(linear);
    emit(Operation::NeedLinear, 0, 0, 0);
    return true;
  }

  static Operation needed(Comparison comparison) {
    switch (comparison) {
      case Comparison::Equal:
        return Operation::NeedEqual;
      case Comparison::NotEqual:
        return Operation::NeedNotEqual;
      case Comparison::Less:
        return Operation::NeedLess;
      default:
        return Operation::NeedLessEqual;
    }
  }

  static Operation asked(Comparison comparison) {
    switch (comparison) {
      case Comparison::Equal:
        return Operation::IsEqual;
      case Comparison::NotEqual:
        return Operation::IsNotEqual;
      case Comparison::Less:
        return Operation::IsLess;
      default:
        return Operation::IsLessEqual;
    }
  }

  uint16_t slot_of_new() {
    if (next_ > 0xffff) throw Unsupported("more sizes are computed than one program holds");
    return static_cast<uint16_t>(next_++);
  }

  void add_constant(int64_t value) {
    if (constants_.contains(value)) return;
    constants_.emplace(value, slot_of_new());
    program_.constants_.push_back(value);
  }

  uint16_t emit(Operation operation, uint16_t target, uint16_t a, uint16_t b) {
    program_.code_.push_back({operation, target, a, b});
    program_.condition_of_.push_back(condition_);
    return target;
  }
  uint16_t emit(Operation operation, uint16_t a, uint16_t b) { return emit(operation, slot_of_new(), a, b); }

  static bool may_divide_by_zero(const Expr& e) {
    const std::span<const Expr> operands = e.operands();
    const bool divides = e.kind() == Kind::FloorDiv || e.kind() == Kind::Mod;
    return (divides && !operands[1].is_constant()) || std::ranges::any_of(operands, may_divide_by_zero);
  }

  uint16_t compared(const Comparands& sides) {
    const uint16_t left = slot(sides.left);
    return emit(asked(sides.comparison), left, slot(sides.right));
  }

  // 1 or 0, for a relation that is a part of a condition. It is false where it divides by zero.
  uint16_t truth(const Comparands& sides) {
    if (!may_divide_by_zero(sides.left) && !may_divide_by_zero(sides.right)) return compared(sides);
    are_zero_.emplace();
    std::unordered_map<Expr, uint16_t> known_outside = std::exchange(known_, {});
    uint16_t result = compared(sides);
    for (const uint16_t is_zero : *are_zero_)
      result = emit(Operation::And, result, emit(Operation::IsEqual, is_zero, constants_.at(0)));
    known_ = std::move(known_outside);
    are_zero_.reset();
    return result;
  }
  uint16_t truth(const Condition& condition) {
    if (const std::optional<bool> value = condition.constant()) return constants_.at(*value ? 1 : 0);
    if (condition.kind() == ConditionKind::Relation) return truth(comparands(condition.relation()));
    const Operation operation = condition.kind() == ConditionKind::All ? Operation::And : Operation::Or;
    uint16_t result = truth(condition.parts()[0]);
    for (const Condition& part : condition.parts().subspan(1)) result = emit(operation, result, truth(part));
    return result;
  }

  uint16_t slot(const Expr& e) {
    if (e.is_constant()) return constants_.at(e.constant());
    if (e.kind() == Kind::Variable) {
      const auto found = inputs_.find(e.variable_id());
      check(found != inputs_.end(), "a program is given no value for " + e.variable_name());
      return found->second;
    }
    if (const auto found = known_.find(e); found != known_.end()) return found->second;
    const uint16_t result = e.kind() == Kind::Sum ? sum(e) : folded(e);
    known_.emplace(e, result);
    return result;
  }

  uint16_t folded(const Expr& e) {
    const std::span<const Expr> operands = e.operands();
    uint16_t result = slot(operands[0]);
    const bool divides = e.kind() == Kind::FloorDiv || e.kind() == Kind::Mod;
    for (const Expr& operand : operands.subspan(1))
      result = emit(operation_of(e.kind()), result, divides && are_zero_ ? divisor(operand) : slot(operand));
    return result;
  }

  // The divisor, with 1 in the place of 0. Notes whether it is 0.
  uint16_t divisor(const Expr& e) {
    const uint16_t own = slot(e);
    if (e.is_constant()) return own;
    are_zero_->push_back(emit(Operation::IsEqual, own, constants_.at(0)));
    return emit(Operation::Or, own, are_zero_->back());
  }

  static Operation operation_of(Kind kind) {
    switch (kind) {
      case Kind::Product:
        return Operation::Multiply;
      case Kind::FloorDiv:
        return Operation::FloorDivide;
      case Kind::Mod:
        return Operation::Modulo;
      case Kind::Min:
        return Operation::Min;
      case Kind::Max:
        return Operation::Max;
      default:
        throw InternalError("an expression of unknown kind");
    }
  }

  uint16_t sum(const Expr& e) {
    std::vector<Expr> list(e.operands().begin(), e.operands().end());
    // It begins with a term that is added, if there is one.
    std::ranges::stable_partition(list, [](const Expr& term) { return monomial(term).coefficient > 0; });
    uint16_t result = slot(list[0]);
    for (const Expr& term : std::span(list).subspan(1)) {
      const Monomial m = monomial(term);
      if (m.coefficient > 0)
        result = emit(Operation::Add, result, slot(term));
      else
        result = emit(Operation::Subtract, result, slot(-term));
    }
    return result;
  }

  IntegerProgram& program_;
  std::unordered_map<int64_t, uint16_t> inputs_;  // by variable id; of definitions too
  std::unordered_map<int64_t, uint16_t> constants_;
  std::unordered_map<Expr, uint16_t> known_;
  // For each divisor of the relation that truth() computes, the slot that says whether it is 0. Nothing
  // elsewhere: a division by 0 ends the run there.
  std::optional<std::vector<uint16_t>> are_zero_;
  int32_t condition_ = -1;
  size_t next_ = 0;
};

IntegerProgram::IntegerProgram(std::span<const int64_t> inputs, std::span<const Condition> conditions,
                               std::span<const Expr> results) {
  IntegerProgramBuilder builder(*this, inputs);
  for (const Condition& condition : conditions) builder.add_constants(condition);
  for (const Expr& result : results) builder.add_constants(result), builder.add_coefficients(result);
  for (size_t i = 0; i < conditions.size(); ++i) builder.require(conditions[i], static_cast<int32_t>(i));
  for (const Expr& result : results) results_.push_back(builder.compute(result));
  slots_ = builder.slots();
}

IntegerProgram compile(std::span<const int64_t> inputs, std::span<const Definition> definitions,
                       std::span<const Expr> results) {
  return IntegerProgramBuilder::compile(inputs, definitions, results);
}

RunOutcome IntegerProgram::run(std::span<const int64_t> values, std::span<int64_t> work) const noexcept {
  int64_t* const slot = work.data();
  std::ranges::copy(values, slot);
  std::ranges::copy(constants_, slot + inputs_);
  RunStatus status = RunStatus::Holds;
  const Linear* linear = linear_.data();
  const Term* term = terms_.data();
  for (const Instruction& instruction : code_) {
    const int64_t a = slot[instruction.a];
    const int64_t b = slot[instruction.b];
    int64_t& target = slot[instruction.target];
    bool is_sound = true;
    bool is_held = true;
    switch (instruction.operation) {
      case Operation::Add:
        is_sound = !__builtin_add_overflow(a, b, &target);
        break;
      case Operation::Subtract:
        is_sound = !__builtin_sub_overflow(a, b, &target);
        break;
      case Operation::Multiply:
        is_sound = !__builtin_mul_overflow(a, b, &target);
        break;
      case Operation::FloorDivide:
      case Operation::Modulo:
        if (b == 0) [[unlikely]] {
          status = RunStatus::ZeroDivision;
        } else if (b == -1) {  // the processor cannot divide the smallest integer by it
          target = 0;
          if (instruction.operation == Operation::FloorDivide)
            is_sound = !__builtin_sub_overflow(int64_t{0}, a, &target);
        } else {
          target = instruction.operation == Operation::FloorDivide ? floor_divide(a, b) : floor_modulo(a, b);
        }
        break;
      case Operation::Min:
        target = std::min(a, b);
        break;
      case Operation::Max:
        target = std::max(a, b);
        break;
      case Operation::IsEqual:
        target = static_cast<int64_t>(a == b);
        break;
      case Operation::IsNotEqual:
        target = static_cast<int64_t>(a != b);
        break;
      case Operation::IsLess:
        target = static_cast<int64_t>(a < b);
        break;
      case Operation::IsLessEqual:
        target = static_cast<int64_t>(a <= b);
        break;
      case Operation::And:
        target = a & b;
        break;
      case Operation::Or:
        target = a | b;
        break;
      case Operation::NeedEqual:
        is_held = a == b;
        break;
      case Operation::NeedNotEqual:
        is_held = a != b;
        break;
      case Operation::NeedLess:
        is_held = a < b;
        break;
      case Operation::NeedLessEqual:
        is_held = a <= b;
        break;
      case Operation::NeedTrue:
        is_held = a != 0;
        break;
      case Operation::NeedLinear: {
        __int128 sum = linear->constant;
        for (const Term* const end = term + linear->terms; term != end; ++term)
          sum += static_cast<__int128>(term->coefficient) * slot[term->input];
        is_held = sym::holds(linear->kind, (sum > 0) - (sum < 0));
        ++linear;
        break;
      }
    }
    if (!is_sound) status = RunStatus::Overflow;
    if (!is_held) status = RunStatus::Fails;
    if (status != RunStatus::Holds) [[unlikely]]
      return {status, condition_of_[static_cast<size_t>(&instruction - code_.data())]};
  }
  return {};
}

}  // namespace oxy::sym
