// Operators that the program or a library of its own has registered with torch, in a form that graphs can
// hold.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>

#include "aten/schema.h"

namespace oxy::runtime {

// An operator without writes and aliases that calls `op`, an opaque operator, on copies of its arguments. It
// returns what `op` returns but for the arguments that it has written to, then the written copies in the
// order of the arguments: a tensor or a list for each, undefined where the argument is None. `autocast`: the
// type that autocast had where the program called `op`; its kernel runs under that again. Registered with
// torch's dispatcher at the first call and kept for the life of the process; thread-safe. `op` itself where
// it has neither writes nor aliases and `autocast` is empty. UserError if torch has no `op` any more.
const OperatorSchema* functional_call(const OperatorSchema& op, std::optional<at::ScalarType> autocast);

// The operator that the program knows: that behind a functional_call(), else `op` itself.
const OperatorSchema& called_operator(const OperatorSchema& op);

// A copy with the same strides, gaps and repetitions among them. Differentiable.
at::Tensor copy_as_it_lies(const at::Tensor& tensor);

}  // namespace oxy::runtime
