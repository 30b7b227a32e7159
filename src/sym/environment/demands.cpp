#include "sym/environment/demands.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "sym/facts/facts.h"
#include "sym/facts/node_count.h"
#include "sym/facts/reduced.h"

namespace oxy::sym {

namespace {

constexpr int kMaxPasses = 4;
constexpr size_t kMaxOthers = 24;  // that one demand is compared with

size_t node_count(const Condition& condition) {
  size_t count = condition.kind() == ConditionKind::Relation ? node_count(condition.relation().value()) : 1;
  for (const Condition& part : condition.parts()) count += node_count(part);
  return count;
}

std::vector<int64_t> ids(const Condition& condition) {
  std::vector<int64_t> list;
  for (const Expr& v : variables(condition)) list.push_back(v.variable_id());
  return list;
}

bool is_remainder(const Expr& e) {
  if (e.kind() == Kind::Sum || e.kind() == Kind::Product)
    return std::ranges::any_of(e.operands(), is_remainder);
  return e.kind() == Kind::Mod;
}

// Without parts of `and` that follow from the other parts, and parts of `or` that one of the others follows
// from.
Condition without_idle_parts(const Condition& condition, const Facts& facts) {
  if (condition.kind() == ConditionKind::Relation) return condition;
  const bool is_all = condition.kind() == ConditionKind::All;
  std::vector<Condition> parts;
  for (const Condition& part : condition.parts()) parts.push_back(without_idle_parts(part, facts));
  for (size_t i = 0; i < parts.size() && parts.size() > 1;) {
    std::vector<Condition> others = parts;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    const Condition rest = is_all ? Condition::all(others) : Condition::any(others);
    Facts with = facts;
    with.add(is_all ? rest : parts[i]);
    if (with.answer(is_all ? parts[i] : rest) == Answer::True)
      parts = std::move(others);
    else
      ++i;
  }
  return is_all ? Condition::all(std::move(parts)) : Condition::any(std::move(parts));
}

int strength(const Condition& condition) {
  if (condition.kind() != ConditionKind::Relation) return 3;
  switch (condition.relation().kind()) {
    case RelationKind::Zero:
      return 0;
    case RelationKind::NonNegative:
      return 1;
    default:
      return 2;
  }
}

// With what else holds: what is not zero and cannot be negative is at least one, what is at least zero and at
// most zero is zero.
Condition with_others(const Condition& condition, const Facts& others) {
  if (condition.kind() != ConditionKind::Relation) return condition;
  const Expr& value = condition.relation().value();
  const auto is_nonnegative = [&](const Expr& e) { return others.answer(less_equal(0, e)) == Answer::True; };
  switch (condition.relation().kind()) {
    case RelationKind::NonZero:
      if (is_remainder(value)) return condition;  // `x % 8 != 0` reads better than `1 <= x % 8`
      if (is_nonnegative(value)) return less_equal(1, value);
      if (is_nonnegative(-value)) return less_equal(value, -1);
      return condition;
    case RelationKind::NonNegative:
      return is_nonnegative(-value) ? equal(value, 0) : condition;
    default:
      return condition;
  }
}

class Minimizer {
 public:
  explicit Minimizer(std::vector<Demand> demands) {
    for (Demand& demand : demands) add(reduced(demand.condition), std::move(demand.asked_at));
  }

  std::vector<Demand> run() {
    for (int pass = 0; pass < kMaxPasses; ++pass) {
      bool is_changed = false;
      for (size_t i = 0; i < demands_.size();) {
        const Facts others = facts_beside(i);
        if (others.answer(demands_[i].condition) == Answer::True) {
          drop(i);
          is_changed = true;
        } else {
          is_changed |= rewrite(i, others);
          ++i;
        }
      }
      if (!is_changed) break;
    }
    join_bounds();
    return std::move(demands_);
  }

 private:
  // The conditions have the variables of their first mention, whose ranges are the natural ones.
  void add(const Condition& condition, std::vector<std::string> asked_at) {
    if (condition.kind() == ConditionKind::All) {
      for (const Condition& part : condition.parts()) add(part, asked_at);
      return;
    }
    for (const Expr& v : variables(condition)) natural_.try_emplace(v.variable_id(), v);
    demands_.push_back({condition, std::move(asked_at)});
    ids_.push_back(ids(condition));
  }

