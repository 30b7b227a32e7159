#include "passes/weights/channels_last.h"

#include <algorithm>
#include <utility>

#include "aten/operators.h"
#include "base/error.h"
#include "ops/core/registry.h"
#include "passes/weights/constant_part.h"
#include "sym/hints.h"

namespace oxy::passes {
namespace {

using ops::Layouts;

class Relayout {
 public:
  Relayout(const Graph& source, const ChooseLayout& choose, bool grants_wishes)
      : source_(source),
        choose_(choose),
        grants_wishes_(grants_wishes),
        rewriter_(source),
        recorded_(source.values.size()) {}

  Graph run() {
    const auto is_constant = constant_values(source_);
    for (const Node& node : source_.nodes) {
      auto site = convolution_site(source_, node, is_constant);
      const bool has_choice = site && (site->input.rank() == 4 || site->input.rank() == 5);
      const ConvolutionLayout layout = has_choice ? choose_(*site) : ConvolutionLayout::AsItComes;
      const bool with_weight = layout == ConvolutionLayout::PrefersChannelsLastWithWeight;
      switch (layout) {
        case ConvolutionLayout::PrefersChannelsLast:
        case ConvolutionLayout::PrefersChannelsLastWithWeight:
          if (!grants_wishes_) {
            follow(node);
            break;
          }
          moved_ += elements(site->input) + elements(site->output);
          [[fallthrough]];
        case ConvolutionLayout::ChannelsLast:
          site->is_backward ? convert_backward(node, with_weight) : convert(node, with_weight);
          break;
        case ConvolutionLayout::AsRecorded:
          keep_recorded(node);
          break;
        case ConvolutionLayout::AsItComes:
          follow(node);
      }
    }
    restore_results();
    return rewriter_.finish();
  }

  // Whether the convolutions that got their wish move more than twice of what the copies do.
  bool is_worth_its_copies() const { return moved_ == 0 || copied_ <= moved_ / 2; }

 private:
  static double elements(const TensorMeta& meta) {
    return static_cast<double>(sym::estimate(element_count(meta)));
  }

  static MemoryFormat channels_last(const TensorMeta& meta) {
    return meta.rank() == 5 ? MemoryFormat::ChannelsLast3d : MemoryFormat::ChannelsLast;
  }

  const TensorMeta& now(ValueId source_value) { return rewriter_.graph().meta(rewriter_.map(source_value)); }

  bool is_changed(ValueId source_value) {
    return !same_layout(now(source_value), source_.meta(source_value));
  }

  ValueId copy(const Node& at, ValueId value, MemoryFormat format, TensorMeta meta) {
    Site site{rewriter_.graph(), source_, at, at};
    meta.storage_offset = 0;
    copied_ += elements(meta);
    return site.emit(op::clone(), {ValueRef{value}, format}, std::move(meta));
  }

  // The value in the layout that the program recorded.
  ValueId recorded(const Node& at, ValueId source_value) {
    if (!is_changed(source_value)) return rewriter_.map(source_value);
    ValueId& cached = recorded_[source_value];
    if (cached == graph::kNoValue) {
      const TensorMeta& meta = source_.meta(source_value);
      MemoryFormat format = is_contiguous(meta) ? MemoryFormat::Contiguous : channels_last(meta);
      cached = copy(at, rewriter_.map(source_value), format, meta);
    }
    return cached;
  }

  void use_channels_last(const Node& node, Node& renamed, size_t argument) {
    const ValueId x = tensor_argument(renamed, argument);
    TensorMeta meta = rewriter_.graph().meta(x);
    if (is_channels_last(meta)) return;
    meta.strides = channels_last_strides(meta.sizes);
    renamed.args.edit()[argument] = ValueRef{copy(node, x, channels_last(meta), meta)};
  }

  // Its library would make the copy at each call; of a constant it is made once.
  void use_channels_last_weight(const Node& node, Node& renamed, size_t argument) {
    const double copied = copied_;
    use_channels_last(node, renamed, argument);
    copied_ = copied;
  }

  void convert(const Node& node, bool with_weight) {
    Node renamed = rewriter_.renamed(node);
    use_channels_last(node, renamed, 0);
    if (with_weight) use_channels_last_weight(node, renamed, 1);
    TensorMeta out = source_.meta(node.outputs.front());
    if (can_restore(out)) {
      out.strides = channels_last_strides(out.sizes);
    }
    keep(renamed, {out});
  }

