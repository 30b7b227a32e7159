#include "passes/weights/fold_constants.h"

#include "passes/weights/constant_part.h"

namespace oxy::passes {
namespace {

graph::Graph replace_part(const graph::Graph& source, Invariance invariance,
                          const EvaluateConstants& evaluate, const FoldOptions& options) {
  const ConstantPart part = find_constant_part(source, invariance, options.growth_bytes);
  if (part.results.empty()) return source;
  const std::optional<std::vector<int32_t>> handles = evaluate(part.graph);
  return handles ? with_constants(source, part, *handles) : source;
}

}  // namespace

graph::Graph fold_constants(const graph::Graph& source, const EvaluateConstants& evaluate,
                            const FoldOptions& options) {
  return replace_part(source, Invariance::Always, evaluate, options);
}

graph::Graph separate_size_constants(const graph::Graph& source, const EvaluateConstants& evaluate,
                                     const FoldOptions& options) {
  return replace_part(source, Invariance::WhileSizesAre, evaluate, options);
}

}  // namespace oxy::passes
