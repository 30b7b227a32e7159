#include "trace/session/known_values.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "aten/opaque.h"
#include "graph/sizes.h"
#include "runtime/execution/interpreter.h"
#include "runtime/values/host.h"
#include "trace/session/session.h"
#include "trace/session/written_values.h"

namespace oxy::trace {

namespace {

constexpr int64_t kMostInputElements = 64;
constexpr int64_t kMostElements = 65'536;  // of each value that is calculated on the way
constexpr size_t kMostNodes = 256;

// The nodes on which a value depends, in program order, and the inputs and constants that they read.
struct Slice {
  std::set<graph::NodeId> nodes;
  std::unordered_set<graph::ValueId> values;
  std::vector<graph::ValueId> inputs;
};

class Collector {
 public:
  explicit Collector(const Session& session) : session_(session), graph_(session.recording.graph) {}

  std::optional<Slice> collect(graph::ValueId value) {
    if (!visit(value) || is_written(graph_, slice_.values)) return std::nullopt;
    return std::move(slice_);
  }

 private:
  bool visit(graph::ValueId value) {
    if (!slice_.values.insert(value).second) return true;
    const graph::NodeId producer = graph_.values[value].node;
    const auto count = element_count(graph_.meta(value)).as_constant();
    if (!count || *count > kMostElements) return false;
    if (producer == graph::kNoNode) {
      if (session_.known.candidates.contains(value)) {
        slice_.inputs.push_back(value);
        return true;
      }
      return is_fresh_constant(value);
    }
    const graph::Node& node = graph_.nodes[producer];
    if (node.op->is_mutating() || draws_numbers(*node.op, node.args) || is_opaque(*node.op)) return false;
    // What a symbol decides is known at each call only.
    if (std::ranges::any_of(node.args, [](const graph::Argument& a) { return graph::has_symbols(a); }))
      return false;
    if (!slice_.nodes.insert(producer).second) return true;
    if (slice_.nodes.size() > kMostNodes) return false;
    bool known = true;
    graph::for_each_input(node, [&](graph::ValueId input) { known = known && visit(input); });
    return known;
  }

  bool is_fresh_constant(graph::ValueId value) const {
    const auto constant = std::ranges::find(graph_.constants, value, &graph::Constant::value);
    const auto& foreign = session_.recording.foreign_constants;
    return constant != graph_.constants.end() &&
           std::ranges::find(foreign, constant->handle) == foreign.end();
  }

  const Session& session_;
  const graph::Graph& graph_;
  Slice slice_;
};

}  // namespace

bool is_small_integer(const at::Tensor& tensor) {
  return runtime::is_on_host(tensor) && tensor.layout() == at::kStrided &&
         tensor.numel() <= kMostInputElements &&
         c10::isIntegralType(tensor.scalar_type(), /*includeBool=*/true);
}

std::optional<at::Tensor> known_value(Session& session, graph::ValueId value) {
  const std::optional<Slice> slice = Collector(session).collect(value);
  if (!slice) return std::nullopt;
  KnownValues& known = session.known;
  const graph::Graph& graph = session.recording.graph;
  const auto lookup = [&](graph::ValueId id) -> at::Tensor {
    if (const auto it = known.calculated.find(id); it != known.calculated.end()) return it->second;
    if (const auto it = known.candidates.find(id); it != known.candidates.end()) return it->second.detach();
    const auto constant = std::ranges::find(graph.constants, id, &graph::Constant::value);
    return session.recording.constants.at(static_cast<size_t>(constant->handle));
  };
  const bool was_paused = session_paused();
  pause_session(true);
  try {
    const at::NoGradGuard no_grad;
    const c10::impl::ExcludeDispatchKeyGuard below(c10::autocast_dispatch_keyset);
    for (const graph::NodeId n : slice->nodes) {
      const graph::Node& node = graph.nodes[n];
      if (known.calculated.contains(node.outputs.at(0))) continue;
      const std::vector<at::Tensor> results = runtime::run_node(node, lookup);
      for (size_t i = 0; i < results.size(); ++i)
        if (node.outputs[i] != graph::kNoValue) known.calculated.emplace(node.outputs[i], results[i]);
    }
  } catch (...) {
    pause_session(was_paused);
    throw;
  }
  pause_session(was_paused);
  known.read.insert(slice->inputs.begin(), slice->inputs.end());
  return lookup(value);
}

}  // namespace oxy::trace
