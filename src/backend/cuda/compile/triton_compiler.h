// Triton as a compiler that is called: processes with Python and Triton turn kernels' text into machine code.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/cuda/compile/kernel_store.h"
#include "backend/cuda/compile/worker.h"

namespace oxy::backend::cuda {

struct TritonKernel {
  std::string name;
  std::string source;      // print_kernel()'s
  int architecture = 90;   // 10 * major + minor compute capability
  bool is_aligned = true;  // every pointer that it will get is a multiple of 16 bytes
};

struct TritonOptions {
  std::vector<std::string>
      command;          // starts a worker: a Python that has Triton, and _triton_worker.py's path
  std::string version;  // of that Triton
  size_t most_workers = 1;
  std::chrono::milliseconds patience = std::chrono::minutes(5);  // for one kernel
};

// Why kernels are not made with this version of Triton ("3.5.1"): it is older than what PyTorch's oldest
// supported release comes with. Empty: they are. The launcher passes what kernels of these versions take.
std::string why_unfit(const std::string& version);

// Thread-safe. Workers are started when a kernel is not in the store, and end by themselves when idle.
class TritonCompiler {
 public:
  // `store` may be null: nothing is kept.
  TritonCompiler(TritonOptions options, std::shared_ptr<const KernelStore> store);

  // In the order of `kernels`. Unsupported if no worker can be started, or those that were asked for a kernel
  // died; InternalError with Triton's words if a text does not compile. May be interrupted between two
  // kernels (base/interruption.h).
  std::vector<CompiledKernel> compile(std::span<const TritonKernel> kernels);
  // The same; nothing where a text does not compile.
  std::vector<std::optional<CompiledKernel>> try_compile(std::span<const TritonKernel> kernels);

  // What the machine code of a kernel depends on.
  Hash128 key(const TritonKernel& kernel) const;

 private:
  // Throws InternalError of a text that does not compile only if it does not go on after that.
  std::vector<std::optional<CompiledKernel>> compile_all(std::span<const TritonKernel> kernels,
                                                         bool goes_on_after_failures);
  CompiledKernel compile_one(const TritonKernel& kernel);
  std::unique_ptr<Worker> take_idle_worker();  // null: there is none
  void give_back(std::unique_ptr<Worker> worker);

  TritonOptions options_;
  std::shared_ptr<const KernelStore> store_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Worker>> idle_;
};

}  // namespace oxy::backend::cuda
