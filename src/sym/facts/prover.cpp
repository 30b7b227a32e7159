#include "sym/facts/prover.h"

#include <algorithm>
#include <numeric>

#include "sym/node.h"

namespace oxy::sym {

namespace {

constexpr int kMaxDepth = 5;
constexpr int kMaxSteps = 120;
constexpr int64_t kMaxCoefficient = int64_t{1} << 24;

bool is_small(const Expr& e) {
  return std::ranges::all_of(terms(e), [](const Expr& term) {
    return std::abs(monomial(term).coefficient) < kMaxCoefficient || term.is_constant();
  });
}

// What is so of a minimum, a maximum and a quotient whatever their operands are.
void add_lemmas(const Expr& e, std::vector<Expr>& list) {
  const std::span<const Expr> operands = e.operands();
  switch (e.kind()) {
    case Kind::Min:
      list.push_back(operands[0] - e);
      list.push_back(operands[1] - e);
      break;
    case Kind::Max:
      list.push_back(e - operands[0]);
      list.push_back(e - operands[1]);
      break;
    case Kind::FloorDiv:
      if (const auto n = operands[1].as_constant(); n && *n > 0) {
        list.push_back(operands[0] - *n * e);
        list.push_back(*n * e + (*n - 1) - operands[0]);
      }
      break;
    case Kind::Mod:
      if (operands[1].range().low > 0) {
        list.push_back(operands[1] - 1 - e);
        if (operands[0].range().low >= 0) list.push_back(operands[0] - e);
      }
      break;
    default:
      break;
  }
  for (const Expr& operand : operands) add_lemmas(operand, list);
}

class Search {
 public:
  explicit Search(std::vector<Expr> facts) : facts_(std::move(facts)) {}

  bool proves(const Expr& e, int depth) {
    if (e.range().low >= 0) return true;
    if (depth == 0 || --steps_ < 0 || !is_small(e)) return false;
    for (const Expr& term : terms(e)) {
      if (term.range().low >= 0 || term.is_constant()) continue;
      for (const Expr& fact : facts_)
        if (const auto rest = without(e, term, fact); rest && proves(*rest, depth - 1)) return true;
    }
    return false;
  }

 private:
  // a*e - b*fact with a, b > 0 and without the term; nothing if there are none.
  static std::optional<Expr> without(const Expr& e, const Expr& term, const Expr& fact) {
    const int64_t wanted = monomial(term).coefficient;
    for (const Expr& other : terms(fact)) {
      const int64_t there = monomial(other).coefficient;
      if (other.is_constant() || compare_terms(term, other) != 0) continue;
      if ((wanted < 0) != (there < 0)) return std::nullopt;
      const int64_t shared = std::gcd(wanted, there);
      return std::abs(there / shared) * e - std::abs(wanted / shared) * fact;
    }
    return std::nullopt;
  }

  std::vector<Expr> facts_;
  int steps_ = kMaxSteps;
};

}  // namespace

bool follows_nonnegative(const Inequalities& known, const Expr& e) {
  if (e.range().low >= 0) return true;
  std::vector<Expr> facts = known.nonnegative;
  for (const Expr& zero : known.zero) facts.insert(facts.end(), {zero, -zero});
  add_lemmas(e, facts);
  std::erase_if(facts, [](const Expr& fact) { return !is_small(fact); });
  return !facts.empty() && Search(std::move(facts)).proves(e, kMaxDepth);
}

}  // namespace oxy::sym
