#include "passes/training/saved_values.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <ranges>

#include "aten/dtype.h"
#include "aten/operators.h"
#include "ops/core/registry.h"
#include "passes/rewriting/rewrite.h"
#include "passes/training/checkpoints.h"
#include "passes/training/joined_recomputation.h"
#include "passes/training/many_bytes.h"
#include "passes/training/maximum_flow.h"
#include "passes/training/written_in_both.h"
#include "sym/hints.h"

namespace oxy::passes {
namespace {

// What a saved value costs besides its bytes: an output, an input and a tensor of its own.
constexpr int64_t kBytesOfATensor = 64;

// The share of its bytes, as a divisor, that price_of_rows() says.
constexpr int64_t kPriceOfRows = 4;

// The cost of what the partition cannot save: a tensor of its own that is not dense. It is chosen only where
// nothing else will do.
constexpr int64_t kLastResort = int64_t{1} << 48;

using graph::kNoValue;

bool is_recomputable(const Node& node) {
  return node.op->is_view() || (ops::traits_of(*node.op).is_cheap && !has_effect(node));
}

class Chooser {
 public:
  Chooser(const Graph& graph, const BackwardPass& pass)
      : graph_(graph),
        pass_(pass),
        is_early_(graph.values.size(), false),
        checkpoints_(checkpoint_roles(graph, pass.is_forward)) {
    for (const ValueId id : pass.inputs) is_early_[id] = true;
    for (const NodeId i : graph.nodes.ids())
      if (!pass.is_late[i])
        for (const ValueId id : graph.nodes[i].outputs)
          if (id != kNoValue) is_early_[id] = true;
    if (!pass.is_read_itself.empty()) find_stand_ins();
    find_exact();
    find_written_in_both();
  }

  // The price of work falls until the budget is met.
  std::vector<ValueId> run() const {
    std::vector<ValueId> saved = cut(std::nullopt);
    if (pass_.memory_budget >= 1) return saved;
    const auto most = static_cast<int64_t>(pass_.memory_budget * static_cast<double>(extra_bytes(saved)));
    double low = 0, high = 1024;  // bytes for an instruction
    saved = cut(low);
    for (int step = 0; step < 14; ++step) {
      const double price = low > 0 ? std::sqrt(low * high) : high / 1024 / 1024;
      std::vector<ValueId> tried = cut(price);
      if (extra_bytes(tried) <= most) {
        saved = std::move(tried);
        low = price;
      } else {
        high = price;
      }
    }
    return saved;
  }

 private:
  // Floating point numbers that the backward pass needs to the last bit, which they may not have if they are
  // computed again:
  // - those that it asks to be equal to others, as the gradient of a maximum does: none of them would be the
  //   maximum;
  // - halves whose mean or deviation it reads, as the operand of a norm. The forward pass computes these from
  //   numbers that are not rounded yet, a repetition would do so from rounded ones. Where all elements are
  //   near to their mean, the gradient would be that of the rounding.
  void find_exact() {
    is_exact_ = IdVector<ValueId, bool>(graph_.values.size());
    for (const NodeId i : graph_.nodes.ids() | std::views::reverse) {
      const Node& node = graph_.nodes[i];
      const ops::Traits& traits = ops::traits_of(*node.op);
      const bool compares = !pass_.is_forward[i] && (traits.counting == ops::Counting::Equal ||
                                                     traits.counting == ops::Counting::NotEqual);
      const bool is_view = node.op->is_view() && has_any(node, is_exact_);
      const ValueId measured = traits.statistics_of >= 0
                                   ? tensor_argument(node, static_cast<size_t>(traits.statistics_of))
                                   : kNoValue;
      graph::for_each_input(node, [&](ValueId id) {
        const DType type = graph_.meta(id).dtype;
        const bool is_measured = id == measured && item_size(type) < item_size(DType::Float32);
        if (is_floating(type) && !stands_in(id) && (compares || is_view || is_measured)) is_exact_[id] = true;
      });
    }
  }

  static bool has_any(const Node& node, const IdVector<ValueId, bool>& values) {
    return std::ranges::any_of(node.outputs, [&](ValueId id) { return id != kNoValue && values[id]; });
  }

  bool has_exact(const Node& node) const { return !node.op->is_view() && has_any(node, is_exact_); }

  bool is_written_in_both(const Node& node) const {
    return !node.op->is_view() && std::ranges::any_of(node.outputs, [&](ValueId id) {
      return id != kNoValue && written_in_both_[id];
    });
  }

