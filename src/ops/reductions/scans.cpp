// Lowerings of scans, for devices whose kernels have them.
#include "ops/core/lowering_arguments.h"
#include "ops/reductions/lowerings.h"

namespace oxy::ops::lowerings {

using loop::ReductionKind;

namespace {

// A row without others beside it is the work of one program. Eager's kernel divides a longer one among many.
constexpr int64_t kLongestLoneRow = 16384;

bool is_long_lone_row(const std::vector<Expr>& sizes, const Expr& row) {
  return sym::product(sizes) == row && row.range().high > kLongestLoneRow;
}

void scan(LoweringContext& context, const Node& node, ReductionKind kind) {
  if (!context.has_scans()) not_lowered(node, "scans on this device");
  const Tensor x = context.operand(node, 0);
  const DType dtype = context.output_meta(node).dtype;
  const DType type = loop::compute_dtype(dtype);
  if (!is_floating(type) && type != DType::Int64 && type != DType::Int32)
    not_lowered(node, "a scan of narrow integers");
  const int64_t along = x.rank() == 0 ? 0 : dim(node, 1, x.rank());
  const Expr row = x.rank() == 0 ? Expr(1) : x.sizes[static_cast<size_t>(along)];
  if (row == Expr(1)) return context.set(node.outputs[0], context.cast(x, dtype));
  if (is_long_lone_row(x.sizes, row)) not_lowered(node, "a long row alone");
  const auto element = [type](Value v) { return v.builder->cast(v, type); };
  context.set(node.outputs[0], context.scan(kind, x, along, type, dtype, element));
}

}  // namespace

void cumsum(LoweringContext& context, const Node& node) {
  scan(context, node, ReductionKind::RunningSum);
}
void cumprod(LoweringContext& context, const Node& node) {
  scan(context, node, ReductionKind::RunningProd);
}
void logcumsumexp(LoweringContext& context, const Node& node) {
  scan(context, node, ReductionKind::RunningLogSumExp);
}

}  // namespace oxy::ops::lowerings
