#include "trace/recording/unread_results.h"

#include <ATen/ops/empty_strided.h>
#include <fmt/format.h>

#include <algorithm>

#include "aten/opaque.h"
#include "base/error.h"
#include "runtime/execution/interpreter.h"
#include "runtime/values/convert.h"
#include "trace/recording/values_at_hand.h"
#include "trace/tensors/unheard.h"

namespace oxy::trace {
namespace {

IdVector<graph::ValueId, bool> read_values(const graph::Graph& graph) {
  IdVector<graph::ValueId, bool> read(graph.values.size());
  const auto mark = [&](graph::ValueId id) { read[id] = true; };
  for (const graph::Node& node : graph.nodes) graph::for_each_input(node, mark);
  for (const graph::Output& output : graph.outputs) mark(output.value);
  for (const graph::Mutation& mutation : graph.mutations) mark(mutation.value);
  return read;
}

at::Tensor zeros_like(const TensorMeta& meta) {
  std::vector<int64_t> sizes, strides;
  for (const Expr& size : meta.sizes) sizes.push_back(size.constant());
  for (const Expr& stride : meta.strides) strides.push_back(stride.constant());
  return at::empty_strided(sizes, strides, at::TensorOptions(runtime::dtype_to_torch(meta.dtype))).zero_();
}

// Whether it is an operator of torch's. Operators of the program's own stay in the graph, and must run once a
// call only.
bool is_plain(const OperatorSchema& op) {
  return is_of_core(op) && !op.is_random && !op.is_view() && !op.is_mutating();
}

}  // namespace

void check_unread_results(const graph::Graph& graph, graph::NodeId end, const torch_api::Symbols* symbols) {
  const auto read = read_values(graph);
  for (const graph::NodeId number : graph.nodes.ids()) {
    if (number >= end) break;
    const graph::Node& node = graph.nodes[number];
    const auto is_read = [&](graph::ValueId id) { return id != graph::kNoValue && read[id]; };
    if (!is_plain(*node.op) || std::ranges::any_of(node.outputs, is_read)) continue;
    const auto meta_of = [&](graph::ValueId id) -> const TensorMeta& { return graph.meta(id); };
    if (!node.computed.empty() || !is_at_hand(symbols, node.args, meta_of)) continue;
    try {
      const Unheard unheard;
      graph::Node call = node;
      call.args = at_hand(symbols, node.args);
      runtime::run_node(call,
                        [&](graph::ValueId id) { return zeros_like(at_hand(symbols, graph.meta(id))); });
    } catch (const std::exception& error) {
      const std::string_view text = error.what();
      throw Unsupported(fmt::format("{}, whose result is not used, raises: {}", node.op->name,
                                    text.substr(0, text.find('\n'))));
    }
  }
}

}  // namespace oxy::trace
