// Which random number each element gets where a GPU's kernel for dropout shares elements among its threads,
// as PyTorch's does (aten/src/ATen/native/cuda/Dropout.cu).
#pragma once

#include "loop/random_bits.h"
#include "sym/expr.h"

namespace oxy::loop {

using sym::Expr;

struct DropoutThreads {
  int64_t width = 1;    // the most elements that a thread takes at a time, neighbours in memory; a power of 2
  int64_t threads = 1;  // the most that run at once, of all blocks
  int64_t block = 1;    // threads of a block
};

// The operands of Op::Philox for an element, but for the seed.
struct DropoutPlace {
  Expr counter;   // above that of the first element
  Expr position;  // 4 * thread + word
};

// Of the element number `element`, in memory order, of `count`. `width`: the elements that a thread takes at
// a time. `threads`: those that run at once. With a width of 1, a thread's four numbers go to elements that
// lie `threads` apart.
DropoutPlace dropout_place(const Expr& element, const Expr& count, int64_t width, int64_t threads);

}  // namespace oxy::loop
