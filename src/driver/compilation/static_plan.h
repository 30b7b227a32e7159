// A plan for one set of sizes of a graph with symbols (runtime/variants/static_variants.h). Plain data in,
// plain data out: the background thread makes it.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "graph/graph.h"
#include "loop/lowering.h"
#include "runtime/variants/static_variants.h"

namespace oxy::driver {

struct StaticPlanSource {
  graph::Graph graph;  // behind the passes: constants, packed weights and inputs are those of all sizes
  std::vector<Expr> symbols;  // graph::symbols_of(graph)
  const backend::Backend* device = nullptr;
  loop::LoweringOptions lowering;
  backend::ScheduleOptions schedule;
  std::set<std::string> kernels;  // the names of those that serve all sizes
};

// `values[i]` for `symbols[i]`. Nothing if the kernels would be no others, or if it is not wanted any more.
// Throws what the stages throw.
std::optional<runtime::StaticPlan> make_static_plan(const StaticPlanSource& source,
                                                    std::span<const int64_t> values,
                                                    const std::function<bool()>& is_unwanted);

}  // namespace oxy::driver
