// Compiled kernels on disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "backend/cuda/load/cubin.h"
#include "base/hash.h"

namespace oxy::backend::cuda {

// A folder of files, one a kernel, named by its key. Several processes may use it at once: a file is written
// under another name first, and carries a checksum. The files that were used longest ago go when all of them
// are larger than `most_bytes`. A disk that is full, or a folder that cannot be written, keeps nothing and
// raises nothing. Thread-safe.
class KernelStore {
 public:
  KernelStore(std::filesystem::path folder, uintmax_t most_bytes)
      : folder_(std::move(folder)), most_bytes_(most_bytes) {}

  // Nothing if there is none, or the file is damaged; a damaged file is removed.
  std::optional<Cubin> find(const Hash128& key) const;
  void keep(const Hash128& key, const Cubin& kernel) const;

 private:
  std::filesystem::path file_of(const Hash128& key) const;
  void limit() const;

  std::filesystem::path folder_;
  uintmax_t most_bytes_;
};

}  // namespace oxy::backend::cuda
