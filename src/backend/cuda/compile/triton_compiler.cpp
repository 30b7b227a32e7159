#include "backend/cuda/compile/triton_compiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/interruption.h"

namespace oxy::backend::cuda {

namespace {

constexpr std::string_view kProtocol = "1";  // of the answers, as far as the store keeps them
constexpr int kTries = 2;                    // of workers that were just started

int32_t number(const std::string& text) {
  int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  check(error == std::errc() && end == text.data() + text.size(), "a worker's answer is no number: " + text);
  return value;
}

CompiledKernel kernel_of(const TritonKernel& asked, const Message& answer) {
  if (answer.size() == 2 && answer[0] == "error")
    throw InternalError(
        fmt::format("Triton does not compile {}:\n{}\n{}", asked.name, answer[1], asked.source));
  check(answer.size() == 5 && answer[0] == "ok", "a worker's answer of another form");
  return {answer[1], number(answer[2]), number(answer[3]), number(answer[4])};
}

}  // namespace

std::string why_unfit(const std::string& version) {
  constexpr std::pair kOldest{3, 6};
  std::pair found{0, 0};
  const char* const end = version.data() + version.size();
  const auto major = std::from_chars(version.data(), end, found.first);
  if (major.ec != std::errc() || major.ptr == end || *major.ptr != '.') return {};
  if (std::from_chars(major.ptr + 1, end, found.second).ec != std::errc() || found >= kOldest) return {};
  return fmt::format("Triton {} is installed, and {}.{} or a later one is needed", version, kOldest.first,
                     kOldest.second);
}

TritonCompiler::TritonCompiler(TritonOptions options, std::shared_ptr<const KernelStore> store)
    : options_(std::move(options)), store_(std::move(store)) {}

Hash128 TritonCompiler::key(const TritonKernel& kernel) const {
  return hash128(encode({std::string(kProtocol), options_.version, std::to_string(kernel.architecture),
                         kernel.is_aligned ? "1" : "0", kernel.source}));
}

std::vector<CompiledKernel> TritonCompiler::compile(std::span<const TritonKernel> kernels) {
  std::vector<std::optional<CompiledKernel>> found = compile_all(kernels, false);
  std::vector<CompiledKernel> results;
  results.reserve(found.size());
  for (auto& kernel : found) results.push_back(std::move(*kernel));
  return results;
}

std::vector<std::optional<CompiledKernel>> TritonCompiler::try_compile(
    std::span<const TritonKernel> kernels) {
  return compile_all(kernels, true);
}

std::vector<std::optional<CompiledKernel>> TritonCompiler::compile_all(std::span<const TritonKernel> kernels,
                                                                       bool goes_on_after_failures) {
  std::vector<std::optional<CompiledKernel>> found(kernels.size());
  std::vector<size_t> missing;
  for (size_t k = 0; k < kernels.size(); ++k) {
    if (store_) found[k] = store_->find(key(kernels[k]));
    if (!found[k]) missing.push_back(k);
  }
  std::atomic<size_t> next{0};
  std::exception_ptr failure;
  std::mutex failure_mutex;
  const auto fail = [&] {
    const std::lock_guard lock(failure_mutex);
    if (!failure) failure = std::current_exception();
    next = missing.size();
  };
  const auto work = [&] {
    for (size_t m; (m = next.fetch_add(1)) < missing.size();) {
      const size_t k = missing[m];
      try {
        stop_if_interrupted();
        found[k] = compile_one(kernels[k]);
        if (store_) store_->keep(key(kernels[k]), *found[k]);
      } catch (const InternalError&) {
        if (!goes_on_after_failures) fail();
      } catch (...) {
        fail();
      }
    }
  };
  std::vector<std::thread> threads;
  const size_t count = std::min(missing.size(), std::max<size_t>(options_.most_workers, 1));
  for (size_t t = 1; t < count; ++t) threads.emplace_back(work);
  if (count > 0) work();
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
  return found;
}

CompiledKernel TritonCompiler::compile_one(const TritonKernel& kernel) {
  const Message request{kernel.name, std::to_string(kernel.architecture), kernel.is_aligned ? "1" : "0",
                        kernel.source};
  // Idle workers end by themselves after a while: all of them may be gone.
  while (std::unique_ptr<Worker> worker = take_idle_worker())
    if (const auto answer = worker->ask(request, options_.patience)) {
      give_back(std::move(worker));
      return kernel_of(kernel, *answer);
    }
  for (int k = 0; k < kTries; ++k) {
    std::unique_ptr<Worker> worker = Worker::start(options_.command);
    if (!worker)
      throw Unsupported("no process that compiles kernels for the GPU can be started",
                        fmt::format("it would run {}", options_.command.empty() ? "" : options_.command[0]));
    const auto answer = worker->ask(request, options_.patience);
    if (!answer) continue;
    give_back(std::move(worker));
    return kernel_of(kernel, *answer);
  }
  throw Unsupported(
      fmt::format("the process that compiles kernels for the GPU ended before {} was done", kernel.name),
      "is Triton installed for the Python that runs?");
}

std::unique_ptr<Worker> TritonCompiler::take_idle_worker() {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) return nullptr;
  std::unique_ptr<Worker> worker = std::move(idle_.back());
  idle_.pop_back();
  return worker;
}

void TritonCompiler::give_back(std::unique_ptr<Worker> worker) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(worker));
}

}  // namespace oxy::backend::cuda