  // Of a convolution, or of another operator whose kernel takes both in one layout.
  void convert_backward(const Node& node, bool with_weight) {
    Node renamed = rewriter_.renamed(node);
    for (size_t i : {0, 1}) use_channels_last(node, renamed, i);  // the output's gradient, the input
    if (with_weight) use_channels_last_weight(node, renamed, 2);
    if (auto metas = layouts(node, renamed))
      keep(renamed, *metas);
    else
      keep_recorded(node);
  }

  // A copy can give the value back the layout that was recorded.
  static bool can_restore(const TensorMeta& meta) { return is_contiguous(meta) || is_channels_last(meta); }

  void follow(const Node& node) {
    Node renamed = rewriter_.renamed(node);
    bool changed = false;
    graph::for_each_input(node, [&](ValueId id) { changed = changed || is_changed(id); });
    if (!changed) {
      rewriter_.keep(std::move(renamed));
      return;
    }
    if (ops::traits_of(*node.op).layouts == Layouts::Alike) {
      const ValueId x = tensor_argument(node, 1);
      const size_t rank = source_.meta(x).rank();
      return is_changed(x) && (rank == 4 || rank == 5) ? convert_backward(node, false) : keep_recorded(node);
    }
    if (auto metas = layouts(node, renamed)) {
      keep(renamed, *metas);
      return;
    }
    keep_recorded(node);
  }

  void keep_recorded(const Node& node) {
    Node restored = node;
    graph::rename_inputs(restored, [&](ValueId id) { return recorded(node, id); });
    rewriter_.keep(std::move(restored));
  }

  // What the operator makes of the new layouts; nothing if its rule does not say, or the recorded layout of a
  // result could not be had back.
  std::optional<std::vector<TensorMeta>> layouts(const Node& node, const Node& renamed) {
    const ops::OperatorEntry& entry = ops::entry_of(*node.op);
    if (!entry.shape || has_effect(node)) return std::nullopt;
    if (entry.traits.addresses_storage()) return std::nullopt;  // the recorded one
    const bool is_kernel = !entry.lower && !entry.decompose && !node.op->is_view();
    if (is_kernel && entry.traits.layouts == Layouts::Recorded) return std::nullopt;
    const Graph& out = rewriter_.graph();
    std::function<const TensorMeta&(ValueId)> meta_of = [&](ValueId id) -> const TensorMeta& {
      return out.meta(id);
    };
    std::vector<TensorMeta> metas;
    try {
      metas = entry.shape(ops::ShapeContext(*node.op, renamed.args, meta_of, DType::Float32));
    } catch (const Unsupported&) {
      return std::nullopt;
    }
    if (metas.size() != node.outputs.size()) return std::nullopt;
    for (size_t i = 0; i < metas.size(); ++i) {
      if (node.outputs[i] == graph::kNoValue) continue;
      const TensorMeta& before = source_.meta(node.outputs[i]);
      bool same_values = metas[i].sizes == before.sizes && metas[i].dtype == before.dtype;
      if (!same_values || (!same_layout(metas[i], before) && !can_restore(before))) return std::nullopt;
    }
    return metas;
  }

  void keep(const Node& renamed, const std::vector<TensorMeta>& metas) {
    rewriter_.keep(renamed);
    Graph& out = rewriter_.graph();
    const Node& kept = out.nodes.back();
    for (size_t i = 0; i < metas.size(); ++i)
      if (kept.outputs[i] != graph::kNoValue) out.values[kept.outputs[i]].meta = metas[i];
  }

  void restore_results() {
    static const Node nowhere;
    auto restore = [&](ValueId id) { rewriter_.set(id, recorded(nowhere, id)); };
    for (const graph::Output& output : source_.outputs) restore(output.value);
    for (const graph::Mutation& mutation : source_.mutations) restore(mutation.value);
  }

  const Graph& source_;
  const ChooseLayout& choose_;
  bool grants_wishes_;
  double moved_ = 0, copied_ = 0;  // elements
  Rewriter rewriter_;
  IdVector<ValueId, ValueId> recorded_;  // copies of the source's values in the recorded layout
};

}  // namespace

Graph use_channels_last(const Graph& source, const ChooseLayout& choose) {
  if (!choose) return source;
  Relayout wished(source, choose, true);
  Graph graph = wished.run();
  return wished.is_worth_its_copies() ? graph : Relayout(source, choose, false).run();
}

}  // namespace oxy::passes
