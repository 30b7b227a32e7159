#include "runtime/execution/specialise.h"

#include <algorithm>
#include <set>

namespace oxy::runtime {

namespace {

using ExprFunction = std::function<void(Expr&)>;

void for_each(std::vector<Expr>& list, const ExprFunction& fn) {
  for (Expr& expr : list) fn(expr);
}

void for_each(plan::View& view, const ExprFunction& fn) {
  for_each(view.sizes, fn);
  for_each(view.strides, fn);
  fn(view.offset);
}

void for_each(plan::CallArgument& argument, const ExprFunction& fn) {
  if (auto* view = std::get_if<plan::View>(&argument)) for_each(*view, fn);
  if (auto* expr = std::get_if<Expr>(&argument)) fn(*expr);
  if (auto* list = std::get_if<std::vector<Expr>>(&argument)) for_each(*list, fn);
  if (auto* views = std::get_if<std::vector<std::optional<plan::View>>>(&argument))
    for (auto& view : *views)
      if (view) for_each(*view, fn);
}

void for_each_expression(plan::Plan& plan, const ExprFunction& fn) {
  for (plan::Buffer& buffer : plan.buffers) {
    for_each(buffer.sizes, fn);
    for_each(buffer.strides, fn);
    fn(buffer.arena_offset);
  }
  for (plan::Step& step : plan.steps) {
    if (auto* launch = std::get_if<plan::Launch>(&step)) {
      for_each(launch->sizes, fn);
      if (auto* slices = std::get_if<plan::Slices>(&launch->shape)) fn(slices->extent);
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
  plan::Plan copy{plan.buffers,     {},           plan.steps, plan.outputs, plan.mutations, plan.arena_bytes,
                  plan.input_count, plan.positive};
  copy.kernels.reserve(plan.kernels.size());
  for (const plan::Kernel& kernel : plan.kernels)
    copy.kernels.add({kernel.name, {}, kernel.language, kernel.device});
  return copy;
}

}  // namespace

std::vector<int64_t> symbols_of(const plan::Plan& plan) {
  std::set<int64_t> ids;
  plan::Plan copy = without_sources(plan);
  for_each_expression(copy, [&](Expr& expr) {
    if (expr.is_constant()) return;
    for (const Expr& variable : sym::variables(expr)) ids.insert(variable.variable_id());
  });
  return {ids.begin(), ids.end()};
}

plan::Plan specialise(const plan::Plan& plan, std::span<const int64_t> symbols,
                      std::span<const int64_t> values) {
  plan::Plan copy = without_sources(plan);
  if (symbols.empty()) return copy;
  const auto value_of = [&](int64_t variable) -> std::optional<int64_t> {
    const auto it = std::ranges::lower_bound(symbols, variable);
    if (it == symbols.end() || *it != variable) return std::nullopt;
    return values[static_cast<size_t>(it - symbols.begin())];
  };
  for_each_expression(copy, [&](Expr& expr) {
    if (!expr.is_constant()) expr = Expr(sym::evaluate(expr, value_of));
  });
  return copy;
}

}  // namespace oxy::runtime
