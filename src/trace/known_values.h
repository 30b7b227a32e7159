// Values that follow from small integer inputs alone (sizes of images, lengths, offsets), or from no inputs:
// where the program looks at one, it is calculated at once from the inputs of the call that is captured. The
// recording holds for inputs with the same elements only.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <set>
#include <unordered_map>

#include "graph/graph.h"

namespace oxy::trace {

struct Session;

struct KnownValues {
  std::unordered_map<graph::ValueId, at::Tensor> candidates;  // small integer inputs
  std::unordered_map<graph::ValueId, at::Tensor> calculated;
  std::set<graph::ValueId> read;  // the candidates that something was calculated from
};

// Dense integers or booleans of the CPU, and few.
bool is_small_integer(const at::Tensor& tensor);

// What `value` is for these inputs, not to be written to. Nothing if it follows from anything else, or shares
// memory with what the recording writes to.
std::optional<at::Tensor> known_value(Session& session, graph::ValueId value);

}  // namespace oxy::trace