  // Whether the backward pass may compute a node of the forward pass again, as long as work has no price.
  bool may_recompute(NodeId i) const {
    const Node& node = graph_.nodes[i];
    return !is_made_once(i) && !has_exact(node) && is_same_of_copy(node) &&
           (is_recomputable(node) || has_stand_in(node) || price_of_rows(node));
  }

  // Whether the node gives the same for a copy of its argument. An argument that nobody holds is saved as a
  // copy, and a view of the storage may reach elements that are not the argument's own, or count from where
  // the storage began.
  bool is_same_of_copy(const Node& node) const {
    const ops::Traits& traits = ops::traits_of(*node.op);
    if (!traits.addresses_storage()) return true;
    const ValueId argument = tensor_argument(node, 0);
    if (pass_.is_held[argument]) return true;
    const TensorMeta &own = graph_.meta(argument), &view = graph_.meta(node.outputs.front());
    Expr reached = view.storage_offset - own.storage_offset + 1;
    for (size_t d = 0; d < view.sizes.size(); ++d) reached = reached + (view.sizes[d] - 1) * view.strides[d];
    const bool counts_from_argument =
        std::holds_alternative<graph::None>(node.args.at(static_cast<size_t>(traits.storage_offset)));
    return is_non_overlapping_and_dense(own) && (counts_from_argument || own.storage_offset == Expr(0)) &&
           sym::known_less_equal(own.storage_offset, view.storage_offset) &&
           sym::known_less_equal(reached, element_count(own));
  }

  // What computing the node again is worth, in bytes, if it is cheap from halves and has many: its
  // instructions, and that rows which do not fit in registers are read twice.
  std::optional<int64_t> price_of_rows(const Node& node) const {
    if (ops::traits_of(*node.op).rows == ops::Rows::None) return std::nullopt;
    ValueId operand = tensor_argument(node, 0);
    const Node* made = producer(graph_, operand);
    if (made != nullptr && made->op == op::to_copy()) operand = tensor_argument(*made, 0);
    const ValueId result = node.outputs.front();
    if (item_size(graph_.meta(operand).dtype) >= item_size(graph_.meta(result).dtype)) return std::nullopt;
    if (!has_many_bytes(graph_.meta(result))) return std::nullopt;
    return bytes(result) / kPriceOfRows;
  }

  void find_written_in_both() {
    const auto may = [this](NodeId i) { return may_recompute(i); };
    written_in_both_ = written_in_both(graph_, pass_, joined_recomputations(graph_, pass_, may), may);
    for (const ValueId id : graph_.values.ids())
      if (stands_in(id)) written_in_both_[id] = false;
  }

  // Values that only the backward pass computes, of others that it has to read as they are by then
  // (BackwardPass::is_read_itself). They are never saved, whatever they cost: eager computes them then, too.
  void find_stand_ins() {
    stands_in_ = IdVector<ValueId, bool>(graph_.values.size());
    for (const NodeId i : graph_.nodes.ids()) {
      const Node& node = graph_.nodes[i];
      const bool is_of_backward = !pass_.is_forward[i] && !pass_.is_late[i];
      if (!node.op->is_view() && !(is_of_backward && !is_made_once(i) && !has_effect(node))) continue;
      bool does = false;
      graph::for_each_input(node,
                            [&](ValueId id) { does = does || pass_.is_read_itself[id] || stands_in_[id]; });
      for (const ValueId id : node.outputs)
        if (id != kNoValue) stands_in_[id] = does;
    }
  }

  bool is_made_once(NodeId node) const { return !pass_.made_once.empty() && pass_.made_once[node]; }

  bool is_read_itself(ValueId id) const {
    return !pass_.is_read_itself.empty() && pass_.is_read_itself[id] &&
           checkpoints_[id] != CheckpointRole::Interior;
  }

  bool has_stand_in(const Node& node) const {
    return std::ranges::any_of(node.outputs, [&](ValueId id) { return id != kNoValue && stands_in(id); });
  }
  bool stands_in(ValueId id) const { return !stands_in_.empty() && stands_in_[id]; }

  bool is_recomputed_view(const Node& node) const { return node.op->is_view() && is_same_of_copy(node); }

  int64_t cost_of_saving(ValueId id) const {
    const int64_t cost = bytes(id) + kBytesOfATensor;
    if (pass_.is_held[id]) return (cost + 1) / 2;
    return is_non_overlapping_and_dense(graph_.meta(id)) ? cost : kLastResort;
  }

  int64_t bytes(ValueId id) const {
    const TensorMeta& meta = graph_.meta(id);
    return sym::estimate(element_count(meta)) * static_cast<int64_t>(item_size(meta.dtype));
  }

