// How a device's kernel for native_dropout shares the elements among its threads, and so which random number
// each element gets.
#pragma once

#include <cstdint>

namespace oxy::runtime {

struct DropoutThreads {
  int64_t width = 1;    // the most elements that a thread takes at a time, neighbours in memory; a power of 2
  int64_t threads = 1;  // the most that run at once, of all blocks
  int64_t block = 1;    // threads of a block
};

}  // namespace oxy::runtime
