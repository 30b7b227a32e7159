// Dropout inside of generated kernels, with the numbers that eager would draw.
//
// The numbers of a counter-based generator follow from its seed, a counter and the place of an element. So
// dropouts that follow each other, with nothing that draws between them, take their counters from the
// generator in one step (oxyfuel::philox_states), and each of them becomes a function of elements
// (oxyfuel::philox_dropout), which fuses.
#pragma once

#include <functional>
#include <optional>

#include "passes/rewriting/rewrite.h"

namespace oxy::passes {

// How a device's own kernel for dropout shares the elements among its threads.
struct DropoutThreads {
  int64_t width = 1;    // the most elements that a thread takes at a time, neighbours in memory; a power of 2
  int64_t threads = 1;  // the most that run at once, of all blocks
  int64_t block = 1;    // threads of a block
};

// Of elements of this type on this device; nothing where it is not known.
using FindDropoutThreads = std::function<std::optional<DropoutThreads>(DType dtype, Device device)>;

Graph draw_in_kernels(const Graph& source, const FindDropoutThreads& find);

}  // namespace oxy::passes
