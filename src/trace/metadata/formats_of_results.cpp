#include "trace/metadata/formats_of_results.h"

#include "graph/sizes.h"
#include "trace/tensors/trace_tensor.h"

namespace oxy::trace {
namespace {

void decide_ones(torch_api::Symbols& symbols, std::span<const Expr> sizes) {
  std::vector<sym::Condition> are_one;
  for (const Expr& size : sizes) are_one.push_back(sym::equal(size, 1));
  const sym::Condition question = sym::Condition::all(std::move(are_one));
  const std::optional<bool> known = question.constant();
  if (known ? *known : symbols.decide_layout(question) == true) symbols.fix_ones();
}

}  // namespace

void guard_formats(Session& session, const std::vector<at::Tensor>& results) {
  if (!session.symbols) return;
  for (const at::Tensor& result : results) {
    const TraceTensor* trace = trace_tensor(result);
    if (trace == nullptr || (result.dim() != 4 && result.dim() != 5)) continue;
    const TensorMeta& meta = session.meta_of(trace->value());
    const bool has_inner_channels = meta.strides[1] == Expr(1) && !is_contiguous(meta);
    if (!has_inner_channels || !graph::has_symbols(meta)) continue;
    decide_ones(*session.symbols, {&meta.sizes[1], 1});
    decide_ones(*session.symbols, std::span(meta.sizes).subspan(2));
  }
}

}  // namespace oxy::trace
