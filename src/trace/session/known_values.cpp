#include "trace/session/known_values.h"

#include <c10/util/Exception.h>

#include <vector>

#include "runtime/execution/interpreter.h"
#include "runtime/values/host.h"
#include "trace/session/session.h"
#include "trace/session/slices.h"

namespace oxy::trace {

namespace {

constexpr int64_t kMostInputElements = 64;

// The slice of what is known; notes whether the elements of varying inputs would have helped.
std::optional<Slice> slice_of_known(Session& session, graph::ValueId value) {
  KnownValues& known = session.known;
  const auto is_small = [&](graph::ValueId input) {
    return known.candidates.contains(input) || known.varying.contains(input);
  };
  if (known.of_varying == VaryingElements::Numbers) {
    std::optional<Slice> slice = collect_slice(session, value, is_small, SymbolsInSlice::Anywhere);
    if (slice) specialise(session, *slice);
    return slice;
  }
  std::optional<Slice> slice = collect_slice(
      session, value, [&](graph::ValueId input) { return known.candidates.contains(input); },
      SymbolsInSlice::None);
  if (slice || known.would_help || known.varying.empty()) return slice;
  const std::optional<Slice> possible = collect_slice(session, value, is_small, SymbolsInSlice::Anywhere);
  known.would_help = possible && !possible->inputs.empty();
  return std::nullopt;
}

}  // namespace

bool is_small_integer(const at::Tensor& tensor) {
  return runtime::is_on_host(tensor) && tensor.layout() == at::kStrided &&
         tensor.numel() <= kMostInputElements &&
         c10::isIntegralType(tensor.scalar_type(), /*includeBool=*/true);
}

std::optional<at::Tensor> known_value(Session& session, graph::ValueId value) {
  const std::optional<Slice> slice = slice_of_known(session, value);
  if (!slice) return std::nullopt;
  KnownValues& known = session.known;
  const graph::Graph& graph = session.recording.graph;
  const auto lookup = [&](graph::ValueId id) -> at::Tensor {
    if (const auto it = known.calculated.find(id); it != known.calculated.end()) return it->second;
    for (const auto* inputs : {&known.candidates, &known.varying})
      if (const auto it = inputs->find(id); it != inputs->end()) return it->second.detach();
    return data_of_constant(session, id);
  };
  const RunsInEager runs_in_eager;
  for (const graph::NodeId n : slice->nodes) {
    const graph::Node& node = graph.nodes[n];
    if (known.calculated.contains(node.outputs.at(0))) continue;
    std::vector<at::Tensor> results;
    try {
      results = runtime::run_node(specialised(session, node), lookup);
    } catch (const c10::Error&) {
      return std::nullopt;  // the program meets the error where it runs the operator
    }
    for (size_t i = 0; i < results.size(); ++i)
      if (node.outputs[i] != graph::kNoValue) known.calculated.emplace(node.outputs[i], results[i]);
  }
  known.read.insert(slice->inputs.begin(), slice->inputs.end());
  return lookup(value);
}

}  // namespace oxy::trace
