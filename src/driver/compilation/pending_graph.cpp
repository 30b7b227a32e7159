#include "driver/compilation/pending_graph.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <span>
#include <thread>
#include <utility>

#include "base/background.h"
#include "base/error.h"
#include "base/timing.h"
#include "cpy/gil.h"
#include "runtime/execution/forwarding_graph.h"

namespace oxy::driver {

using runtime::CompiledGraph;
using runtime::Readiness;

namespace {

std::atomic<int64_t> pending_requests = 0;

constexpr size_t kMostAtOnce = 16;

// So many kernels are compiled at once: between two such pieces the process may end or fork.
size_t kernels_at_once() {
  return std::clamp<size_t>(std::thread::hardware_concurrency(), 1, kMostAtOnce);
}

// The libraries of pieces, one behind the other.
class JoinedLibrary final : public backend::KernelLibrary {
 public:
  JoinedLibrary(std::vector<std::shared_ptr<backend::KernelLibrary>> pieces, size_t kernels_of_each)
      : pieces_(std::move(pieces)), kernels_of_each_(kernels_of_each) {}
  backend::KernelFunction function(size_t kernel) const override {
    return pieces_.at(kernel / kernels_of_each_)->function(kernel % kernels_of_each_);
  }

 private:
  std::vector<std::shared_ptr<backend::KernelLibrary>> pieces_;
  size_t kernels_of_each_;
};

}  // namespace

// What the background and the request share. The background writes, then sets `stage`.
struct KernelRequest::Making {
  enum class Stage : uint8_t {
    Waiting,
    Begun,
    Done,     // compiled, or failed
    Dropped,  // nobody compiles the kernels any more, as nobody wants them or the process ends
  };

  Making(const Making&) = delete;
  Making& operator=(const Making&) = delete;

  std::shared_ptr<const std::vector<plan::Kernel>> kernels;
  size_t at_once = kernels_at_once();
  int64_t generation = background::generation();
  std::atomic<bool> is_unwanted = false;
  std::atomic<Stage> stage = Stage::Waiting;
  std::atomic<bool> is_counted = true;
  std::vector<std::unique_ptr<backend::CompiledKernels>> pieces;
  std::exception_ptr problem;
  double seconds = 0;

  Making() { ++pending_requests; }
  ~Making() { uncount(); }

  void uncount() {
    if (is_counted.exchange(false)) --pending_requests;
  }

  void end_as(Stage end) {
    stage = end;
    stage.notify_all();
  }

  void compile(const backend::Backend& device) {
    stage = Stage::Begun;
    const auto start = std::chrono::steady_clock::now();
    try {
      const std::span<const plan::Kernel> all(*kernels);
      for (size_t k = 0; k < all.size(); k += at_once) {
        if (is_unwanted || background::is_ending()) return end_as(Stage::Dropped);
        const background::Piece piece;
        const Span span("jit");
        pieces.push_back(device.compile(all.subspan(k, std::min(at_once, all.size() - k))));
      }
    } catch (...) {
      problem = std::current_exception();
    }
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    uncount();
    end_as(Stage::Done);
  }
};

KernelRequest::KernelRequest(const backend::Backend& device, std::vector<plan::Kernel> kernels)
    : device_(device), kernels_(std::make_shared<const std::vector<plan::Kernel>>(std::move(kernels))) {
  request();
}

KernelRequest::~KernelRequest() {
  if (!making_) return;
  making_->is_unwanted = true;
  making_->uncount();
}

void KernelRequest::request() {
  making_ = std::make_shared<Making>();
  making_->kernels = kernels_;
  // Work that the background throws away ends, too.
  struct Work {
    std::shared_ptr<Making> making;
    const backend::Backend& device;
    ~Work() {
      if (making->stage != Making::Stage::Done) making->end_as(Making::Stage::Dropped);
    }
  };
  const auto work = std::make_shared<Work>(making_, device_);
  const auto compile = [work] { work->making->compile(work->device); };
  if (!background::submit(compile, background::Lane::Awaited)) compile();
}

bool KernelRequest::is_done() {
  const std::scoped_lock lock(mutex_);
  if (!making_) return true;
  if (making_->stage != Making::Stage::Done && making_->generation != background::generation()) request();
  return making_->stage == Making::Stage::Done;
}

bool KernelRequest::wait() {
  if (is_done()) return true;
  std::shared_ptr<Making> making;
  {
    const std::scoped_lock lock(mutex_);
    making = making_;
  }
  making->stage.wait(Making::Stage::Begun);
  return making->stage == Making::Stage::Done;
}

double KernelRequest::seconds() const {
  return making_ ? making_->seconds : 0;
}

std::shared_ptr<backend::KernelLibrary> KernelRequest::library() {
  std::shared_ptr<Making> done;
  {
    const std::scoped_lock lock(mutex_);
    check(making_ && making_->stage == Making::Stage::Done, "kernels are asked for that are not there");
    done = std::move(making_);
    kernels_ = nullptr;  // their texts are not needed any more
  }
  if (done->problem) std::rethrow_exception(done->problem);
  std::vector<std::shared_ptr<backend::KernelLibrary>> libraries;
  for (const auto& piece : done->pieces) libraries.push_back(piece->load());
  return std::make_shared<JoinedLibrary>(std::move(libraries), done->at_once);
}

int64_t KernelRequest::pending() {
  return pending_requests;
}

namespace {

class PendingGraph final : public runtime::ForwardingGraph {
 public:
  PendingGraph(std::unique_ptr<KernelRequest> request, FinishGraph finish)
      : request_(std::move(request)), finish_(std::move(finish)) {}

