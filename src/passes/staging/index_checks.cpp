#include "passes/staging/index_checks.h"

#include <algorithm>
#include <ranges>
#include <utility>
#include <vector>

#include "aten/operators.h"
#include "passes/rewriting/rewrite.h"
#include "passes/staging/bring_to_device.h"

namespace oxy::passes {
namespace {

std::vector<ops::CheckedIndex> wanted(const Graph& source, const Node& node, const WantsCheck& wants) {
  std::vector<ops::CheckedIndex> result = ops::checked_indices(source, node);
  std::erase_if(result, [&](const ops::CheckedIndex& checked) {
    const TensorMeta& self = source.meta(tensor_argument(node, 0));
    const bool crosses = is_on_host(source.meta(checked.index).device) && !is_on_host(self.device);
    return !wants(source, checked, self) || (crosses && !takes_from_host(source, node, checked.index));
  });
  return result;
}

}  // namespace

graph::Graph check_indices(graph::Graph source, const WantsCheck& wants) {
  IdVector<NodeId, std::vector<ops::CheckedIndex>> checks(source.nodes.size());
  for (const NodeId n : source.nodes.ids()) checks[n] = wanted(source, source.nodes[n], wants);
  if (std::ranges::all_of(checks, [](const auto& of_node) { return of_node.empty(); })) return source;
  Rewriter rewriter(source);
  for (const NodeId n : source.nodes.ids()) {
    const Node& node = source.nodes[n];
    for (const ops::CheckedIndex& checked : checks[n]) {
      const Argument ignored = checked.ignored ? Argument(*checked.ignored) : Argument(graph::None{});
      const std::string where =
          node.location == graph::kNoLocation ? "" : source.locations[node.location].text;
      const bool is_left_to_eager = is_on_host(source.meta(tensor_argument(node, 0)).device);
      rewriter.graph().add_node(op::check_indices(),
                                {ValueRef{rewriter.map(checked.index)}, checked.size, Expr(checked.dimension),
                                 checked.counts_back, ignored, checked.elements, is_left_to_eager, where},
                                {}, node.location);
    }
    rewriter.keep(rewriter.renamed(node));
  }
  return rewriter.finish();
}

}  // namespace oxy::passes
