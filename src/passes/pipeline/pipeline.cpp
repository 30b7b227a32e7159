#include "passes/pipeline/pipeline.h"

#include <fmt/format.h>

#include <algorithm>

#include "aten/operators.h"
#include "base/config.h"
#include "base/error.h"
#include "base/timing.h"
#include "ops/core/registry.h"
#include "passes/attention/recognise_attention.h"
#include "passes/random/draw_in_kernels.h"
#include "passes/simplification/accumulate_embeddings.h"
#include "passes/simplification/common_subexpressions.h"
#include "passes/simplification/dead_code.h"
#include "passes/simplification/decompose.h"
#include "passes/simplification/recognise_activations.h"
#include "passes/simplification/separate_results.h"
#include "passes/simplification/share_key_heads.h"
#include "passes/simplification/simplify_arithmetic.h"
#include "passes/simplification/simplify_views.h"
#include "passes/staging/bring_to_device.h"
#include "passes/training/recompute.h"
#include "passes/weights/convolution_to_linear.h"
#include "passes/weights/fold_batch_norm.h"
#include "passes/weights/separate_bias.h"

namespace oxy::passes {
namespace {

constexpr int kMaxCleanups = 4;  // rounds of simplification until nothing changes

template <Graph (*kRun)(const Graph&)>
Graph plain(const Graph& graph, const PassContext&) {
  return kRun(graph);
}

// Whether the graph calls one of these operators. A pass that does not apply does not copy the graph either.
template <const OperatorSchema* (*... kOperators)()>
bool calls(const Graph& graph) {
  return std::ranges::any_of(graph.nodes,
                             [](const Node& node) { return (... || (node.op == kOperators())); });
}

template <const OperatorSchema* (*... kOperators)()>
bool if_called(const Graph& graph, const PassContext&) {
  return calls<kOperators...>(graph);
}

constexpr Pass kDeadCode = {"passes.dead_code", plain<remove_dead_code>,
                            [](const Graph& graph, const PassContext&) { return has_dead_code(graph); }};
constexpr Pass kSimplifyViews = {"passes.simplify_views", plain<simplify_views>};
constexpr Pass kSimplifyArithmetic = {"passes.simplify_arithmetic", plain<simplify_arithmetic>};
constexpr Pass kCommonSubexpressions = {"passes.common_subexpressions", plain<merge_common_subexpressions>};
constexpr Pass kFoldBatchNorm = {"passes.fold_batch_norm", plain<fold_batch_norm>,
                                 if_called<op::batch_norm, op::batch_norm_evaluation>};
constexpr Pass kDrawInKernels = {"passes.draw_in_kernels",
                                 [](const Graph& graph, const PassContext& context) {
                                   return draw_in_kernels(graph, context.options.dropout_threads);
                                 },
                                 [](const Graph& graph, const PassContext& context) {
                                   return context.options.dropout_threads != nullptr &&
                                          calls<op::native_dropout>(graph);
                                 }};
constexpr Pass kConvolutionToLinear = {"passes.convolution_to_linear", plain<convolution_to_linear>,
                                       if_called<op::convolution>};
constexpr Pass kChannelsLast = {"passes.channels_last",
                                [](const Graph& graph, const PassContext& context) {
                                  return use_channels_last(graph, context.options.choose_layout);
                                },
                                [](const Graph& graph, const PassContext& context) {
                                  return context.options.choose_layout &&
                                         calls<op::convolution, op::convolution_backward>(graph);
                                }};
constexpr Pass kSeparateBias = {
    "passes.separate_bias", plain<separate_bias>, [](const Graph& graph, const PassContext& context) {
      return context.options.separates_bias && calls<op::convolution, op::convolution_backward>(graph);
    }};
constexpr Pass kDepthwiseConvolutions = {"passes.depthwise_convolutions",
                                         [](const Graph& graph, const PassContext& context) {
                                           return generate_depthwise_convolutions(
                                               graph, context.options.generates_depthwise_convolutions);
                                         },
                                         [](const Graph& graph, const PassContext& context) {
                                           return context.options.generates_depthwise_convolutions &&
                                                  calls<op::convolution, op::convolution_backward>(graph);
                                         }};
constexpr Pass kPackConvolution = {"passes.pack_convolution",
                                   [](const Graph& graph, const PassContext& context) {
                                     return pack_convolution(graph, context.options.convolution);
                                   },
                                   [](const Graph& graph, const PassContext& context) {
                                     return context.options.convolution.pays &&
                                            calls<op::convolution, op::convolution_backward>(graph);
                                   }};
constexpr Pass kPackLinear = {
    "passes.pack_linear",
    [](const Graph& graph, const PassContext& context) { return pack_linear(graph, context.options.linear); },
    [](const Graph& graph, const PassContext& context) {
      return context.options.linear.pays && calls<op::mm, op::addmm>(graph);
    }};
constexpr Pass kVectorProducts = {
    "passes.vector_products",
    [](const Graph& graph, const PassContext& context) {
      return generate_vector_products(graph, context.options.generates_vector_products);
    },
    [](const Graph& graph, const PassContext& context) {
      return context.options.generates_vector_products && calls<op::mm, op::addmm>(graph);
    }};
constexpr Pass kWidenedProducts = {"passes.widened_products",
                                   [](const Graph& graph, const PassContext& context) {
                                     return widen_products(graph, context.options.widens_products);
                                   },
                                   [](const Graph& graph, const PassContext& context) {
                                     return context.options.widens_products && calls<op::mm>(graph);
                                   }};
constexpr Pass kPadProducts = {"passes.pad_products",
                               [](const Graph& graph, const PassContext& context) {
                                 return pad_products(graph, context.options.products);
                               },
                               [](const Graph& graph, const PassContext& context) {
                                 return context.options.products.alignment && calls<op::mm, op::addmm>(graph);
                               }};
constexpr Pass kProductActivations = {
    "passes.product_activations",
    [](const Graph& graph, const PassContext& context) {
      return apply_product_activations(graph, context.options.product_applies_activation);
    },
    [](const Graph& graph, const PassContext& context) {
      return context.options.product_applies_activation && calls<op::addmm>(graph);
    }};
constexpr Pass kRecogniseActivations = {"passes.recognise_activations", plain<recognise_activations>,
                                        if_called<op::tanh, op::erf, op::sigmoid>};
constexpr Pass kRecogniseAttention = {"passes.recognise_attention",
                                      [](const Graph& graph, const PassContext& context) {
                                        return recognise_attention(graph, context.options.choose_attention);
                                      },
                                      [](const Graph& graph, const PassContext& context) {
                                        return context.options.choose_attention &&
                                               calls<op::softmax>(graph) && calls<op::bmm>(graph);
                                      }};
constexpr Pass kShareKeyHeads = {
    "passes.share_key_heads", plain<share_key_heads>, [](const Graph& graph, const PassContext&) {
      return std::ranges::any_of(graph.nodes,
                                 [](const Node& node) { return ops::traits_of(*node.op).shares_key_heads; });
    }};
constexpr Pass kAccumulateEmbeddings = {"passes.accumulate_embeddings", plain<accumulate_embeddings>,
                                        if_called<op::embedding_gradient>};
constexpr Pass kBringToDevice = {
    "passes.bring_to_device", plain<bring_to_device>,
    [](const Graph& graph, const PassContext&) { return has_several_devices(graph); }};
constexpr Pass kDecompose = {"passes.decompose", plain<decompose>};
constexpr Pass kFoldConstants = {
    "passes.fold_constants",
    [](const Graph& graph, const PassContext& context) {
      return fold_constants(graph, context.options.evaluate_constants, context.options.folding);
    },
    [](const Graph&, const PassContext& context) { return context.options.evaluate_constants != nullptr; }};
constexpr Pass kSeparateSizeConstants = {
    "passes.separate_size_constants",
    [](const Graph& graph, const PassContext& context) {
      return separate_size_constants(graph, context.options.keep_size_constants, context.options.folding);
    },
    [](const Graph&, const PassContext& context) { return context.options.keep_size_constants != nullptr; }};
constexpr Pass kSeparateResults = {"passes.separate_results",
                                   [](const Graph& graph, const PassContext& context) {
                                     return separate_results(graph, context.had_own_memory);
                                   }};
constexpr Pass kRecompute = {"passes.recompute_for_backward",
                             [](const Graph& graph, const PassContext& context) {
                               return recompute_for_backward(graph, context.options.activation_memory_budget);
                             },
                             [](const Graph& graph, const PassContext&) {
                               return std::ranges::any_of(
                                   graph.locations, [](const graph::Location& location) {
                                     return location.checkpoint == graph::kInBackwardPass;
                                   });
                             }};

constexpr const Pass* kCleanUp[] = {&kSimplifyViews, &kSimplifyArithmetic, &kCommonSubexpressions,
                                    &kDeadCode};
// What fold_batch_norm computes is folded once the packing passes have seen that nobody else holds it.
constexpr const Pass* kOnWholeOperators[] = {
    &kDrawInKernels,         &kFoldBatchNorm,      &kRecogniseActivations,
    &kRecogniseAttention,    &kDeadCode,           &kShareKeyHeads,
    &kConvolutionToLinear,   &kChannelsLast,       &kSeparateBias,
    &kDepthwiseConvolutions, &kPackConvolution,    &kPackLinear,
    &kAccumulateEmbeddings,  &kDecompose,          &kVectorProducts,
    &kPadProducts,           &kProductActivations, &kWidenedProducts};
constexpr const Pass* kAtTheEnd[] = {&kBringToDevice, &kFoldConstants,   &kDeadCode, &kSeparateSizeConstants,
                                     &kDeadCode,      &kSeparateResults, &kDeadCode, &kRecompute};

class PassRunner {
 public:
  PassRunner(Graph graph, const Options& options, const Dump* dump)
      : graph_(std::move(graph)), context_{options, outputs_with_own_memory(graph_)}, dump_(dump) {}

