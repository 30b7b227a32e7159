#include "sym/facts/prover.h"

#include <algorithm>
#include <numeric>

#include "sym/node.h"

namespace oxy::sym {

namespace {

constexpr int kMaxDepth = 6;
constexpr int kMaxSteps = 200;
constexpr int64_t kMaxCoefficient = int64_t{1} << 24;
constexpr int64_t kMaxConstant = int64_t{1} << 56;

// What is so of a factor is so of the product, times the other factors, if these are not negative.
void add_lemmas_of_product(const Expr& e, std::vector<Expr>& list) {
  const std::span<const Expr> given = monomial(e).factors;
  const std::vector<Expr> factors(given.begin(), given.end());
  if (factors.size() < 2 || std::ranges::any_of(factors, [](const Expr& f) { return f.range().low < 0; }))
    return;
  const Expr whole = product(factors);
  for (size_t i = 0; i < factors.size(); ++i) {
    const Expr& factor = factors[i];
    std::vector<Expr> others = factors;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    const Expr rest = product(others);
    const int64_t least = factor.range().low;
    if (least >= 1 && least <= kMaxCoefficient) list.push_back(whole - least * rest);
    if (factor.kind() == Kind::Min)
      for (const Expr& operand : factor.operands()) list.push_back(rest * operand - whole);
    if (factor.kind() == Kind::Max)
      for (const Expr& operand : factor.operands()) list.push_back(whole - rest * operand);
  }
}

// What is so of a minimum, a maximum, a quotient and a product whatever their operands are.
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
    case Kind::Product:
      add_lemmas_of_product(e, list);
      break;
    default:
      break;
  }
  for (const Expr& operand : operands) add_lemmas(operand, list);
}

bool has_lemmas(const Expr& e) {
  const Kind kind = e.kind();
  if (kind == Kind::Min || kind == Kind::Max || kind == Kind::FloorDiv || kind == Kind::Mod) return true;
  if (kind == Kind::Product && monomial(e).factors.size() > 1) return true;
  return std::ranges::any_of(e.operands(), has_lemmas);
}

// The form of e with atoms from `atom_id`; nothing if its numbers are too large to compute with.
template <class AtomId>
std::optional<LinearForm> linear_form(const Expr& e, const AtomId& atom_id) {
  LinearForm form;
  for (const Expr& term : terms(e)) {
    const Monomial m = monomial(term);
    if (m.factors.empty()) {
      if (std::abs(m.coefficient) > kMaxConstant) return std::nullopt;
      form.constant = m.coefficient;
      continue;
    }
    if (std::abs(m.coefficient) > kMaxCoefficient) return std::nullopt;
    form.terms.push_back({atom_id(m.coefficient == 1 ? term : make_term(1, m.factors)), m.coefficient});
  }
  std::ranges::sort(form.terms, {}, &LinearForm::Term::atom);
  return form;
}

// a*x - b*y; nothing if the numbers become too large.
std::optional<LinearForm> difference(int64_t a, const LinearForm& x, int64_t b, const LinearForm& y) {
  LinearForm result;
  const __int128 constant = static_cast<__int128>(a) * x.constant - static_cast<__int128>(b) * y.constant;
  if (constant > kMaxConstant || constant < -kMaxConstant) return std::nullopt;
  result.constant = static_cast<int64_t>(constant);
  result.terms.reserve(x.terms.size() + y.terms.size());
  for (size_t i = 0, k = 0; i < x.terms.size() || k < y.terms.size();) {
    const bool from_x = k == y.terms.size() || (i < x.terms.size() && x.terms[i].atom <= y.terms[k].atom);
    const int32_t atom = from_x ? x.terms[i].atom : y.terms[k].atom;
    int64_t coefficient = from_x ? a * x.terms[i++].coefficient : 0;
    if (k < y.terms.size() && y.terms[k].atom == atom) coefficient -= b * y.terms[k++].coefficient;
    if (std::abs(coefficient) > kMaxCoefficient) return std::nullopt;
    if (coefficient != 0) result.terms.push_back({atom, coefficient});
  }
  return result;
}

}  // namespace

// One question: the known facts, and the atoms and lemmas of the expression that it is about.
class Proof {
 public:
  explicit Proof(const Inequalities& known) : known_(known) {}

  bool proves(const Expr& e) {
    const auto form = linear_form(e, [this](const Expr& atom) { return atom_id(atom); });
    if (!form) return false;
    std::vector<Expr> lemmas;
    add_lemmas(e, lemmas);
    for (const Expr& lemma : lemmas)
      if (auto fact = linear_form(lemma, [this](const Expr& atom) { return atom_id(atom); }))
        lemmas_.push_back(std::move(*fact));
    return proves(*form, kMaxDepth);
  }

