// loop::lower: it lives here, above the loop layer, because it asks the table of operators for its rules.
#include "loop/lowering.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "loop/context.h"
#include "ops/core/registry.h"

namespace oxy::loop {

namespace {

// Types that generated kernels do not compute with.
bool needs_eager_kernel(DType dtype) {
  return is_complex(dtype) || dtype == DType::UInt16 || dtype == DType::UInt32 || dtype == DType::UInt64;
}

bool needs_eager_kernel(const graph::Graph& graph, const graph::Node& node) {
  bool found = false;
  graph::for_each_input(node, [&](graph::ValueId id) { found |= needs_eager_kernel(graph.meta(id).dtype); });
  for (graph::ValueId id : node.outputs)
    found |= id != graph::kNoValue && needs_eager_kernel(graph.meta(id).dtype);
  return found || std::ranges::any_of(node.args, [](const graph::Argument& a) {
           return std::holds_alternative<std::complex<double>>(a);
         });
}

}  // namespace

Program lower(const graph::Graph& graph, const LoweringOptions& options) {
  LoweringContext context(graph, options);
  for (const graph::Node& node : graph.nodes) {
    const ops::Lowering& lowering = ops::entry_of(*node.op).lower;
    context.begin_node(node);
    bool lowered = false;
    if (lowering && !needs_eager_kernel(graph, node)) {
      try {
        lowering(context, node);
        lowered = true;
      } catch (const Unsupported&) {
        // The rule does not cover these arguments: the eager kernel does.
      }
    }
    if (!lowered) context.extern_call(node, ops::traits_of(*node.op).fills_given_results);
    for (graph::ValueId id : node.outputs)
      check(id == graph::kNoValue || context.uses(id) == 0 || context.is_set(id),
            fmt::format("the lowering of {} left a used output unset", node.op->name));
  }
  return context.finish();
}

}  // namespace oxy::loop