  // About the multiplications, or the bytes moved, of computing the node once more.
  double work(const Node& node) const {
    double result = 0;
    for (const ValueId id : node.outputs)
      if (id != kNoValue) result += static_cast<double>(bytes(id));
    std::vector<double> arguments = {0, 0};
    graph::for_each_input(node, [&](ValueId id) { arguments.push_back(static_cast<double>(bytes(id))); });
    std::ranges::sort(arguments, std::greater());
    const bool is_product = !ops::entry_of(*node.op).lower && arguments[1] > 0;
    if (!is_product) return result + arguments[0];
    // m * n and n * k elements come in, m * k go out: m * n * k multiplications.
    return std::sqrt(arguments[0] / 4 * arguments[1] / 4 * result / 4);
  }

  int64_t extra_bytes(const std::vector<ValueId>& saved) const {
    int64_t total = 0;
    for (const ValueId id : saved)
      if (!pass_.is_held[id]) total += bytes(id);
    return total;
  }

  // The values to save. `price`: of an instruction of what is_recomputable() leaves out; none: it is always
  // saved.
  std::vector<ValueId> cut(std::optional<double> price) const {
    const auto count = static_cast<int32_t>(graph_.values.size());
    const int32_t source = 2 * count, sink = source + 1;
    const auto entrance = [](ValueId id) { return 2 * id.number(); };
    const auto exit = [](ValueId id) { return 2 * id.number() + 1; };
    FlowNetwork network(sink + 1);
    const auto can_be_saved_at = [&](ValueId id, bool is_view) {
      const bool never = is_view || stands_in(id) || checkpoints_[id] == CheckpointRole::Interior;
      network.add_edge(entrance(id), exit(id), never ? FlowNetwork::kUnbounded : cost_of_saving(id));
    };
    const auto is_read_late = [&](ValueId id) {
      if (is_early_[id]) network.add_edge(exit(id), sink, FlowNetwork::kUnbounded);
    };
    for (const ValueId id : pass_.inputs) {
      network.add_edge(source, entrance(id), FlowNetwork::kUnbounded);
      can_be_saved_at(id, false);
    }
    for (const NodeId i : graph_.nodes.ids()) {
      const Node& node = graph_.nodes[i];
      if (pass_.is_late[i]) {
        graph::for_each_input(node, is_read_late);
        continue;
      }
      const bool once = is_made_once(i) || has_exact(node) || !is_same_of_copy(node);
      const bool recomputable = may_recompute(i) && (price || !is_written_in_both(node));
      for (const ValueId id : node.outputs) {
        if (id == kNoValue) continue;
        can_be_saved_at(id, is_recomputed_view(node));
        const CheckpointRole role = checkpoints_[id];
        const std::optional<int64_t> of_rows = recomputable ? price_of_rows(node) : std::nullopt;
        const bool is_free = (recomputable && !of_rows) || role == CheckpointRole::Interior;
        if (role == CheckpointRole::Result || (is_read_itself(id) && !is_recomputed_view(node)) ||
            (!is_free && !of_rows && (!price || once || has_effect(node)))) {
          network.add_edge(source, entrance(id), FlowNetwork::kUnbounded);
          continue;
        }
        if (!is_free)
          network.add_edge(source, entrance(id),
                           of_rows ? *of_rows : static_cast<int64_t>(*price * work(node)));
        graph::for_each_input(node, [&](ValueId argument) {
          if (is_early_[argument]) network.add_edge(exit(argument), entrance(id), FlowNetwork::kUnbounded);
        });
      }
    }
    std::ranges::for_each(pass_.wanted, is_read_late);
    const std::vector<bool> late = network.minimum_cut(source, sink);
    std::vector<ValueId> saved;
    for (const ValueId id : graph_.values.ids())
      if (!late[static_cast<size_t>(entrance(id))] && late[static_cast<size_t>(exit(id))] && is_early_[id])
        saved.push_back(id);
    return saved;
  }

  const Graph& graph_;
  const BackwardPass& pass_;
  IdVector<ValueId, bool> is_early_;   // made in the forward pass, and no constant
  IdVector<ValueId, bool> stands_in_;  // not saved, as a value that is read itself is behind it
  IdVector<ValueId, bool> written_in_both_;
  IdVector<ValueId, bool> is_exact_;
  IdVector<ValueId, CheckpointRole> checkpoints_;
};

}  // namespace

std::vector<ValueId> choose_saved(const Graph& graph, const BackwardPass& pass) {
  return Chooser(graph, pass).run();
}

}  // namespace oxy::passes
