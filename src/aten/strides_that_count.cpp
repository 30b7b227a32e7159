#include "aten/strides_that_count.h"

#include <algorithm>

namespace oxy {

TensorMeta with_strides_that_count(TensorMeta meta) {
  const bool is_empty = std::ranges::find(meta.sizes, Expr(0)) != meta.sizes.end();
  for (size_t d = 0; d < meta.sizes.size(); ++d)
    if (is_empty || meta.sizes[d] == Expr(1)) meta.strides[d] = 1;
  if (is_empty) meta.storage_offset = 0;
  return meta;
}

}  // namespace oxy
