// Metadata of an operator's results: from its shape rule, or else from PyTorch's meta kernel.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "trace/session/operator_info.h"
#include "trace/session/result_metadata.h"
#include "trace/session/session.h"

namespace oxy::trace {

// The present torch.get_default_dtype().
DType default_dtype();

// The device of the results of a call: its `device` argument, or else the device of its first tensor that has
// dimensions, or else of any tensor.
Device result_device(std::span<const c10::IValue> call);

// The metadata of the results of a call. `args`: the arguments as the graph has them; `call`: the same as the
// dispatcher has them. If the operator refuses them, throws what its meta kernel throws, which is eager's own
// message. Throws CannotTrace if eager's kernel refuses them and the meta kernel does not.
ResultMetadata result_metadata(Session& session, const OperatorInfo& info,
                               const std::vector<graph::Argument>& args, std::span<const c10::IValue> call);

}  // namespace oxy::trace
