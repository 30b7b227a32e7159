// Metadata of an operator's results: from its shape rule, else from PyTorch's meta kernel.
#pragma once

#include <ATen/core/stack.h>

#include <optional>
#include <span>
#include <vector>

#include "trace/operator_info.h"
#include "trace/session.h"

namespace oxy::trace {

struct ResultMetadata {
  // One a returned tensor, lists flattened; nothing where the tensor is undefined.
  std::vector<std::optional<TensorMeta>> tensors;
  std::vector<size_t> list_sizes;   // one a returned list of tensors
  std::vector<c10::IValue> others;  // one a return, set where it is no tensor and no list of tensors
};

// torch.get_default_dtype() of now.
DType default_dtype();

// `args` are the arguments as the graph holds them, `call` as the dispatcher does. Shapes that the operator
// rejects raise what its meta kernel raises, which is eager's own message.
ResultMetadata result_metadata(Session& session, const OperatorInfo& info,
                               const std::vector<graph::Argument>& args, std::span<const c10::IValue> call);

}  // namespace oxy::trace
