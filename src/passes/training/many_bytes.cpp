#include "passes/training/many_bytes.h"

#include "aten/dtype.h"
#include "sym/hints.h"

namespace oxy::passes {

bool has_many_bytes(const TensorMeta& meta) {
  constexpr int64_t kLeast = 1 << 20;
  return sym::estimate(element_count(meta)) * static_cast<int64_t>(item_size(meta.dtype)) >= kLeast;
}

}  // namespace oxy::passes
