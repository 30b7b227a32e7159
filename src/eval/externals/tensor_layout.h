// The sizes and strides of external tensors, as far as they are symbols.
#pragma once

#include <optional>

#include "aten/tensor_meta.h"
#include "eval/state/interpreter.h"

namespace oxy::eval {

// The layout of the external tensor `real`, with symbols for what varies between calls: as the user has
// marked it, or else as CaptureOptions say. Nothing: all are numbers.
// Strides of a dense tensor follow from the sizes. Opens the tensor guard of the source to all values of the
// symbols. Precondition: GuardSet::require_tensor() of this source.
std::optional<TensorMeta> admit_layout(Interpreter& interpreter, PyObject* real, SourceId source);

}  // namespace oxy::eval
