// Numbers in the place of symbols: the sizes that the recorded call has. What is computed with them is an
// example, not an answer for other calls.
#pragma once

#include <ATen/core/ivalue.h>

#include <functional>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "torch_api/symbolic_node.h"

namespace oxy::trace {

// `symbols` may be null: then nothing is symbolic. Unsupported for symbols without values.
TensorMeta at_hand(const torch_api::Symbols* symbols, TensorMeta meta);
std::vector<graph::Argument> at_hand(const torch_api::Symbols* symbols,
                                     std::span<const graph::Argument> arguments);
// Whether all symbols in them have values.
bool is_at_hand(const torch_api::Symbols* symbols, const TensorMeta& meta);
bool is_at_hand(const torch_api::Symbols* symbols, const std::vector<graph::Argument>& arguments,
                const std::function<const TensorMeta&(graph::ValueId)>& meta_of);
// An integer or a list of integers; other values are themselves.
c10::IValue at_hand(const torch_api::Symbols* symbols, const c10::IValue& value);

}  // namespace oxy::trace
