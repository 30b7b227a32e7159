#include "backend/cuda/print/scans.h"

#include "base/error.h"

namespace oxy::backend::cuda {

using loop::ReductionKind;

namespace {

constexpr const char* kLogAddExp = "log_add_exp";

void need_log_add_exp(BlockPrinter& block) {
  block.needs.helpers.insert(kLogAddExp);
  block.needs.libdevice = true;
}

// What changes no result.
std::string identity(ReductionKind kind, DType dtype) {
  if (kind == ReductionKind::RunningLogSumExp) return "float(\"-inf\")";
  const char* const number = kind == ReductionKind::RunningProd ? "1" : "0";
  return is_floating(dtype) ? fmt::format("{}.0", number) : number;
}

std::string combined(BlockPrinter& block, ReductionKind kind, const std::string& a, const std::string& b) {
  switch (kind) {
    case ReductionKind::RunningSum:
      return fmt::format("{} + {}", a, b);
    case ReductionKind::RunningProd:
      return fmt::format("{} * {}", a, b);
    case ReductionKind::RunningLogSumExp:
      need_log_add_exp(block);
      return fmt::format("{}({}, {})", kLogAddExp, a, b);
    default:
      throw InternalError("a scan of no kind");
  }
}

}  // namespace

Value scan_block(BlockPrinter& block, ReductionKind kind, const Value& value) {
  const int dimension = block.reduced_dimension();
  const std::string elements = block.whole(value);
  const auto scanned = [&] {
    switch (kind) {
      case ReductionKind::RunningSum:
        return fmt::format("tl.cumsum({}, {})", elements, dimension);
      case ReductionKind::RunningProd:
        return fmt::format("tl.cumprod({}, {})", elements, dimension);
      case ReductionKind::RunningLogSumExp:
        need_log_add_exp(block);
        return fmt::format("tl.associative_scan({}, {}, {})", elements, dimension, kLogAddExp);
      default:
        throw InternalError("a scan of no kind");
    }
  };
  return block.named(scanned(), value.dtype, block.row_dims() | kColumns);
}

Value continue_scan(BlockPrinter& block, ReductionKind kind, const Value& scanned) {
  const std::string carry = block.new_name("carry");
  const std::string shape = block.has_rows() ? block.block_shape(kRows) : "[1]";
  block.around_loops().line("{} = tl.full({}, {}, {})", carry, shape, identity(kind, scanned.dtype),
                            triton_type(scanned.dtype));
  const Value value = block.named(combined(block, kind, carry, scanned.text), scanned.dtype, scanned.dims);
  const std::string last = fmt::format("tl.arange(0, {0}){1} == {0} - 1", block.columns_name(),
                                       block.has_rows() ? "[None, :]" : "");
  block.out().line("{} = tl.sum(tl.where({}, {}, {}), {}, keep_dims=True)", carry, last, value.text,
                   is_floating(scanned.dtype) ? "0.0" : "0", block.reduced_dimension());
  return value;
}

}  // namespace oxy::backend::cuda
