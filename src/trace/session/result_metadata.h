// The metadata of the results of a call, flattened.
#pragma once

#include <ATen/core/ivalue.h>

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "aten/tensor_meta.h"
#include "graph/graph.h"

namespace oxy::trace {

struct ResultMetadata {
  // One for each returned tensor, with lists flattened; nothing for an undefined tensor.
  std::vector<std::optional<TensorMeta>> tensors;
  std::vector<size_t> list_sizes;   // one a returned list of tensors
  std::vector<c10::IValue> others;  // one a return, set where it is no tensor and no list of tensors
  std::vector<graph::ComputedSymbol> computed;  // of sizes that only data tell
};

// Makes it of the values that a call has returned. `describe(tensor, r)` gives the metadata of a defined
// tensor that belongs to return number r, or nothing. Values that are not tensors are moved out of
// `returned`.
template <class Describe>
ResultMetadata metadata_of_returned(std::span<c10::IValue> returned, const Describe& describe) {
  ResultMetadata result;
  result.others.resize(returned.size());
  for (size_t r = 0; r < returned.size(); ++r) {
    const auto add = [&](const at::Tensor& tensor) {
      result.tensors.push_back(tensor.defined() ? std::optional<TensorMeta>(describe(tensor, r))
                                                : std::nullopt);
    };
    if (returned[r].isTensor()) {
      add(returned[r].toTensor());
    } else if (returned[r].isTensorList()) {
      const std::vector<at::Tensor> list = returned[r].toTensorVector();
      for (const at::Tensor& tensor : list) add(tensor);
      result.list_sizes.push_back(list.size());
    } else {
      result.others[r] = std::move(returned[r]);
    }
  }
  return result;
}

}  // namespace oxy::trace
