// Known values: values of the recording that depend on small integer inputs alone (sizes of images, lengths,
// offsets), or on no input. If the program looks at the elements of one, they are calculated at once from the
// inputs of the captured call. The recording is then valid only for inputs with the same elements.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <set>
#include <unordered_map>

#include "graph/graph.h"

namespace oxy::trace {

struct Session;

// What is said of the elements of small integer inputs that vary from call to call.
enum class VaryingElements : uint8_t {
  Unknown,  // nothing: only data tell
  Symbols,  // each one that is looked at is a symbol (element_expressions.h)
  Numbers,  // they are those of this call, and the recording is valid for no others
};

struct KnownValues {
  std::unordered_map<graph::ValueId, at::Tensor> candidates;  // small integer inputs
  std::unordered_map<graph::ValueId, at::Tensor> varying;     // those whose elements vary
  VaryingElements of_varying = VaryingElements::Unknown;
  bool would_help = false;  // elements of varying inputs were asked for, and are unknown
  std::unordered_map<graph::ValueId, at::Tensor> calculated;
  std::set<graph::ValueId> read;  // the inputs that something was calculated from
};

// Whether the tensor is dense, of integers or booleans, in host memory, and has few elements (at most 64).
bool is_small_integer(const at::Tensor& tensor);

// The elements of `value` for the inputs of this call: a real tensor, not to be written to. Notes the inputs
// in KnownValues::read. Nothing if the value depends on anything else, or shares memory with a tensor that
// the recording writes to.
std::optional<at::Tensor> known_value(Session& session, graph::ValueId value);

}  // namespace oxy::trace
