#include "base/background.h"

#include <pthread.h>
#if defined(__linux__)
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <iterator>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace oxy::background {
namespace {

struct Work {
  std::deque<std::function<void()>> waiting;
  std::thread thread;
  bool is_running = false;  // `thread` takes what is waiting
};

// Of this process. A child of a fork has one of its own: the threads are not there.
struct State {
  int64_t generation = 0;
  std::mutex mutex;
  std::shared_mutex piece;  // shared by pieces; taken before `mutex`
  std::condition_variable changed;
  std::array<Work, 4> lanes;  // by Lane
  bool is_held = false;       // the lane Awaited
  std::atomic<bool> is_ending = false;

  Work& operator[](Lane lane) { return lanes[static_cast<size_t>(lane)]; }
};

std::atomic<State*> present = nullptr;

void become_unimportant() {
#if defined(__linux__)
  // Of this thread alone, in spite of the name. Where it is refused, the priority stays.
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), 19);
#endif
}

void work_on(State& state, Lane lane) {
  if (lane == Lane::Spare) become_unimportant();
  std::unique_lock lock(state.mutex);
  Work& own = state[lane];
  while (!own.waiting.empty() && !state.is_ending && !(state.is_held && lane == Lane::Awaited)) {
    std::function<void()> work = std::move(own.waiting.front());
    own.waiting.pop_front();
    lock.unlock();
    work();
    work = nullptr;
    lock.lock();
  }
  own.is_running = false;
  state.changed.notify_all();
}

// With the mutex held. False: there is no thread, and all that waits is dropped.
bool start(State& state, Lane lane) {
  Work& own = state[lane];
  if (own.is_running || own.waiting.empty() || (state.is_held && lane == Lane::Awaited)) return true;
  if (own.thread.joinable()) own.thread.join();  // its last step was to say so
  try {
    own.thread = std::thread([&state, lane] { work_on(state, lane); });
    own.is_running = true;
  } catch (const std::system_error&) {
    own.waiting.clear();
  }
  return own.is_running;
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
  const int64_t generation = (*present).generation;
  present = new State;  // the other one stays: its threads were not copied, and cannot be joined
  (*present).generation = generation + 1;
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

bool submit(std::function<void()> work, Lane lane) {
  State& own = state();
  const std::scoped_lock lock(own.mutex);
  if (own.is_ending) return false;
  own[lane].waiting.push_back(std::move(work));
  return start(own, lane);
}

bool is_ending() {
  return state().is_ending;
}

int64_t generation() {
  return state().generation;
}

void wait() {
  State& own = state();
  std::unique_lock lock(own.mutex);
  own.changed.wait(lock, [&] {
    return std::ranges::none_of(own.lanes, [](const Work& lane) { return lane.is_running; });
  });
}

void hold() {
  State& own = state();
  const std::scoped_lock lock(own.mutex);
  own.is_held = true;
}

void release() {
  State& own = state();
  const std::scoped_lock lock(own.mutex);
  own.is_held = false;
  start(own, Lane::Awaited);
}

void end() {
  State& own = state();
  std::vector<std::thread> last;
  std::deque<std::function<void()>> dropped;
  {
    const std::scoped_lock lock(own.mutex);
    own.is_ending = true;
    for (Work& lane : own.lanes) {
      std::ranges::move(lane.waiting, std::back_inserter(dropped));
      lane.waiting.clear();
      if (lane.thread.joinable()) last.push_back(std::move(lane.thread));
    }
  }
  for (std::thread& thread : last) thread.join();
}

}  // namespace oxy::background
