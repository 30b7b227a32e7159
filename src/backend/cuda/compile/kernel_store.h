// Compiled kernels on disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "backend/cuda/compile/file_store.h"
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

// A FileStore of kernels, under the keys of TritonCompiler::key(). Thread-safe.
class KernelStore {
 public:
  KernelStore(std::filesystem::path folder, uintmax_t most_bytes)
      : files_(std::move(folder), ".kernel", most_bytes) {}

  // Nothing if there is none, or the file is damaged.
  std::optional<CompiledKernel> find(const Hash128& key) const;
  void keep(const Hash128& key, const CompiledKernel& kernel) const;

 private:
  FileStore files_;
};

}  // namespace oxy::backend::cuda
