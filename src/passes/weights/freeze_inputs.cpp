#include "passes/weights/freeze_inputs.h"

#include "base/error.h"

namespace oxy::passes {

FrozenGraph freeze_inputs(const graph::Graph& source, std::span<const int32_t> handles) {
  check(handles.size() == source.inputs.size(), "one handle an input is needed");
  std::vector<bool> must_stay(source.inputs.size(), false);
  for (const graph::Mutation& mutation : source.mutations)
    must_stay.at(static_cast<size_t>(mutation.input)) = true;
  for (const graph::Output& output : source.outputs)
    if (output.kind == graph::OutputKind::InputAlias) must_stay.at(static_cast<size_t>(output.alias)) = true;

  FrozenGraph frozen{source, {}};
  graph::Graph& out = frozen.graph;
  out.inputs.clear();
  std::vector<int32_t> number(source.inputs.size(), -1);
  for (size_t i = 0; i < source.inputs.size(); ++i) {
    if (handles[i] >= 0 && !must_stay[i]) {
      out.constants.push_back({source.inputs[i], handles[i]});
      continue;
    }
    number[i] = static_cast<int32_t>(out.inputs.size());
    out.inputs.push_back(source.inputs[i]);
    frozen.kept.push_back(static_cast<int32_t>(i));
  }
  for (graph::Mutation& mutation : out.mutations)
    mutation.input = number[static_cast<size_t>(mutation.input)];
  for (graph::Output& output : out.outputs)
    if (output.kind == graph::OutputKind::InputAlias)
      output.alias = number[static_cast<size_t>(output.alias)];
  return frozen;
}

}  // namespace oxy::passes
