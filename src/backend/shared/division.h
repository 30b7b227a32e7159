// Into how many parts the loops of a long reduction are divided.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "loop/program.h"

namespace oxy::backend {

struct Division {
  std::vector<int64_t> counts;   // of parts, by loop
  std::vector<Expr> lengths;     // iterations of a part, by loop
  std::optional<size_t> uneven;  // the loop whose last part has fewer iterations
  int64_t total = 1;             // the product of the counts
};

// At most `most` parts, outer loops before inner ones. With counts that divide the extents, the last part is
// as long as the others and needs no mask: these are taken if they make nearly as many parts. Elsewhere, if
// `may_be_uneven`, the last part of one loop is shorter, and the length of its parts a multiple of
// `alignment` if it is the last loop.
Division divide(const std::vector<loop::LoopVariable>& loops, int64_t most, bool may_be_uneven,
                int64_t alignment);

}  // namespace oxy::backend