 private:
  int32_t atom_id(const Expr& atom) {
    const Range range = atom.range();
    if (const auto found = known_.atom_ids_.find(atom); found != known_.atom_ids_.end()) {
      // The question may be about a smaller range than the facts.
      narrowed_.emplace_back(found->second, range);
      return found->second;
    }
    const auto found = std::ranges::find(own_atoms_, atom);
    const auto position = static_cast<int32_t>(found - own_atoms_.begin());
    if (found == own_atoms_.end()) {
      own_atoms_.push_back(atom);
      own_ranges_.push_back(range);
    }
    return static_cast<int32_t>(known_.atoms_.size()) + position;
  }

  Range range_of(int32_t atom) const {
    const auto position = static_cast<size_t>(atom);
    if (position >= known_.atoms_.size()) return own_ranges_[position - known_.atoms_.size()];
    Range range = known_.atoms_[position].range;
    for (const auto& [narrowed, own] : narrowed_)
      if (narrowed == atom) range = {std::max(range.low, own.low), std::min(range.high, own.high)};
    return range;
  }

  // The least value of a term, if there is one.
  std::optional<__int128> least(const LinearForm::Term& term) const {
    const Range range = range_of(term.atom);
    const int64_t bound = term.coefficient > 0 ? range.low : range.high;
    if (bound <= -kMaxInt || bound >= kMaxInt) return std::nullopt;
    return static_cast<__int128>(bound) * term.coefficient;
  }

  bool proves(const LinearForm& e, int depth) {
    __int128 low = e.constant;
    const LinearForm::Term* unbounded = nullptr;
    for (const LinearForm::Term& term : e.terms) {
      const auto bound = least(term);
      if (bound)
        low += *bound;
      else if (!unbounded)
        unbounded = &term;
    }
    if (!unbounded && low >= 0) return true;
    if (depth == 0 || --steps_ < 0) return false;
    // A term without a least value has to go, through whichever fact.
    if (unbounded) return proves_without(e, *unbounded, depth);
    return std::ranges::any_of(e.terms,
                               [&](const LinearForm::Term& term) { return proves_without(e, term, depth); });
  }

  bool proves_without(const LinearForm& e, const LinearForm::Term& term, int depth) {
    const auto position = static_cast<size_t>(term.atom);
    if (position < known_.atoms_.size()) {
      const Inequalities::Atom& atom = known_.atoms_[position];
      for (const int32_t fact : term.coefficient > 0 ? atom.facts_with_positive : atom.facts_with_negative)
        if (proves_by(e, term, known_.facts_[static_cast<size_t>(fact)], depth)) return true;
    }
    return std::ranges::any_of(lemmas_,
                               [&](const LinearForm& lemma) { return proves_by(e, term, lemma, depth); });
  }

  bool proves_by(const LinearForm& e, const LinearForm::Term& term, const LinearForm& fact, int depth) {
    const auto found = std::ranges::find(fact.terms, term.atom, &LinearForm::Term::atom);
    if (found == fact.terms.end() || (found->coefficient < 0) != (term.coefficient < 0)) return false;
    const int64_t shared = std::gcd(found->coefficient, term.coefficient);
    const int64_t times = std::abs(found->coefficient / shared);
    auto rest = difference(times, e, std::abs(term.coefficient / shared), fact);
    if (!rest) return false;
    rest->constant += times - 1;  // an integer is not negative if its multiple is more than -times
    return proves(*rest, depth - 1);
  }

  const Inequalities& known_;
  std::vector<Expr> own_atoms_;
  std::vector<Range> own_ranges_;
  std::vector<std::pair<int32_t, Range>> narrowed_;
  std::vector<LinearForm> lemmas_;
  int steps_ = kMaxSteps;
};

void Inequalities::add(const Expr& nonnegative) {
  auto form = linear_form(nonnegative, [this](const Expr& atom) {
    const auto [found, is_new] = atom_ids_.try_emplace(atom, static_cast<int32_t>(atoms_.size()));
    if (is_new) atoms_.push_back({.range = atom.range()});
    return found->second;
  });
  if (!form) return;
  for (const LinearForm::Term& term : form->terms) {
    Atom& atom = atoms_[static_cast<size_t>(term.atom)];
    (term.coefficient > 0 ? atom.facts_with_positive : atom.facts_with_negative)
        .push_back(static_cast<int32_t>(facts_.size()));
  }
  facts_.push_back(std::move(*form));
}

bool Inequalities::prove_nonnegative(const Expr& e) const {
  const Range range = e.range();
  if (range.low >= 0) return true;
  if (range.high < 0 || e.is_constant() || (facts_.empty() && !has_lemmas(e))) return false;
  return Proof(*this).proves(e);
}

}  // namespace oxy::sym
