#include "sym/facts/variable_facts.h"

#include <algorithm>
#include <numeric>

#include "sym/node.h"

namespace oxy::sym {

namespace {

// Above the ids of all others.
constexpr int64_t kProofVariables = int64_t{1} << 60;

int64_t proof_variable(int64_t id, Congruence congruence) {
  return congruence.modulus == 1 ? id : id + kProofVariables;
}

bool has_low(Range r) {
  return r.low > -kMaxInt;
}
bool has_high(Range r) {
  return r.high < kMaxInt;
}

// The range of k for x = m*k + r.
Range quotients(Range range, Congruence c) {
  if (has_low(range)) range.low = -floor_divide(-(range.low - c.residue), c.modulus);
  if (has_high(range)) range.high = floor_divide(range.high - c.residue, c.modulus);
  return range;
}

int64_t within(__int128 value) {
  if (value >= kMaxInt) return kMaxInt;
  return value <= -kMaxInt ? kMinInt : static_cast<int64_t>(value);
}

}  // namespace

Range narrowed(Range range, Congruence c) {
  const Range k = quotients(range, c);
  if (has_low(range)) range.low = within(static_cast<__int128>(k.low) * c.modulus + c.residue);
  if (has_high(range)) range.high = within(static_cast<__int128>(k.high) * c.modulus + c.residue);
  return range;
}

void VariableFacts::declare(const Expr& variable, Availability availability, bool is_size) {
  Known known{.variable = variable,
              .range = variable.range(),
              .is_late = availability == Availability::Late,
              .is_size = is_size};
  refresh(known_.emplace(variable.variable_id(), std::move(known)).first->second);
}

bool VariableFacts::is_late(int64_t id) const {
  const auto found = known_.find(id);
  return found != known_.end() && found->second.is_late;
}

int64_t VariableFacts::variable_of(int64_t proof_variable) const {
  return proof_variable >= kProofVariables ? proof_variable - kProofVariables : proof_variable;
}

std::vector<Multiple> VariableFacts::multiples() const {
  std::vector<Multiple> found;
  for (const auto& [id, known] : known_)
    if (!known.value && !known.is_late && known.congruence.modulus > 1 && known.congruence.residue == 0)
      found.push_back({known.variable, known.congruence.modulus});
  return found;
}

Expr VariableFacts::written_with(const Known& known, Range range) {
  const int64_t id = known.variable.variable_id();
  const Congruence c = known.congruence;
  Expr k = Expr::variable(known.variable.variable_name(), proof_variable(id, c), quotients(range, c));
  return c.modulus * k + c.residue;
}

void VariableFacts::refresh(Known& known) {
  const int64_t id = known.variable.variable_id();
  if (!known.value) {
    known.variable = Expr::variable(known.variable.variable_name(), id, known.range);
    known.proof_form = written_with(known, known.range);
  }
  for (auto& [other_id, other] : known_)
    if (other.value &&
        (other_id == id || (variable_mask(*other.value) & variable_mask(known.variable)) != 0)) {
      other.value = replaced(*other.value);
      other.proof_form = proof_form(*other.value);
    }
}

Expr VariableFacts::replaced(const Expr& e) const {
  return substitute(e, [this](int64_t id) -> std::optional<Expr> {
    const auto found = known_.find(id);
    if (found == known_.end()) return std::nullopt;
    return found->second.value ? *found->second.value : found->second.variable;
  });
}

Expr VariableFacts::proof_form(const Expr& e) const {
  return substitute(e, [this](int64_t id) -> std::optional<Expr> {
    const auto found = known_.find(id);
    if (found == known_.end()) return std::nullopt;
    return found->second.proof_form;
  });
}

Expr VariableFacts::proof_form_of_large_sizes(const Expr& e) const {
  return substitute(replaced(e), [this](int64_t id) -> std::optional<Expr> {
    const auto found = known_.find(id);
    if (found == known_.end()) return std::nullopt;
    const Known& known = found->second;
    if (!known.is_size || known.range.high < 2) return known.proof_form;
    return written_with(known, {std::max<int64_t>(known.range.low, 2), known.range.high});
  });
}

Expr VariableFacts::from_proof_form(const Expr& e) const {
  const auto is_quotient = [](const Expr& factor) {
    return factor.kind() == Kind::Variable && factor.variable_id() >= kProofVariables;
  };
  const auto variable = [this](int64_t id) -> std::optional<Expr> {
    const auto found = known_.find(variable_of(id));
    if (found == known_.end()) return std::nullopt;
    const Known& known = found->second;
    if (id < kProofVariables) return known.variable;
    return floordiv(known.variable, Expr(known.congruence.modulus));
  };
  std::vector<Expr> list;
  for (const Expr& term : terms(e)) {
    const Monomial m = monomial(term);
    Expr result;
    if (std::ranges::count_if(m.factors, is_quotient) == 1) {
      // c*k = c/g * (x // (m/g) - r // (m/g)) with g = gcd(c, m), because x // (m/g) = g*k + r // (m/g).
      const size_t position =
          static_cast<size_t>(std::ranges::find_if(m.factors, is_quotient) - m.factors.begin());
      const Known& known = known_.at(variable_of(m.factors[position].variable_id()));
      const int64_t shared = std::gcd(m.coefficient, known.congruence.modulus);
      const int64_t divisor = known.congruence.modulus / shared;
      std::vector<Expr> others(m.factors.begin(), m.factors.end());
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(position));
      result = substitute(make_term(m.coefficient / shared, others), variable) *
               (floordiv(known.variable, Expr(divisor)) - known.congruence.residue / divisor);
    } else {
      result = substitute(term, variable);
    }
    for (const Expr& t : terms(result)) list.push_back(t);
  }
  return sum_of(std::move(list));
}

