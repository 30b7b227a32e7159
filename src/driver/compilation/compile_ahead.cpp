#include "driver/compilation/compile_ahead.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <utility>

#include "base/background.h"

namespace oxy::driver {
namespace {

enum class State : uint8_t { Waiting, Running, Done };

// What the thread and the caller share.
class Work {
 public:
  explicit Work(AheadSteps steps) : steps_(std::move(steps)) {}

  // Makes the plan, unless somebody has begun to.
  void run() {
    {
      const std::scoped_lock lock(mutex_);
      if (state_ != State::Waiting) return;
      state_ = State::Running;
    }
    std::exception_ptr problem;
    try {
      steps_.plan();
    } catch (...) {
      problem = std::current_exception();
    }
    const std::scoped_lock lock(mutex_);
    problem_ = std::move(problem);
    state_ = State::Done;
    if (may_compile_kernels_) request_kernels();
    changed_.notify_all();
  }

  void compile_kernels() {
    const std::scoped_lock lock(mutex_);
    may_compile_kernels_ = true;
    if (state_ == State::Done) request_kernels();
  }

  std::unique_ptr<runtime::CompiledGraph> take() {
    {
      // Who asks for the graph now compiles its kernels faster than a queue.
      const std::scoped_lock lock(mutex_);
      if (state_ == State::Waiting) may_compile_kernels_ = false;
    }
    run();
    // The mutex is not held while kernels are waited for: the background may need it before it compiles them.
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return state_ == State::Done; });
    std::unique_ptr<KernelRequest> kernels = std::move(kernels_);
    const AheadSteps steps = std::exchange(steps_, {});
    const std::exception_ptr problem = std::exchange(problem_, nullptr);
    lock.unlock();
    if (kernels && !kernels->wait()) kernels.reset();
    return steps.finish(kernels.get(), problem);
  }

  // Nothing is done any more, and nothing is held.
  void end() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return state_ != State::Running; });
    state_ = State::Done;
    steps_ = {};
    kernels_.reset();
  }

 private:
  void request_kernels() {
    if (problem_ || kernels_) return;
    try {
      kernels_ = steps_.request_kernels();
    } catch (...) {
      problem_ = std::current_exception();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  AheadSteps steps_;
  State state_ = State::Waiting;
  bool may_compile_kernels_ = false;
  std::exception_ptr problem_;
  std::unique_ptr<KernelRequest> kernels_;
};

class Begun final : public autograd::BegunCompilation {
 public:
  explicit Begun(AheadSteps steps) : work_(std::make_shared<Work>(std::move(steps))) {
    background::submit(
        [work = work_] {
          // A child of a fork would wait for ever for a plan that is half made.
          const background::Piece piece;
          if (!background::is_ending()) work->run();
        },
        background::Lane::Awaited);
  }
  ~Begun() override { work_->end(); }

  void compile_kernels() override { work_->compile_kernels(); }
  std::unique_ptr<runtime::CompiledGraph> take() override { return work_->take(); }

 private:
  std::shared_ptr<Work> work_;
};

}  // namespace

std::unique_ptr<autograd::BegunCompilation> compile_ahead(AheadSteps steps) {
  return std::make_unique<Begun>(std::move(steps));
}

}  // namespace oxy::driver
