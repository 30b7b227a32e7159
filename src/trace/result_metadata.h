// What is known of the results of a call before it runs.
#pragma once

#include <ATen/core/ivalue.h>

#include <optional>
#include <vector>

#include "aten/tensor_meta.h"

namespace oxy::trace {

struct ResultMetadata {
  // One a returned tensor, lists flattened; nothing where the tensor is undefined.
  std::vector<std::optional<TensorMeta>> tensors;
  std::vector<size_t> list_sizes;   // one a returned list of tensors
  std::vector<c10::IValue> others;  // one a return, set where it is no tensor and no list of tensors
};

}  // namespace oxy::trace
