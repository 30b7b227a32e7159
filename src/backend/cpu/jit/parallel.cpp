#include "backend/cpu/jit/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/config.h"
#include "base/interruption.h"

namespace oxy::backend::cpu {

void for_each_in_parallel(size_t count, const std::function<void(size_t)>& work, int threads) {
  if (threads <= 0) threads = config().compile_threads;
  if (threads <= 0) threads = static_cast<int>(std::thread::hardware_concurrency());
  size_t helpers = std::min(count, static_cast<size_t>(std::max(threads, 1)));
  helpers = helpers > 0 ? helpers - 1 : 0;

  std::atomic<size_t> next = 0;
  std::atomic<bool> failed = false;
  std::exception_ptr error;
  auto run = [&] {
    for (size_t i = next++; i < count && !failed; i = next++) {
      try {
        stop_if_interrupted();
        work(i);
      } catch (...) {
        if (!failed.exchange(true)) error = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> pool;
    try {
      for (size_t i = 0; i < helpers; ++i) pool.emplace_back(run);
    } catch (const std::system_error&) {
      // No more threads to be had: those that run, and this one, do the work.
    }
    run();
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace oxy::backend::cpu
