#include "passes/products/depthwise_convolutions.h"

#include <algorithm>

#include "aten/operators.h"
#include "ops/core/composer.h"
#include "passes/rewriting/rewrite.h"

namespace oxy::passes {
namespace {

using Replacement = std::optional<std::vector<ValueId>>;
using Numbers = std::vector<Expr>;

// Of a window: the kernel has no loop over them. For larger ones cuDNN keeps a part of the image in
// registers, which is faster (7 x 7 for ConvNeXt).
constexpr int64_t kMostElements = 25;

struct Convolution {
  ValueId weight = graph::kNoValue;  // [channels, 1, rows, columns]
  Numbers stride, padding, dilation;
};

Numbers pair_of(const Argument& argument) {
  Numbers numbers = std::get<Numbers>(argument);
  if (numbers.size() == 1) numbers.push_back(numbers[0]);
  return numbers;
}

// Nothing where the node is another one. `first`: the place of stride among the arguments.
std::optional<Convolution> depthwise(const Site& site, ValueId input, ValueId weight, size_t first) {
  const std::vector<Argument>& args = site.node.args;
  const TensorMeta &image = site.graph.meta(input), &window = site.graph.meta(weight);
  if (image.rank() != 4 || window.rank() != 4 || image.dtype != window.dtype) return std::nullopt;
  const auto* const groups = std::get_if<Expr>(&args.at(first + 5));
  const bool is_transposed = std::get<bool>(args.at(first + 3));
  const bool is_depthwise = groups != nullptr && *groups == image.sizes[1] && window.sizes[0] == *groups &&
                            window.sizes[1] == Expr(1) && *groups != Expr(1);
  if (is_transposed || !is_depthwise) return std::nullopt;
  const auto elements = (window.sizes[2] * window.sizes[3]).as_constant();
  if (!elements || *elements > kMostElements) return std::nullopt;
  Convolution found{weight, pair_of(args[first]), pair_of(args[first + 1]), pair_of(args[first + 2])};
  const auto is_known = [](const Expr& e) { return e.is_constant(); };
  for (const Numbers* numbers : {&found.stride, &found.padding, &found.dilation})
    if (!std::ranges::all_of(*numbers, is_known)) return std::nullopt;
  return found;
}

// The result with the layout of `wanted`; nothing if it would have another one.
Replacement convolve(const Site& site, ValueId input, const Convolution& convolution, bool turned,
                     const TensorMeta& wanted) {
  const bool channels_last = is_channels_last(wanted) && !is_contiguous(wanted);
  if (wanted.strides !=
      (channels_last ? channels_last_strides(wanted.sizes) : contiguous_strides(wanted.sizes)))
    return std::nullopt;
  ops::Composer composer(site.graph, site.node);
  ValueRef window = composer.call(op::permute(), {ValueRef{convolution.weight}, Numbers{2, 3, 0, 1}});
  if (turned) window = composer.call(op::flip(), {window, Numbers{0, 1}});
  window = composer.call(op::clone(), {window, MemoryFormat::Contiguous});
  const MemoryFormat format = channels_last ? MemoryFormat::ChannelsLast : MemoryFormat::Contiguous;
  const ValueRef result = composer.call(
      op::depthwise_convolution(),
      {ValueRef{input}, window, convolution.stride, convolution.padding, convolution.dilation, format});
  if (!same_layout(composer.meta(result), wanted)) return std::nullopt;
  return {{result.id}};
}

Replacement of_forward(const Site& site) {
  // (input, weight, bias, stride, …)
  if (tensor_argument(site.node, 2) != graph::kNoValue) return std::nullopt;
  const ValueId input = tensor_argument(site.node, 0);
  const auto found = depthwise(site, input, tensor_argument(site.node, 1), 3);
  if (!found) return std::nullopt;
  return convolve(site, input, *found, false, site.meta());
}

// The gradient of the input alone. That of the weight stays the library's.
Replacement of_backward(const Site& site) {
  // (grad_output, input, weight, bias_sizes, stride, …, groups, output_mask)
  constexpr size_t kMask = 10;
  const auto* const mask = std::get_if<std::vector<bool>>(&site.node.args.at(kMask));
  if (mask == nullptr || !mask->at(0) || mask->at(2)) return std::nullopt;
  auto found = depthwise(site, tensor_argument(site.node, 1), tensor_argument(site.node, 2), 4);
  if (!found) return std::nullopt;
  const TensorMeta window = site.graph.meta(found->weight);
  for (size_t d = 0; d < 2; ++d) {
    if (found->stride[d] != Expr(1)) return std::nullopt;
    found->padding[d] = found->dilation[d] * (window.sizes[d + 2] - 1) - found->padding[d];
    if (found->padding[d].constant() < 0) return std::nullopt;
  }
  const ValueId gradient = tensor_argument(site.node, 0);
  const Replacement of_input = convolve(site, gradient, *found, true, site.meta(0));
  if (!of_input) return std::nullopt;
  std::vector<ValueId> results = keep_without(site, 0);
  results[0] = of_input->front();
  return results;
}

}  // namespace

graph::Graph generate_depthwise_convolutions(const graph::Graph& source,
                                             const GeneratesDepthwiseConvolutions& generates) {
  if (!generates) return source;
  return rewrite(source, [&](const Site& site) -> Replacement {
    const bool is_forward = site.node.op == op::convolution();
    if (!is_forward && site.node.op != op::convolution_backward()) return std::nullopt;
    if (!generates(site.graph.meta(tensor_argument(site.node, 0)).dtype)) return std::nullopt;
    return is_forward ? of_forward(site) : of_backward(site);
  });
}

}  // namespace oxy::passes
