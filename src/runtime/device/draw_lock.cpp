#include "runtime/device/draw_lock.h"

#include <chrono>
#include <thread>

namespace oxy::runtime {

namespace {

// An operator may wait for the GIL, which the one who waits for it has.
constexpr auto kMostWaiting = std::chrono::milliseconds(100);
// An operator of eager's that has begun on another thread has drawn by then.
constexpr auto kSomeTime = std::chrono::milliseconds(1);

std::shared_timed_mutex& draw_mutex() {
  static std::shared_timed_mutex& mutex = *new std::shared_timed_mutex;  // never destroyed: threads may draw
  return mutex;                                                          // while the process ends
}

}  // namespace

DrawsBesideOthers::DrawsBesideOthers() : lock_(draw_mutex()) {}

DrawsAlone::DrawsAlone() : lock_(draw_mutex(), kMostWaiting) {
  if (is_alone()) std::this_thread::sleep_for(kSomeTime);
}

}  // namespace oxy::runtime
