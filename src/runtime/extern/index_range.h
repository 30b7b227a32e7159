// Checks of indices that the host makes before a kernel reads them.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <cstdint>
#include <optional>
#include <string>

namespace oxy::runtime {

// Integers that name positions in a dimension.
struct IndexRange {
  int64_t size = 0;
  int64_t dimension = 0;
  bool counts_back = false;             // negative ones count from the end
  std::optional<int64_t> ignored = {};  // an integer that names nothing
};

// Python's IndexError. Nothing that the caller can see was changed.
class IndexOutOfRange : public c10::IndexError {
 public:
  using c10::IndexError::IndexError;
};

// `index`: of any integral type and device. Waits for it.
bool lie_within(const at::Tensor& index, const IndexRange& range);
// IndexOutOfRange that names the first that does not. `where`: the user's line, or "".
[[noreturn]] void raise_out_of_range(const at::Tensor& index, const IndexRange& range,
                                     const std::string& where);

}  // namespace oxy::runtime
