// Metadata of an operator's results: from its shape rule, else from PyTorch's meta kernel.
#pragma once

#include <ATen/core/stack.h>

#include <optional>
#include <span>
#include <vector>

#include "trace/operator_info.h"
#include "trace/result_metadata.h"
#include "trace/session.h"

namespace oxy::trace {

// torch.get_default_dtype() of now.
DType default_dtype();

// The device of the results of a call: what it says, else that of its first tensor with dimensions, else of
// any tensor.
Device result_device(std::span<const c10::IValue> call);

// `args` are the arguments as the graph holds them, `call` as the dispatcher does. Shapes that the operator
// rejects raise what its meta kernel raises, which is eager's own message.
ResultMetadata result_metadata(Session& session, const OperatorInfo& info,
                               const std::vector<graph::Argument>& args, std::span<const c10::IValue> call);

}  // namespace oxy::trace
