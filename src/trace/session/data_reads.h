// What the host has to read while the graph runs: numbers and sizes that only data tell. They become symbols
// that a node computes (graph::ComputedSymbol).
#pragma once

#include <ATen/core/stack.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sym/expr.h"
#include "trace/session/operator_info.h"
#include "trace/session/session.h"

namespace oxy::trace {

// The numbers that a type of integers holds; nothing for other types and booleans. Those of 64 bits are
// checked when they are read.
std::optional<sym::Range> integer_range(at::ScalarType type);

// A new symbol that the node under way computes, known to be in the range. Throws CannotTrace if the
// recording makes none. `what`: what depends on data, for the reason.
Expr new_computed_symbol(Session& session, sym::Range range, const std::string& what);

// Records an operator that returns the number in a tensor: that of an integer is a symbol. Throws CannotTrace
// for others.
void record_number(Session& session, const OperatorInfo& info, torch::jit::Stack* stack);

// Whether the sizes of a call's results are known. Boolean masks select a number of elements that depends on
// data.
bool has_known_shape(const OperatorInfo& info, std::span<const c10::IValue> call);

// The indices of a call of aten::index, with tensors of integers in place of masks: the places where these
// are true. Throws CannotTrace for masks that eager refuses or warns of.
c10::List<std::optional<at::Tensor>> without_masks(Session& session, const at::Tensor& self,
                                                   const c10::List<std::optional<at::Tensor>>& indices);

}  // namespace oxy::trace
