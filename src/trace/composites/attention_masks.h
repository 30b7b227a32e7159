// Masks of attention in a form that more of PyTorch's kernels take.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace oxy::trace {

struct PlainMask {
  std::optional<at::Tensor> mask;
  bool is_causal = false;  // each row of the query sees the rows of the key that do not come behind it
};

// What says the same as `mask`, a trace tensor, of attention between these tensors. There is no mask where
// its truth values are all true or its numbers all 0, whatever the inputs are, or where it is causal: masks
// of sizes alone often are. The kernels of devices want elements of a row side by side, so there a mask that
// repeats one along rows is copied.
PlainMask plain_mask(const at::Tensor& mask, const at::Tensor& query, const at::Tensor& key,
                     const at::Tensor& value);

}  // namespace oxy::trace
