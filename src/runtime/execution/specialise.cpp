#include "runtime/execution/specialise.h"

#include <algorithm>
#include <set>

#include "sym/program/definitions.h"

namespace oxy::runtime {

namespace {

template <class Fn>
void for_each(std::vector<Expr>& list, const Fn& fn) {
  for (Expr& expr : list) fn(expr);
}

template <class Fn>
void for_each(plan::View& view, const Fn& fn) {
  for_each(view.sizes, fn);
  for_each(view.strides, fn);
  fn(view.offset);
}

template <class Fn>
void for_each(plan::CallArgument& argument, const Fn& fn) {
  if (auto* view = std::get_if<plan::View>(&argument)) for_each(*view, fn);
  if (auto* expr = std::get_if<Expr>(&argument)) fn(*expr);
  if (auto* list = std::get_if<std::vector<Expr>>(&argument)) for_each(*list, fn);
  if (auto* views = std::get_if<std::vector<std::optional<plan::View>>>(&argument))
    for (auto& view : *views)
      if (view) for_each(*view, fn);
}

template <class Fn>
void for_each_expression(plan::Plan& plan, const Fn& fn) {
  for (plan::Buffer& buffer : plan.buffers) {
    for_each(buffer.sizes, fn);
    for_each(buffer.strides, fn);
    fn(buffer.arena_offset);
  }
  for (plan::Step& step : plan.steps) {
    if (auto* launch = std::get_if<plan::Launch>(&step)) {
      for_each(launch->sizes, fn);
      if (auto* slices = std::get_if<plan::Slices>(&launch->shape))
        fn(slices->extent), fn(slices->scratch_bytes);
      if (auto* grid = std::get_if<plan::Grid>(&launch->shape))
        for (Expr& size : grid->size) fn(size);
    } else if (auto* call = std::get_if<plan::Call>(&step)) {
      for (plan::CallArgument& argument : call->args) for_each(argument, fn);
    }
  }
  for (plan::Output& output : plan.outputs) for_each(output.view, fn);
  for (plan::Mutation& mutation : plan.mutations) for_each(mutation.value, fn);
  fn(plan.arena_bytes);
  for_each(plan.positive, fn);
}

plan::Plan without_sources(const plan::Plan& plan) {
  plan::Plan copy = plan;
  copy.kernels.clear();
  copy.kernels.reserve(plan.kernels.size());
  for (const plan::Kernel& kernel : plan.kernels)
    copy.kernels.add({kernel.name, {}, kernel.language, kernel.device});
  return copy;
}

}  // namespace

SymbolicPlan::SymbolicPlan(const plan::Plan& plan) : plan_(without_sources(plan)) {
  std::vector<sym::Definition> definitions;
  std::set<int64_t> defined, used;
  const auto add_variables = [&](const Expr& expr) {
    for (const Expr& variable : sym::variables(expr)) used.insert(variable.variable_id());
  };
  for (const plan::Definition& definition : plan.definitions) {
    definitions.push_back({definition.variable.variable_id(), definition.value});
    defined.insert(definition.variable.variable_id());
    add_variables(definition.value);
  }
  plan_.definitions.clear();
  for_each_expression(plan_, [&](Expr& expr) {
    if (expr.is_constant()) return;
    add_variables(expr);
    number_of_.emplace(&expr, expressions_.size());
    places_.push_back(&expr);
    expressions_.push_back(expr);
  });
  std::ranges::set_difference(used, defined, std::back_inserter(symbols_));
  if (symbols_.empty()) return;
  program_ = sym::compile(symbols_, definitions, expressions_);
  work_.resize(program_.slots());
}

bool SymbolicPlan::evaluate(std::span<const int64_t> values) {
  is_written_ = false;
  if (!symbols_.empty() && program_.run(values, work_).status != sym::RunStatus::Holds)
    throw sym::ArithmeticError("a size of a plan does not fit in 64 bits");
  return std::ranges::all_of(plan_.positive, [this](const Expr& size) {
    return (is_fixed(size) ? size.constant() : value(expression_at(size))) > 0;
  });
}

const plan::Plan& SymbolicPlan::with_numbers() {
  if (!is_written_)
    for (size_t i = 0; i < places_.size(); ++i) *places_[i] = Expr(value(i));
  is_written_ = true;
  return plan_;
}

bool SymbolicPlan::are_alike(const Expr& a, const Expr& b) const {
  const auto first = number_of_.find(&a);
  const auto second = number_of_.find(&b);
  if (first == number_of_.end() || second == number_of_.end())
    return first == second && a == b;  // neither is an expression
  return expressions_[first->second] == expressions_[second->second];
}

bool SymbolicPlan::are_alike(const std::vector<Expr>& a, const std::vector<Expr>& b) const {
  return std::ranges::equal(a, b, [this](const Expr& x, const Expr& y) { return are_alike(x, y); });
}

}  // namespace oxy::runtime