  // The nearest of those that share variables with it, directly or through others.
  Facts facts_beside(size_t i) const {
    std::set<int64_t> reached(ids_[i].begin(), ids_[i].end());
    std::vector<size_t> others;
    for (bool is_growing = true; is_growing;) {
      std::set<int64_t> next = reached;
      is_growing = false;
      for (size_t k = 0; k < demands_.size() && others.size() < kMaxOthers; ++k) {
        const bool is_near = std::ranges::any_of(ids_[k], [&](int64_t id) { return reached.contains(id); });
        if (k == i || !is_near || std::ranges::find(others, k) != others.end()) continue;
        others.push_back(k);
        next.insert(ids_[k].begin(), ids_[k].end());
        is_growing = true;
      }
      reached = std::move(next);
    }
    Facts facts;
    for (const int64_t id : reached) facts.declare(natural_.at(id));
    std::vector<Condition> conditions;
    for (const size_t k : others) conditions.push_back(demands_[k].condition);
    facts.add(Condition::all(std::move(conditions)));
    return facts;
  }

  void drop(size_t i) {
    for (size_t k = 0; k < demands_.size(); ++k)
      if (k != i && demands_[k].condition == demands_[i].condition)
        for (const std::string& line : demands_[i].asked_at)
          if (std::ranges::find(demands_[k].asked_at, line) == demands_[k].asked_at.end())
            demands_[k].asked_at.push_back(line);
    demands_.erase(demands_.begin() + static_cast<std::ptrdiff_t>(i));
    ids_.erase(ids_.begin() + static_cast<std::ptrdiff_t>(i));
  }

  bool rewrite(size_t i, const Facts& others) {
    const Condition& old = demands_[i].condition;
    const Condition simplified =
        reduced(with_others(without_idle_parts(others.simplify(old), others), others));
    if (simplified.constant()) return false;
    const Condition found = map(simplified, [this](const Expr& e) { return with_natural_ranges(e); });
    if (found == old || found.constant()) return false;
    // Equalities say most, inequations least.
    const auto order = [](const Condition& c) { return std::tuple(strength(c), node_count(c), ids(c)); };
    if (order(found) >= order(old)) return false;
    demands_[i].condition = found;
    ids_[i] = ids(found);
    return true;
  }

  Expr with_natural_ranges(const Expr& e) const {
    return substitute(e, [this](int64_t id) -> std::optional<Expr> {
      const auto found = natural_.find(id);
      return found == natural_.end() ? std::nullopt : std::optional<Expr>(found->second);
    });
  }

  // `2 <= e` and `e <= 512` become one demand, where the first of them stood.
  void join_bounds() {
    for (size_t i = 0; i < demands_.size(); ++i) {
      if (!is_bound(demands_[i].condition)) continue;
      for (size_t k = i + 1; k < demands_.size(); ++k) {
        if (!is_bound(demands_[k].condition)) continue;
        const Comparands a = comparands(demands_[i].condition.relation());
        const Comparands b = comparands(demands_[k].condition.relation());
        const bool a_is_low = a.left.is_constant() && b.right.is_constant() && a.right == b.left;
        const bool b_is_low = b.left.is_constant() && a.right.is_constant() && b.right == a.left;
        if (!a_is_low && !b_is_low) continue;
        const size_t low = a_is_low ? i : k;
        const size_t high = a_is_low ? k : i;
        Demand both{Condition::all({demands_[low].condition, demands_[high].condition}),
                    demands_[low].asked_at};
        for (const std::string& line : demands_[high].asked_at)
          if (std::ranges::find(both.asked_at, line) == both.asked_at.end()) both.asked_at.push_back(line);
        demands_[i] = std::move(both);
        demands_.erase(demands_.begin() + static_cast<std::ptrdiff_t>(k));
        break;
      }
    }
  }

  static bool is_bound(const Condition& condition) {
    return condition.kind() == ConditionKind::Relation &&
           condition.relation().kind() == RelationKind::NonNegative;
  }

  std::vector<Demand> demands_;
  std::vector<std::vector<int64_t>> ids_;  // of each demand's variables, in order
  std::map<int64_t, Expr> natural_;        // the variables, by id
};

}  // namespace

std::vector<Demand> minimal(std::vector<Demand> demands) {
  return Minimizer(std::move(demands)).run();
}

}  // namespace oxy::sym