  Graph run() {
    clean_up();
    for (const Pass* pass : kOnWholeOperators) step(*pass);
    clean_up();
    for (const Pass* pass : kAtTheEnd) step(*pass);
    return std::move(graph_);
  }

 private:
  // Whether the program's results have the strides that they had, as far as these are numbers. Those of size
  // 1 count as well: the caller sees them.
  void check_outputs(const std::vector<std::vector<Expr>>& strides) const {
    const auto same = [](const Expr& a, const Expr& b) {
      return !a.is_constant() || !b.is_constant() || a == b;
    };
    for (size_t i = 0; i < strides.size(); ++i)
      check(std::ranges::equal(strides[i], strides_of(graph_.outputs.at(i)), same),
            fmt::format("output {} has other strides", i));
  }

  std::vector<Expr> strides_of(const graph::Output& output) const {
    return output.value == graph::kNoValue ? std::vector<Expr>() : graph_.meta(output.value).strides;
  }

  void step(const Pass& pass) {
    if (pass.applies && !pass.applies(graph_, context_)) return;
    std::vector<std::vector<Expr>> strides;
    if (strict())
      for (const graph::Output& output : graph_.outputs) strides.push_back(strides_of(output));
    {
      Span span(pass.stage);
      graph_ = pass.run(graph_, context_);
    }
    ++count_;
    if (strict()) {
      try {
        graph::verify(graph_, true);
        check_outputs(strides);
      } catch (const InternalError& error) {
        throw InternalError(fmt::format("after {}: {}", pass.stage, error.what()));
      }
    }
    if (dump_ == nullptr || !dump_->enabled()) return;
    std::string text = graph::print(graph_);
    if (text != dumped_) dump_->write(fmt::format("{:02}_{}.txt", count_, pass.stage), text);
    dumped_ = std::move(text);
  }

  void clean_up() {
    step(kDeadCode);
    for (int round = 0; round < kMaxCleanups; ++round) {
      const size_t before = graph_.nodes.size();
      for (const Pass* pass : kCleanUp) step(*pass);
      if (graph_.nodes.size() == before) return;
    }
  }

  Graph graph_;
  PassContext context_;
  const Dump* dump_;
  std::string dumped_;  // the last text written
  int count_ = 0;
};

}  // namespace

std::span<const Pass* const> all_passes() {
  static const std::vector<const Pass*> passes = [] {
    std::vector<const Pass*> found;
    for (const std::span<const Pass* const> group :
         {std::span<const Pass* const>(kCleanUp), std::span<const Pass* const>(kOnWholeOperators),
          std::span<const Pass* const>(kAtTheEnd)})
      for (const Pass* pass : group)
        if (std::ranges::find(found, pass) == found.end()) found.push_back(pass);
    return found;
  }();
  return passes;
}

Graph run_passes(Graph graph, const Options& options, const Dump* dump) {
  return PassRunner(std::move(graph), options, dump).run();
}

}  // namespace oxy::passes
