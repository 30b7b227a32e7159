#include "trace/session/lost_histories.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "graph/storage.h"
#include "runtime/values/tensors.h"
#include "trace/session/recording.h"

namespace oxy::trace {
namespace {

template <class Fn>
void for_each_written(const graph::Node& node, const Fn& fn) {
  for (size_t a = 0; a < node.args.size(); ++a) {
    if (!node.op->arguments[a].is_written) continue;
    if (const auto* ref = std::get_if<graph::ValueRef>(&node.args[a])) fn(ref->id);
    if (const auto* list = std::get_if<graph::ValueList>(&node.args[a])) std::ranges::for_each(list->ids, fn);
  }
}

}  // namespace

InputMemory memory_of(const at::Tensor& real) {
  if (!real.has_storage()) return {};
  const bool is_lost = runtime::loses_history_when_written(real);
  return {real.storage().unsafeGetStorageImpl(), is_lost, is_lost && real.grad_fn() != nullptr};
}

void check_histories_survive(const graph::Graph& graph, const IdVector<graph::NodeId, NodeHistory>& histories,
                             const std::vector<InputMemory>& inputs) {
  if (std::ranges::none_of(inputs, &InputMemory::is_lost)) return;
  const auto root = graph::storage_roots(graph);
  std::unordered_map<graph::ValueId, const InputMemory*> input_of;
  std::set<const c10::StorageImpl*> has_views;  // whose histories a write loses
  for (size_t i = 0; i < inputs.size(); ++i) {
    input_of.emplace(graph.inputs[i], &inputs[i]);
    if (inputs[i].is_view_of_input) has_views.insert(inputs[i].storage);
  }
  const auto memory_behind = [&](graph::ValueId id) -> const InputMemory* {
    const auto found = id == graph::kNoValue ? input_of.end() : input_of.find(root[id]);
    return found == input_of.end() ? nullptr : found->second;
  };
  for (const graph::NodeId n : graph.nodes.ids()) {
    const graph::Node& node = graph.nodes[n];
    for_each_written(node, [&](graph::ValueId id) {
      const InputMemory* memory = memory_behind(id);
      if (memory != nullptr && has_views.contains(memory->storage))
        throw Unsupported(
            "memory is written to of which an argument is a part that requires grad, and of that there is a "
            "view: autograd loses the view's history");
    });
    if (!node.op->is_view() || n >= histories.next_id() || histories[n].requires_grad.empty()) continue;
    graph::for_each_input(node, [&](graph::ValueId id) {
      const InputMemory* memory = memory_behind(id);
      if (memory != nullptr && memory->is_lost) has_views.insert(memory->storage);
    });
  }
}

}  // namespace oxy::trace
