#include "runtime/extern/index_range.h"

#include <ATen/ops/any.h>
#include <ATen/ops/ge.h>
#include <ATen/ops/lt.h>
#include <ATen/ops/masked_select.h>
#include <ATen/ops/ne.h>
#include <c10/core/ScalarType.h>
#include <fmt/format.h>

namespace oxy::runtime {
namespace {

// True where an integer names no position, undefined if there are none.
at::Tensor outside(const at::Tensor& wide, const IndexRange& range) {
  at::Tensor result = wide.lt(range.counts_back ? -range.size : 0).logical_or_(wide.ge(range.size));
  if (range.ignored) result.logical_and_(wide.ne(*range.ignored));
  return result;
}

}  // namespace

bool lie_within(const at::Tensor& index, const IndexRange& range) {
  return index.numel() == 0 || !outside(index.to(at::kLong), range).any().item<bool>();
}

void raise_out_of_range(const at::Tensor& index, const IndexRange& range, const std::string& where) {
  const at::Tensor wide = index.to(at::kLong);
  const auto first = wide.masked_select(outside(wide, range)).select(0, 0).item<int64_t>();
  throw IndexOutOfRange({__func__, __FILE__, static_cast<uint32_t>(__LINE__)},
                        fmt::format("index {} is out of bounds for dimension {} with size {}{}", first,
                                    range.dimension, range.size, where.empty() ? "" : " at " + where));
}

}  // namespace oxy::runtime