bool VariableFacts::narrow(int64_t proof_variable, Range range) {
  Known& known = of_proof_variable(proof_variable);
  if (proof_variable >= kProofVariables) {
    const Congruence c = known.congruence;
    if (has_low(range)) range.low = within(static_cast<__int128>(range.low) * c.modulus + c.residue);
    if (has_high(range)) range.high = within(static_cast<__int128>(range.high) * c.modulus + c.residue);
  }
  return narrow_variable(known, range);
}

bool VariableFacts::narrow_variable(Known& known, Range range) {
  range = {std::max(range.low, known.range.low), std::min(range.high, known.range.high)};
  range = narrowed(range, known.congruence);
  if (range == known.range) return false;
  if (range.low > range.high) {
    is_contradictory_ = true;
    return false;
  }
  known.range = range;
  if (range.low == range.high && has_low(range) && has_high(range)) known.value = Expr(range.low);
  refresh(known);
  return true;
}

bool VariableFacts::set_remainder(int64_t proof_variable, Congruence congruence) {
  Known& known = of_proof_variable(proof_variable);
  const Congruence outer = known.congruence;
  const __int128 modulus = static_cast<__int128>(outer.modulus) * congruence.modulus;
  if (congruence.modulus == 1 || modulus > (int64_t{1} << 31)) return false;
  // x = m*k + r and k = n*j + q make x = m*n*j + m*q + r.
  known.congruence = {static_cast<int64_t>(modulus), outer.modulus * congruence.residue + outer.residue};
  if (!narrow_variable(known, known.range)) refresh(known);
  return true;
}

void VariableFacts::replace(int64_t proof_variable, const Expr& value) {
  const int64_t id = variable_of(proof_variable);
  Known& known = known_.at(id);
  const bool is_quotient = proof_variable >= kProofVariables;
  known.value =
      from_proof_form(is_quotient ? known.congruence.modulus * value + known.congruence.residue : value);
  replaced_.push_back({*known.value, known.range, known.congruence});
  refresh(known);
}

}  // namespace oxy::sym
