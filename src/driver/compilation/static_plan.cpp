#include "driver/compilation/static_plan.h"

#include <algorithm>
#include <memory>

#include "backend/shared/schedule.h"
#include "base/background.h"
#include "base/config.h"
#include "graph/sizes.h"

namespace oxy::driver {

namespace {

graph::Graph with_numbers(const StaticPlanSource& source, std::span<const int64_t> values) {
  graph::Graph graph = source.graph;
  const auto number = [&](int64_t id) -> std::optional<Expr> {
    const auto symbol = std::ranges::lower_bound(source.symbols, id, {}, &Expr::variable_id);
    return Expr(values[static_cast<size_t>(symbol - source.symbols.begin())]);
  };
  graph::map_expressions(graph,
                         [&](const Expr& e) { return e.is_constant() ? e : sym::substitute(e, number); });
  return graph;
}

}  // namespace

std::optional<runtime::StaticPlan> make_static_plan(const StaticPlanSource& source,
                                                    std::span<const int64_t> values,
                                                    const std::function<bool()>& is_unwanted) {
  const graph::Graph graph = with_numbers(source, values);
  if (strict()) graph::verify(graph, true);
  plan::Plan plan = backend::schedule(loop::lower(graph, source.lowering), *source.device, source.schedule);
  if (strict()) plan::verify(plan);
  if (std::ranges::all_of(plan.kernels,
                          [&](const plan::Kernel& kernel) { return source.kernels.contains(kernel.name); }))
    return std::nullopt;
  // One after the other: in one thread, and with places to stop at. What is loaded is not compiled again.
  std::vector<std::shared_ptr<backend::KernelLibrary>> loaded;
  const std::span<const plan::Kernel> kernels(plan.kernels);
  for (size_t k = 0; k < kernels.size(); ++k) {
    if (is_unwanted()) return std::nullopt;
    const background::Piece piece;
    loaded.push_back(source.device->load(kernels.subspan(k, 1)));
  }
  const background::Piece piece;
  auto library = source.device->load(kernels);
  return runtime::StaticPlan{std::move(plan), std::move(library)};
}

}  // namespace oxy::driver
