// Elements as expressions. Tensors of few integers are calculated with as Python's ints are, as far as
// operators have a rule (ops::Counting): those that are made of sizes and other ints of the program's, and
// those whose elements vary (VaryingElements::Symbols). There each one that the program looks at is a symbol,
// read when a call begins. So lengths, offsets and sizes of images decide as sizes of tensors do: by guards.
#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>

#include <optional>
#include <vector>

#include "graph/graph.h"
#include "trace/session/operator_info.h"
#include "trace/session/session.h"

namespace oxy::trace {

// The elements of `value`, a tensor of integers, in row-major order. Its sizes are numbers from then on.
// Nothing if they are no expressions.
std::optional<std::vector<Expr>> element_expressions(Session& session, graph::ValueId value);

// An operator that returns the number in a tensor: gives it, if it is an expression.
bool answer_from_expressions(Session& session, const OperatorInfo& info, torch::jit::Stack* stack);

// The call of an operator whose second argument may say what size its result has: says it, if the elements of
// the first one do.
void give_size(Session& session, const OperatorInfo& info, torch::jit::Stack* stack);

}  // namespace oxy::trace
