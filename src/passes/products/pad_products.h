#pragma once

#include <cstdint>
#include <functional>

#include "graph/graph.h"

namespace oxy::passes {

// A matrix product [rows, inner] x [inner, columns] whose library has no fast kernel for its sizes.
struct ProductSite {
  DType dtype = DType::Float32;
  Device device;
  int64_t rows = 0, inner = 0, columns = 0;  // as estimated where they are symbols
  // The largest power of 2 that divides the sizes of all dimensions that lie side by side in memory.
  int64_t divisor = 1;
  // What padding it copies at each call: bytes that are read and written, and in how many kernels.
  int64_t copied_bytes = 0;
  int64_t copies = 0;
};

struct ProductPadding {
  // Sizes that lie side by side in memory had better be multiples of so many elements, a power of 2. Without
  // this function the pass does nothing.
  std::function<int64_t(DType dtype)> alignment;
  // Whether padding saves more time than the copies take.
  std::function<bool(const ProductSite& site)> pays;
};

// mm and addmm read operands that are filled up with zeros to such multiples, and the columns of their result
// that count are copied out. The copies become part of the generated kernels that write the operands and read
// the result, where there are such; what is added to a constant operand is added once. A matrix product's
// result does not change: zeros are added to its sums. Where only the columns of a transposed weight are too
// many, the last ones are a product of their own instead, and the weight stays as it is.
graph::Graph pad_products(const graph::Graph& source, const ProductPadding& padding);

}  // namespace oxy::passes
