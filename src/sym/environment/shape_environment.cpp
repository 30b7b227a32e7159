#include "sym/environment/shape_environment.h"

#include <fmt/format.h>

#include <algorithm>

namespace oxy::sym {

namespace {

bool has_bounds(const Range& range) {
  return !(range == Range{});
}

Condition within(const Expr& e, const Range& range) {
  return Condition::all({range.low > -kMaxInt ? less_equal(range.low, e) : Condition(true),
                         range.high < kMaxInt ? less_equal(e, range.high) : Condition(true)});
}

Range intersection(const Range& a, const Range& b) {
  return {std::max(a.low, b.low), std::min(a.high, b.high)};
}

std::string said_of(const Mark& mark, const std::string& otherwise) {
  return mark.said.empty() ? otherwise : fmt::format("is {}", mark.said);
}

std::string advice_for(const Mark& mark) {
  return mark.said.empty() ? "oxyfuel.maybe_mark_dynamic, or a mark with another range, allows it"
                           : "Dim.AUTO, or a dimension with other bounds, allows it";
}

std::string located(const Locate& where) {
  return where ? where() : "";
}

}  // namespace

Expr ShapeEnvironment::add_symbol(SymbolKind kind, Origin origin, std::optional<int64_t> hint,
                                  const Mark& mark, Range range) {
  const int64_t id = first_id_ + static_cast<int64_t>(symbols_.size());
  const Expr variable = Expr::variable(fmt::format("{}{}", hint ? "s" : "u", id), id, range);
  const bool is_size = kind != SymbolKind::Integer && kind != SymbolKind::Data;
  facts_.declare(variable, hint ? Availability::Early : Availability::Late, is_size);
  symbols_.push_back({SymbolId{id}, kind, std::move(origin), hint, mark, variable});
  return variable;
}

Expr ShapeEnvironment::admit(SymbolKind kind, Origin origin, int64_t value, const Mark& mark) {
  if (value >= kMaxInt || value <= -kMaxInt)
    throw Unsupported(fmt::format("{} is {}: numbers of more than 61 bits are no sizes", origin.name, value));
  const bool is_unbacked = mark.kind == MarkKind::Unbacked;
  const std::string made_at = origin.made_at;
  Expr variable = add_symbol(kind, std::move(origin), is_unbacked ? std::nullopt : std::optional(value), mark,
                             range_of(kind));
  if (mark.kind == MarkKind::Static) {
    demand(equal(variable, value), made_at);
    return value;
  }
  if (!has_bounds(mark.range)) return variable;
  const Condition marked = within(variable, mark.range);
  const Symbol& symbol = symbols_.back();
  if (mark.range.low <= value && value <= mark.range.high)
    promise(marked, made_at);
  else
    violations_.push_back({symbol.id,
                           fmt::format("{} is {}, but {} to be {}", symbol.origin.name, value,
                                       said_of(mark, "is marked"), text(marked)),
                           "", advice_for(mark)});
  return variable;
}

Expr ShapeEnvironment::data_dependent(Origin origin, Range range) {
  return add_symbol(SymbolKind::Data, std::move(origin), std::nullopt, {}, range);
}

const Symbol* ShapeEnvironment::find(int64_t variable_id) const {
  const int64_t position = variable_id - first_id_;
  const bool is_own = position >= 0 && position < static_cast<int64_t>(symbols_.size());
  return is_own ? &symbols_[static_cast<size_t>(position)] : nullptr;
}

const Symbol& ShapeEnvironment::symbol(SymbolId id) const {
  const Symbol* found = find(static_cast<int64_t>(id));
  oxy::check(found != nullptr, "a symbol of another environment");
  return *found;
}

std::string ShapeEnvironment::name(int64_t variable_id) const {
  const Symbol* symbol = find(variable_id);
  return symbol ? symbol->origin.name : fmt::format("v{}", variable_id);
}

std::string ShapeEnvironment::text(const Expr& e) const {
  return sym::text(e, [this](int64_t id) { return name(id); });
}
std::string ShapeEnvironment::text(const Condition& condition) const {
  return sym::text(condition, [this](int64_t id) { return name(id); });
}

Condition ShapeEnvironment::plain(const Condition& condition) const {
  return map(condition, [this](const Expr& e) {
    return substitute(e, [this](int64_t id) -> std::optional<Expr> {
      const Symbol* symbol = find(id);
      return symbol ? std::optional(symbol->variable) : std::nullopt;
    });
  });
}

std::optional<int64_t> ShapeEnvironment::hint(const Expr& e) const {
  for (const Expr& v : variables(e))
    if (const Symbol* symbol = find(v.variable_id()); !symbol || !symbol->hint) return std::nullopt;
  try {
    return evaluate(e, [this](int64_t id) { return find(id)->hint; });
  } catch (const ArithmeticError&) {
    return std::nullopt;
  }
}

std::optional<bool> ShapeEnvironment::hint(const Condition& condition) const {
  if (condition.kind() == ConditionKind::Relation) {
    const std::optional<int64_t> value = hint(condition.relation().value());
    return value ? std::optional(holds(condition.relation().kind(), *value)) : std::nullopt;
  }
  const bool decisive = condition.kind() == ConditionKind::Any;
  bool is_known = true;
  for (const Condition& part : condition.parts()) {
    const std::optional<bool> value = hint(part);
    if (value == decisive) return decisive;
    is_known = is_known && value.has_value();
  }
  return is_known ? std::optional(!decisive) : std::nullopt;
}

const Symbol* ShapeEnvironment::symbol_without_value(const Condition& condition) const {
  for (const Expr& v : variables(condition))
    if (const Symbol* symbol = find(v.variable_id()); symbol && !symbol->hint) return symbol;
  return nullptr;
}

Condition ShapeEnvironment::decisive_part(const Condition& condition, bool value) const {
  if (!symbol_without_value(condition)) return value ? condition : !condition;
  // One part decides: the others may be what they like.
  for (const Condition& part : condition.parts())
    if (hint(part) == value) return decisive_part(part, value);
  throw InternalError("a condition without a value is to be decided");
}

Answer ShapeEnvironment::answer(const Condition& question, Assume assume) const {
  return facts_.answer(question, assume);
}

bool ShapeEnvironment::depends_on_data(const Condition& question) const {
  if (answer(question) != Answer::Unknown) return false;
  const Condition asked = facts_.simplify(question);
  return !hint(asked) && symbol_without_value(asked);
}

bool ShapeEnvironment::decide(const Condition& question, const Locate& where) {
  const Answer known = answer(question);
  if (known != Answer::Unknown) return known == Answer::True;
  // Written in terms of symbols that have values, if they are known to be equal.
  const Condition asked = symbol_without_value(question) ? facts_.simplify(question) : question;
  if (const std::optional<bool> value = hint(asked)) {
    demand(decisive_part(asked, *value), located(where));
    return *value;
  }
  if (const Symbol* symbol = symbol_without_value(asked)) {
    refuse(*symbol, text(question), where,
           fmt::format("torch._check({}) or torch._check({}) decides it", text(question), text(!question)));
  }
  throw ArithmeticError(fmt::format("{} has no answer for the values at hand", text(question)));
}

void ShapeEnvironment::refuse(const Symbol& symbol, const std::string& question, const Locate& where,
                              const std::string& check) {
  std::string line = located(where);
  if (symbol.kind != SymbolKind::Data)
    violations_.push_back(
        {symbol.id,
         fmt::format("{} is marked unbacked, but the program needs to know {}", symbol.origin.name, question),
         line, check + "; oxyfuel.mark_dynamic lets the size at hand decide"});
  throw DataDependence(symbol, question, std::move(line), check);
}

bool ShapeEnvironment::decide_general_or(const Condition& question, bool otherwise, const Locate& where) {
  const bool is_open = answer(question, Assume::LargeSizes) == Answer::Unknown && depends_on_data(question);
  return is_open ? otherwise : decide_general(question, where);
}

std::optional<bool> ShapeEnvironment::general_answer(const Condition& question) const {
  return certain(answer(question, Assume::LargeSizes));
}

bool ShapeEnvironment::decide_general(const Condition& question, const Locate& where) {
  const auto general = general_answer(question);
  if (general && hint(question).value_or(*general) == *general) return *general;
  return decide(question, where);
}

bool ShapeEnvironment::decide_or_default(const Condition& question, bool otherwise) const {
  const Answer known = answer(question);
  return known == Answer::Unknown ? otherwise : known == Answer::True;
}

std::optional<bool> ShapeEnvironment::likely(const Condition& question) const {
  if (const auto general = general_answer(question)) return general;
  // Numbers that only data tell are not negative, or else neither 0 nor 1. So are expressions that such a
  // number is known to be equal to (the last of the sizes whose sum is known).
  std::vector<Expr> numbers;
  const std::vector<Expr> asked = variables(question);
  for (const Symbol& symbol : symbols_) {
    if (symbol.hint) continue;
    const Expr now = simplify(symbol.variable);
    const std::vector<Expr> of = variables(now);
    const auto is_asked = [&](const Expr& v) { return std::ranges::find(asked, v) != asked.end(); };
    if (!of.empty() && std::ranges::all_of(of, is_asked)) numbers.push_back(now);
  }
  for (const int64_t least : {0, 2}) {
    Facts with = facts_;
    for (const Expr& number : numbers) with.add(less_equal(least, number));
    for (const Assume assume : {Assume::Nothing, Assume::LargeSizes})
      if (const auto of_sizes = certain(with.answer(question, assume))) return of_sizes;
  }
  if (question.kind() != ConditionKind::Relation) return std::nullopt;
  switch (question.relation().kind()) {
    case RelationKind::Zero:
      return true;
    case RelationKind::NonZero:
      return false;
    case RelationKind::NonNegative:
      return std::nullopt;
  }
  return std::nullopt;
}

bool ShapeEnvironment::expect(const Condition& question, const Locate& where) {
  const Condition asked = facts_.simplify(question);
  if (depends_on_data(asked))
    if (const std::optional<bool> value = likely(asked))
      if (suppose(*value ? asked : !asked, where)) return *value;
  return decide(question, where);
}

bool ShapeEnvironment::expect_empty(const Expr& count, const Locate& where) {
  const Condition asked = facts_.simplify(equal(count, 0));
  if (depends_on_data(asked) && suppose(!asked, where)) return false;
  return decide(asked, where);
}

bool ShapeEnvironment::suppose(const Condition& condition, const Locate& where) {
  const size_t before = assertions_.size();
  if (check(condition, where) == Checked::Fails) return false;
  for (Assertion& assertion : std::span(assertions_).subspan(before)) assertion.is_likely = true;
  return true;
}

int64_t ShapeEnvironment::specialise(const Expr& e, const Locate& where) {
  const Expr simple = simplify(e);
  if (const auto value = simple.as_constant()) return *value;
  if (const auto value = hint(simple)) {
    decide(equal(simple, *value), where);
    return *value;
  }
  if (const Symbol* symbol = symbol_without_value(equal(simple, 0)))
    refuse(*symbol, "the number " + text(e), where,
           fmt::format("torch._check({} == ...) with the number decides it", text(e)));
  throw ArithmeticError(fmt::format("{} cannot be computed for the values at hand", text(e)));
}

Checked ShapeEnvironment::check(const Condition& condition, const Locate& where) {
  if (condition.kind() == ConditionKind::All && !condition.parts().empty()) {
    const ShapeEnvironment before = *this;
    Checked result = Checked::Holds;
    for (const Condition& part : condition.parts()) {
      const Checked one = check(part, where);
      if (one == Checked::Fails) {
        *this = before;
        return one;
      }
      if (one == Checked::Recorded) result = one;
    }
    return result;
  }
  const Answer known = answer(condition);
  if (known != Answer::Unknown) return known == Answer::True ? Checked::Holds : Checked::Fails;
  if (const std::optional<bool> value = hint(condition)) {
    if (!*value) return Checked::Fails;
    demand(decisive_part(condition, true), located(where));
    return Checked::Recorded;
  }
  Facts with = facts_;
  const Condition asserted = plain(condition);
  if (!with.add(asserted)) return Checked::Fails;
  facts_ = std::move(with);
  assertions_.push_back({asserted, located(where)});
  return Checked::Recorded;
}

Checked ShapeEnvironment::expect_size(const Expr& e, const Locate& where) {
  const Checked result = check(less_equal(0, e), where);
  const Expr simple = simplify(e);
  for (const Expr* expression : {&e, &simple})
    if (expression->kind() == Kind::Variable && find(expression->variable_id()))
      facts_.set_size(expression->variable_id());
  return result;
}

void ShapeEnvironment::assume(const Condition& condition) {
  Facts with = facts_;
  assumed_.push_back(plain(condition));
  if (with.add(assumed_.back())) facts_ = std::move(with);
}

bool ShapeEnvironment::is_of_graph(const std::vector<Expr>& variables) const {
  return std::ranges::any_of(variables, [&](const Expr& v) {
    const Symbol* symbol = find(v.variable_id());
    return symbol && symbol->kind == SymbolKind::Data;
  });
}

bool ShapeEnvironment::depends_on_graph(const Condition& condition) const {
  return is_of_graph(variables(condition));
}

bool ShapeEnvironment::depends_on_graph(const Expr& e) const {
  return is_of_graph(variables(e));
}

Facts ShapeEnvironment::facts_of_guards() const {
  if (assertions_.empty()) return facts_;
  Facts facts;
  for (const Symbol& symbol : symbols_)
    facts.declare(symbol.variable, symbol.hint ? Availability::Early : Availability::Late,
                  symbol.kind != SymbolKind::Integer && symbol.kind != SymbolKind::Data);
  const auto add = [&](const Condition& condition) {
    Facts with = facts;
    if (with.add(condition)) facts = std::move(with);
  };
  std::ranges::for_each(assumed_, add);
  for (const Demand& demand : demands_) add(demand.condition);
  for (const Assertion& assertion : assertions_)
    if (!depends_on_graph(assertion.condition)) add(assertion.condition);
  return facts;
}

void ShapeEnvironment::add_demand(const Condition& demanded, const std::string& where) {
  demands_.push_back({demanded, where.empty() ? std::vector<std::string>{} : std::vector{where}});
  // Values at hand may contradict what an assertion of the run will find: the guard stands nevertheless.
  Facts with = facts_;
  if (with.add(demanded)) facts_ = std::move(with);
}

void ShapeEnvironment::demand(const Condition& condition, const std::string& where) {
  const Condition demanded = plain(condition);
  add_demand(demanded, where);
  look_for_violations(demanded, where);
}

void ShapeEnvironment::specialise_small_expressions() {
  for (const Demand& demanded : guards()) {
    if (demanded.condition.kind() != ConditionKind::Relation) continue;
    const Relation& relation = demanded.condition.relation();
    if (relation.kind() != RelationKind::NonNegative) continue;
    const Expr e = simplify(1 - relation.value());
    if (e.is_constant() || e == simplify(variables(e).front()) || e.range().low < 0) continue;
    if (hint(e)) specialise(e, [&] { return demanded.asked_at.empty() ? "" : demanded.asked_at.front(); });
  }
}

void ShapeEnvironment::promise(const Condition& condition, const std::string& said_at) {
  if (answer(condition) == Answer::Unknown) add_demand(plain(condition), said_at);
}

void ShapeEnvironment::look_for_violations(const Condition& demanded, const std::string& where) {
  const std::vector<Expr> named = variables(demanded);
  for (const Symbol& symbol : symbols_) {
    if (symbol.mark.kind != MarkKind::Dynamic) continue;
    if (std::ranges::find(violations_, symbol.id, &MarkViolation::symbol) != violations_.end()) continue;
    const Expr now = simplify(symbol.variable);
    std::string what;
    if (const auto value = now.as_constant()) {
      if (symbol.mark.range.low == symbol.mark.range.high) continue;
      what = fmt::format("{} {}, but the program takes it for {}", symbol.origin.name,
                         said_of(symbol.mark, "is marked dynamic"), *value);
    } else if (has_bounds(symbol.mark.range)) {
      const Condition marked = within(symbol.variable, symbol.mark.range);
      const bool is_alone = named.size() == 1 && named[0] == symbol.variable && !(marked == demanded);
      const Range promised = intersection(symbol.mark.range, symbol.variable.range());
      const Range left = now.range();
      if (!is_alone && left.low <= promised.low && left.high >= promised.high) continue;
      what = fmt::format("{} {} to be {}, but the program needs {}", symbol.origin.name,
                         said_of(symbol.mark, "is marked"), text(marked), text(demanded));
    } else {
      continue;
    }
    violations_.push_back({symbol.id, std::move(what), where, advice_for(symbol.mark)});
  }
}

std::vector<std::string> ShapeEnvironment::promised_symbols() const {
  std::vector<std::string> texts;
  for (const Symbol& symbol : symbols_) {
    const bool is_unbacked = symbol.mark.kind == MarkKind::Unbacked;
    if (!is_unbacked && symbol.mark.kind != MarkKind::Dynamic) continue;
    texts.push_back(
        fmt::format("{} {}", symbol.origin.name,
                    said_of(symbol.mark, is_unbacked ? "is marked unbacked" : "is marked dynamic")));
  }
  return texts;
}

}  // namespace oxy::sym
