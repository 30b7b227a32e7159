#include "passes/weights/fold_batch_norm.h"

#include <algorithm>

#include "aten/operators.h"
#include "passes/rewriting/rewrite.h"
#include "passes/weights/constant_part.h"

namespace oxy::passes {
namespace {

// Where the two batch-norm operators keep their arguments.
struct BatchNorm {
  ValueId weight, bias, mean, variance;  // weight and bias may be absent
  double eps;
};

std::optional<BatchNorm> evaluation_batch_norm(const Node& node) {
  bool native = node.op == op::batch_norm();
  if (!native && node.op != op::batch_norm_evaluation()) return std::nullopt;
  if (native) {
    const bool* training = std::get_if<bool>(&node.args[5]);
    if (training == nullptr || *training) return std::nullopt;
  }
  auto eps = number_argument(node, native ? 7 : 6);
  BatchNorm norm{tensor_argument(node, 1), tensor_argument(node, 2), tensor_argument(node, 3),
                 tensor_argument(node, 4), eps.value_or(0)};
  if (!eps || norm.mean == graph::kNoValue || norm.variance == graph::kNoValue) return std::nullopt;
  return norm;
}

// Emits arithmetic on float64 tensors.
class Float64 {
 public:
  explicit Float64(const Site& site) : site_(site) {}

  ValueId from(ValueId x) const { return convert(x, DType::Float64); }

  ValueId convert(ValueId x, DType dtype) const {
    const TensorMeta& meta = site_.graph.meta(x);
    graph::None none;
    return site_.emit(op::to_copy(), {ValueRef{x}, dtype, none, none, none, false, MemoryFormat::Contiguous},
                      contiguous_meta(dtype, meta.device, meta.sizes));
  }

  ValueId binary(const OperatorSchema* op, ValueId a, Argument b) const {
    std::vector<Argument> args = {ValueRef{a}, std::move(b)};
    if (op != op::mul()) args.emplace_back(Expr(1));
    return site_.emit(op, std::move(args), meta_of(a));
  }

  ValueId rsqrt(ValueId a) const { return site_.emit(op::rsqrt(), {ValueRef{a}}, meta_of(a)); }

  // A vector, of any type, shaped to broadcast over dimension 0 of a tensor of this rank.
  ValueId along_first(ValueId a, size_t rank) const {
    std::vector<Expr> sizes(rank, 1);
    sizes.at(0) = meta_of(a).sizes.at(0);
    return site_.emit(op::view(), {ValueRef{a}, sizes},
                      contiguous_meta(meta_of(a).dtype, meta_of(a).device, sizes));
  }

 private:
  TensorMeta meta_of(ValueId a) const { return site_.graph.meta(a); }

  const Site& site_;
};

// What an element-wise operator makes of a tensor's layout.
TensorMeta dense_meta(TensorMeta meta) {
  meta.storage_offset = 0;
  if (!is_non_overlapping_and_dense(meta)) meta.strides = contiguous_strides(meta.sizes);
  return meta;
}

}  // namespace

Graph fold_batch_norm(const Graph& source) {
  const auto is_constant = constant_values(source);
  const auto uses = use_counts(source);
  auto constant_or_absent = [&](ValueId id) { return id == graph::kNoValue || is_constant[id]; };

  return rewrite(source, [&](const Site& site) -> std::optional<std::vector<ValueId>> {
    auto norm = evaluation_batch_norm(site.node);
    if (!norm) return std::nullopt;
    ValueId source_input = tensor_argument(site.original, 0);
    const Node* source_conv = producer(source, source_input);
    if (source_conv == nullptr || source_conv->op != op::convolution()) return std::nullopt;
    bool foldable = uses[source_input] == 1 && std::get<bool>(source_conv->args[6]) == false &&
                    constant_or_absent(tensor_argument(*source_conv, 1)) &&
                    constant_or_absent(tensor_argument(*source_conv, 2));
    for (size_t i = 1; i < 5; ++i)
      foldable = foldable && constant_or_absent(tensor_argument(site.original, i));
    for (size_t i = 1; i < site.node.outputs.size(); ++i) {
      ValueId id = site.node.outputs[i];
      foldable = foldable && (id == graph::kNoValue || uses[id] == 0);
    }
    if (!foldable || !same_layout(site.meta(), source.meta(source_input))) return std::nullopt;

    Node conv = *producer(site.graph, tensor_argument(site.node, 0));
    ValueId weight = tensor_argument(conv, 1);
    ValueId bias = tensor_argument(conv, 2);
    DType dtype = site.graph.meta(weight).dtype;
    if (!is_floating(dtype)) return std::nullopt;
    size_t rank = site.graph.meta(weight).sizes.size();

    Float64 math(site);
    ValueId scale = math.rsqrt(math.binary(op::add(), math.from(norm->variance), norm->eps));
    if (norm->weight != graph::kNoValue)
      scale = math.binary(op::mul(), scale, ValueRef{math.from(norm->weight)});
    // The weight is large: one multiplication in its own type.
    ValueId factor = math.along_first(math.convert(scale, dtype), rank);
    ValueId new_weight =
        site.emit(op::mul(), {ValueRef{weight}, ValueRef{factor}}, dense_meta(site.graph.meta(weight)));
    ValueId centre = math.from(norm->mean);
    ValueId shift = bias == graph::kNoValue ? math.binary(op::mul(), centre, -1.0)
                                            : math.binary(op::sub(), math.from(bias), ValueRef{centre});
    ValueId new_bias = math.binary(op::mul(), shift, ValueRef{scale});
    if (norm->bias != graph::kNoValue)
      new_bias = math.binary(op::add(), new_bias, ValueRef{math.from(norm->bias)});

    std::vector<Argument> args = conv.args;
    args[1] = ValueRef{new_weight};
    args[2] = ValueRef{math.convert(new_bias, dtype)};
    std::vector<ValueId> results(site.node.outputs.size(), graph::kNoValue);
    results[0] = site.emit(conv.op, std::move(args), site.meta());
    return results;
  });
}

}  // namespace oxy::passes
