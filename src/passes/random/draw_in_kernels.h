// Dropout inside of generated kernels, with the numbers that eager would draw.
//
// The numbers of a counter-based generator follow from its seed, a counter and the place of an element. So
// dropouts that follow each other, with nothing that draws between them, take their counters from the
// generator in one step (oxyfuel::philox_states), and each of them becomes two functions of elements, which
// fuse: which ones it keeps (oxyfuel::philox_mask), and what these become (oxyfuel::scale_kept). A backward
// pass reads the masks, a byte for an element, and can compute the results again.
#pragma once

#include <functional>
#include <optional>

#include "loop/dropout_threads.h"
#include "passes/rewriting/rewrite.h"

namespace oxy::passes {

using loop::DropoutThreads;

// Of the device's own kernel for elements of this type; nothing where it is not known.
using FindDropoutThreads = std::function<std::optional<DropoutThreads>(DType dtype, Device device)>;

Graph draw_in_kernels(const Graph& source, const FindDropoutThreads& find);

}  // namespace oxy::passes
