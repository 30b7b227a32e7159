// Kernels that the background compiles, and graphs that wait for them behind the calls
// (options={"wait": False}).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "backend/backend.h"
#include "plan/plan.h"
#include "runtime/execution/compiled_graph.h"

namespace oxy::driver {

// Kernels that the background compiles. Thread-safe.
class KernelRequest {
 public:
  // The backend lives for ever.
  KernelRequest(const backend::Backend& device, std::vector<plan::Kernel> kernels);
  ~KernelRequest();  // what is not begun yet is not compiled any more
  KernelRequest(const KernelRequest&) = delete;
  KernelRequest& operator=(const KernelRequest&) = delete;

  // Compiled, or failed. In a child of a fork, which has no such work, it is requested anew.
  bool is_done();
  // Returns true when it is done. Returns false, without waiting longer, if the background has not begun yet,
  // or will never be done because the process ends. Needs no GIL; not to be called by work of the background.
  bool wait();
  // To be called once, when it is done. Throws what the backend threw.
  std::shared_ptr<backend::KernelLibrary> library();
  double seconds() const;  // that compiling took; once it is done

  // How many are on their way in this process.
  static int64_t pending();

 private:
  struct Making;
  void request();

  const backend::Backend& device_;
  std::shared_ptr<const std::vector<plan::Kernel>> kernels_;
  std::mutex mutex_;
  std::shared_ptr<Making> making_;
};

// Makes the graph that runs.
using FinishGraph = std::function<std::unique_ptr<runtime::CompiledGraph>(
    std::shared_ptr<backend::KernelLibrary> library, double compile_seconds)>;

// Pending until the kernels are there. `finish` is called once, with the GIL held, by a thread that asks
// readiness(); what it throws is the graph's failure.
std::unique_ptr<runtime::CompiledGraph> make_pending_graph(std::unique_ptr<KernelRequest> request,
                                                           FinishGraph finish);

// The same graph. If it fails, `report` is told once, with the GIL held.
std::unique_ptr<runtime::CompiledGraph> reporting_failure(
    std::unique_ptr<runtime::CompiledGraph> graph, std::function<void(const std::exception_ptr&)> report);

}  // namespace oxy::driver
