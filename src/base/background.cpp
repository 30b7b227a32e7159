#include "base/background.h"

#include <pthread.h>
#if defined(__linux__)
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <atomic>
#include <condition_variable>
#include <deque>
#include <system_error>
#include <thread>

namespace oxy::background {
namespace {

// Of this process. A child of a fork has one of its own: the thread is not there.
struct State {
  std::mutex mutex;
  std::mutex piece;  // taken before `mutex`
  std::condition_variable changed;
  std::deque<std::function<void()>> waiting;
  std::thread thread;
  bool is_running = false;  // `thread` takes what is waiting
  std::atomic<bool> is_ending = false;
};

std::atomic<State*> present = nullptr;

void become_unimportant() {
#if defined(__linux__)
  // Of this thread alone, in spite of the name. Where it is refused, the priority stays.
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), 19);
#endif
}

void work_on(State& state) {
  become_unimportant();
  std::unique_lock lock(state.mutex);
  while (!state.waiting.empty() && !state.is_ending) {
    std::function<void()> work = std::move(state.waiting.front());
    state.waiting.pop_front();
    lock.unlock();
    work();
    work = nullptr;
    lock.lock();
  }
  state.is_running = false;
  state.changed.notify_all();
}

void before_fork() {
  State& state = *present;
  state.piece.lock();
  state.mutex.lock();
}

void after_fork_in_parent() {
  State& state = *present;
  state.mutex.unlock();
  state.piece.unlock();
}

void after_fork_in_child() {
  present = new State;  // the other one stays: its thread was not copied, and cannot be joined
}

State& state() {
  static const bool is_made = [] {
    present = new State;
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    static const struct AtExit {
      ~AtExit() { end(); }
    } at_exit;
    return true;
  }();
  static_cast<void>(is_made);
  return *present;
}

}  // namespace

Piece::Piece() : lock_(state().piece) {}

void submit(std::function<void()> work) {
  State& own = state();
  const std::scoped_lock lock(own.mutex);
  if (own.is_ending) return;
  own.waiting.push_back(std::move(work));
  if (own.is_running) return;
  if (own.thread.joinable()) own.thread.join();  // its last step was to say so
  try {
    own.thread = std::thread([&own] { work_on(own); });
    own.is_running = true;
  } catch (const std::system_error&) {
    own.waiting.clear();  // no more threads to be had
  }
}

bool is_ending() {
  return state().is_ending;
}

void wait() {
  State& own = state();
  std::unique_lock lock(own.mutex);
  own.changed.wait(lock, [&] { return !own.is_running; });
}

void end() {
  State& own = state();
  std::thread last;
  std::deque<std::function<void()>> dropped;
  {
    const std::scoped_lock lock(own.mutex);
    own.is_ending = true;
    dropped.swap(own.waiting);
    last.swap(own.thread);
  }
  if (last.joinable()) last.join();
}

}  // namespace oxy::background
