// Compiled kernels on disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/hash.h"

namespace oxy::backend::cuda {

// Machine code, and what a launch needs beside it.
struct CompiledKernel {
  std::string machine_code;  // a cubin
  int32_t threads = 0;       // of one program of the grid
  int32_t shared_bytes = 0;
  int32_t extra_pointers = 0;  // null pointers that a launch adds behind the kernel's arguments
  friend bool operator==(const CompiledKernel&, const CompiledKernel&) = default;
};

// A folder of files, one a kernel, named by its key. Several processes may use it at once: a file is written
// under another name first, and carries a checksum. The files that were used longest ago go when all of them
// are larger than `most_bytes`. A disk that is full, or a folder that cannot be written, keeps nothing and
// raises nothing. Thread-safe.
class KernelStore {
 public:
  KernelStore(std::filesystem::path folder, uintmax_t most_bytes)
      : folder_(std::move(folder)), most_bytes_(most_bytes) {}

  // Nothing if there is none, or the file is damaged; a damaged file is removed.
  std::optional<CompiledKernel> find(const Hash128& key) const;
  void keep(const Hash128& key, const CompiledKernel& kernel) const;

 private:
  std::filesystem::path file_of(const Hash128& key) const;
  void limit() const;

  std::filesystem::path folder_;
  uintmax_t most_bytes_;
};

}  // namespace oxy::backend::cuda
