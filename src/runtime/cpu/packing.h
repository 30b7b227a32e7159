// Weights in the layouts that oneDNN's kernels want. docs/notes-cpu-libraries.md has the measurements behind
// the numbers.
#pragma once

#include "runtime/device/packing.h"

namespace oxy::runtime {

const Packing& onednn_packing();

}  // namespace oxy::runtime
