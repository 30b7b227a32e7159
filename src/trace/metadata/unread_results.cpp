#include "trace/metadata/unread_results.h"

#include <ATen/ops/empty_strided.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <ranges>

#include "aten/opaque.h"
#include "aten/operators.h"
#include "base/error.h"
#include "graph/sizes.h"
#include "graph/storage.h"
#include "ops/core/registry.h"
#include "runtime/execution/interpreter.h"
#include "runtime/values/convert.h"
#include "torch_api/error_text.h"
#include "trace/functional/functional_forms.h"
#include "trace/session/values_at_hand.h"
#include "trace/tensors/unheard.h"

namespace oxy::trace {
namespace {

using Values = IdVector<graph::ValueId, bool>;

// An operator whose readers are called as well is called only if its operands have at most so many elements.
constexpr int64_t kFewElements = int64_t{1} << 21;

bool has_one_of(const Values& values, const graph::Node& node) {
  return std::ranges::any_of(node.outputs,
                             [&](graph::ValueId id) { return id != graph::kNoValue && values[id]; });
}

Values results_of(const graph::Graph& graph) {
  Values results(graph.values.size());
  for (const graph::Output& output : graph.outputs) results[output.value] = true;
  for (const graph::Mutation& mutation : graph.mutations) results[mutation.value] = true;
  return results;
}

// Those that anybody reads.
Values read_values(const graph::Graph& graph) {
  Values read = results_of(graph);
  for (const graph::Node& node : graph.nodes)
    graph::for_each_input(node, [&](graph::ValueId id) { read[id] = true; });
  return read;
}

// Whether it may leave the memory of its tensor, which no rule knows.
bool may_leave_memory(const OperatorSchema& op) {
  return &op == op::as_strided();
}

// Whether what it writes does not depend on what is there: `fill_` with a number, `zero_`.
bool writes_all_anew(const graph::Node& node) {
  if (!is_of_core(*node.op) || !node.op->is_mutating() || node.op->is_random) return false;
  const OperatorSchema* const functional = functional_form(*node.op);
  const auto reads_tensors = [](const graph::Argument& argument) {
    return std::holds_alternative<graph::ValueRef>(argument) ||
           std::holds_alternative<graph::ValueList>(argument);
  };
  return functional != nullptr && ops::traits_of(*functional).reads_metadata_only &&
         std::ranges::count_if(node.args, reads_tensors) == 1;
}

// Those that a result, or what has effects, is computed from. What is asked for its sizes is not, and neither
// is what is written to memory that nobody reads.
Values needed_values(const graph::Graph& graph) {
  const IdVector<graph::ValueId, graph::ValueId> root_of = graph::storage_roots(graph);
  Values needed = results_of(graph), is_needed_storage(graph.values.size());
  for (const graph::ValueId id : graph.values.ids())
    if (needed[id] || graph.values[id].node == graph::kNoNode) is_needed_storage[root_of[id]] = true;
  const auto writes_for_nobody = [&](const graph::Node& node) {
    if (!is_of_core(*node.op) || node.op->is_random) return false;
    bool is_seen = false;
    graph::for_each_written(node,
                            [&](graph::ValueId id) { is_seen = is_seen || is_needed_storage[root_of[id]]; });
    return !is_seen;
  };
  // If all of a storage is written anew, nothing that it held before is needed for what is read later. Of a
  // part of it, the view is needed that says which.
  const auto write_anew = [&](graph::NodeId writer, graph::ValueId written) {
    const graph::ValueId root = root_of[written];
    const graph::NodeId maker = graph.values[written].node;
    if (graph.values[root].node == graph::kNoNode || may_leave_memory(*graph.nodes[maker].op) ||
        !(graph.meta(root).sizes == graph.meta(written).sizes)) {
      needed[written] = needed[written] || is_needed_storage[root];
      return;
    }
    is_needed_storage[root] = false;
    for (const graph::ValueId id : graph.values.ids())
      if (root_of[id] == root && graph.values[id].node < writer) needed[id] = false;
  };
  for (const graph::NodeId number : graph.nodes.ids() | std::views::reverse) {
    const graph::Node& node = graph.nodes[number];
    if (writes_all_anew(node)) {
      graph::for_each_written(node, [&](graph::ValueId written) { write_anew(number, written); });
      continue;
    }
    const bool has_effects = !is_of_core(*node.op) || (node.op->is_mutating() && !writes_for_nobody(node));
    if (ops::traits_of(*node.op).reads_metadata_only || !(has_effects || has_one_of(needed, node))) continue;
    graph::for_each_input(node, [&](graph::ValueId id) {
      needed[id] = true;
      is_needed_storage[root_of[id]] = true;
    });
  }
  return needed;
}

at::Tensor filled(const TensorMeta& meta, int number) {
  std::vector<int64_t> sizes, strides;
  for (const Expr& size : meta.sizes) sizes.push_back(size.constant());
  for (const Expr& stride : meta.strides) strides.push_back(stride.constant());
  return at::empty_strided(sizes, strides, at::TensorOptions(runtime::dtype_to_torch(meta.dtype)))
      .fill_(number);
}

// Whether it is an operator of torch's. Operators of the program's own stay in the graph, and must run once a
// call only. Views raise by their rules.
bool is_plain(const OperatorSchema& op) {
  return is_of_core(op) && !op.is_random && !op.is_view() && !op.is_mutating();
}

bool has_symbols(const graph::Graph& graph, const graph::Node& node) {
  bool found = std::ranges::any_of(node.args, [](const graph::Argument& a) { return graph::has_symbols(a); });
  graph::for_each_input(node,
                        [&](graph::ValueId id) { found = found || graph::has_symbols(graph.meta(id)); });
  return found;
}

// Whether it is certain that a call of as_strided reaches no further than the elements of its tensor, if
// these begin where their storage does.
bool stays_inside(const graph::Graph& graph, const graph::Node& node, const torch_api::Symbols* symbols) {
  const TensorMeta& self = graph.meta(std::get<graph::ValueRef>(node.args.at(0)).id);
  const auto* const sizes = std::get_if<std::vector<Expr>>(&node.args.at(1));
  const auto* const strides = std::get_if<std::vector<Expr>>(&node.args.at(2));
  if (!sizes || !strides || sizes->size() != strides->size() || symbols == nullptr) return false;
  if (!std::holds_alternative<graph::None>(node.args.at(3))) return false;
  Expr last_of_self = 0, last = 0;
  for (size_t d = 0; d < self.sizes.size(); ++d)
    last_of_self = last_of_self + (self.sizes[d] - 1) * self.strides[d];
  for (size_t d = 0; d < sizes->size(); ++d) last = last + ((*sizes)[d] - 1) * (*strides)[d];
  return symbols->environment.answer(sym::less_equal(last, last_of_self)) == sym::Answer::True;
}

bool has_few_elements(const graph::Graph& graph, const graph::Node& node, const torch_api::Symbols* symbols) {
  Expr elements = 0;
  graph::for_each_input(node,
                        [&](graph::ValueId id) { elements = elements + element_count(graph.meta(id)); });
  const std::optional<int64_t> at_hand =
      symbols ? symbols->environment.hint(elements) : elements.as_constant();
  return at_hand && *at_hand <= kFewElements;
}

std::string place_of(const graph::Graph& graph, const graph::Node& node) {
  return node.location == graph::kNoLocation ? "" : " at " + graph.locations.at(node.location).text;
}

}  // namespace

void check_unread_results(const graph::Graph& graph, graph::NodeId end, const torch_api::Symbols* symbols) {
  const Values read = read_values(graph);
  std::optional<Values> needed;
  const auto is_needed = [&](const graph::Node& node) {
    if (!needed) needed = needed_values(graph);
    return has_one_of(*needed, node);
  };
  const auto is_checked = [&](const graph::Node& node) {
    if (may_leave_memory(*node.op)) return !is_needed(node);
    if (!is_plain(*node.op)) return false;
    return !has_one_of(read, node) || (has_few_elements(graph, node, symbols) && !is_needed(node));
  };
  for (const graph::NodeId number : graph.nodes.ids()) {
    if (number >= end) break;
    const graph::Node& node = graph.nodes[number];
    if (!is_checked(node)) continue;
    if (may_leave_memory(*node.op) && has_symbols(graph, node)) {
      if (stays_inside(graph, node, symbols)) continue;
      throw Unsupported(fmt::format("{} of symbolic sizes, whose result is not used, may raise{}",
                                    node.op->name, place_of(graph, node)));
    }
    const auto meta_of = [&](graph::ValueId id) -> const TensorMeta& { return graph.meta(id); };
    if (!node.computed.empty() || !is_at_hand(symbols, node.args, meta_of)) continue;
    graph::Node call = node;
    call.args = at_hand(symbols, node.args);
    // Zeros are indices that fit; a division wants others.
    for (const int number : {0, 1}) {
      try {
        const Unheard unheard;
        runtime::run_node(
            call, [&](graph::ValueId id) { return filled(at_hand(symbols, graph.meta(id)), number); });
        break;
      } catch (const std::exception& error) {
        const std::string_view text = torch_api::error_text(error);
        if (number == 1)
          throw Unsupported(fmt::format("{}, whose result is not used, raises: {}", node.op->name,
                                        text.substr(0, text.find('\n'))));
      }
    }
  }
}

}  // namespace oxy::trace