  Readiness readiness() override {
    const Readiness known = state_.load(std::memory_order_acquire);
    if (known != Readiness::Pending || !request_->is_done()) return known;
    const cpy::WithGil gil;
    if (is_finishing_ || state_ != Readiness::Pending) return state_;
    is_finishing_ = true;
    try {
      const double seconds = request_->seconds();
      graph_ = finish_(request_->library(), seconds);
    } catch (...) {
      failure_ = std::current_exception();
    }
    finish_ = nullptr;
    state_.store(graph_ ? Readiness::Ready : Readiness::Failed, std::memory_order_release);
    return state_;
  }
  std::exception_ptr failure() const override { return failure_; }

  std::vector<at::Tensor> run(std::span<const at::Tensor> inputs, std::span<int64_t> symbols) override {
    return inner().run(inputs, symbols);
  }
  std::vector<at::Tensor> run_and_release(std::vector<at::Tensor> inputs,
                                          std::span<int64_t> symbols) override {
    return inner().run_and_release(std::move(inputs), symbols);
  }
  runtime::DeviceGraphState device_graph_state() const override {
    return graph_ ? graph_->device_graph_state() : runtime::DeviceGraphState();
  }

 protected:
  CompiledGraph& inner() const override {
    check(state_.load(std::memory_order_acquire) == Readiness::Ready, "a graph runs before it is ready");
    return *graph_;
  }

 private:
  std::unique_ptr<KernelRequest> request_;
  FinishGraph finish_;
  bool is_finishing_ = false;  // the GIL guards it
  std::atomic<Readiness> state_ = Readiness::Pending;
  std::unique_ptr<CompiledGraph> graph_;
  std::exception_ptr failure_;
};

class ReportingGraph final : public runtime::ForwardingGraph {
 public:
  ReportingGraph(std::unique_ptr<CompiledGraph> graph, std::function<void(const std::exception_ptr&)> report)
      : graph_(std::move(graph)), report_(std::move(report)) {}

  Readiness readiness() override {
    const Readiness state = graph_->readiness();
    if (state == Readiness::Failed && !was_reported_.exchange(true)) {
      const cpy::WithGil gil;
      report_(graph_->failure());
    }
    return state;
  }
  std::vector<at::Tensor> run(std::span<const at::Tensor> inputs, std::span<int64_t> symbols) override {
    return graph_->run(inputs, symbols);
  }
  std::vector<at::Tensor> run_and_release(std::vector<at::Tensor> inputs,
                                          std::span<int64_t> symbols) override {
    return graph_->run_and_release(std::move(inputs), symbols);
  }

 protected:
  CompiledGraph& inner() const override { return *graph_; }

 private:
  std::unique_ptr<CompiledGraph> graph_;
  std::function<void(const std::exception_ptr&)> report_;
  std::atomic<bool> was_reported_ = false;
};

}  // namespace

std::unique_ptr<CompiledGraph> make_pending_graph(std::unique_ptr<KernelRequest> request,
                                                  FinishGraph finish) {
  return std::make_unique<PendingGraph>(std::move(request), std::move(finish));
}

std::unique_ptr<CompiledGraph> reporting_failure(std::unique_ptr<CompiledGraph> graph,
                                                 std::function<void(const std::exception_ptr&)> report) {
  return std::make_unique<ReportingGraph>(std::move(graph), std::move(report));
}

}  // namespace oxy::driver
