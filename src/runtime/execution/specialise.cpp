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
  std::vector<Expr> results;
  for_each_expression(plan_, [&](Expr& expr) {
    if (expr.is_constant()) return;
    add_variables(expr);
    results.push_back(expr);
  });
  std::ranges::set_difference(used, defined, std::back_inserter(symbols_));
  if (!symbols_.empty()) program_ = sym::compile(symbols_, definitions, results);
}

plan::Plan SymbolicPlan::at(std::span<const int64_t> values) const {
  plan::Plan plan = plan_;
  if (symbols_.empty()) return plan;
  std::vector<int64_t> work(program_.slots());
  if (program_.run(values, work).status != sym::RunStatus::Holds)
    throw sym::ArithmeticError("a size of a plan does not fit in 64 bits");
  size_t next = 0;
  for_each_expression(plan, [&](Expr& expr) {
    if (!expr.is_constant()) expr = Expr(program_.result(work, next++));
  });
  return plan;
}

}  // namespace oxy::runtime
