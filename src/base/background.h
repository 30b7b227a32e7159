// Work that goes on behind calls. Each lane has one thread, which lives while the lane has work.
#pragma once

#include <cstdint>
#include <functional>
#include <shared_mutex>

namespace oxy::background {

enum class Lane : uint8_t {
  Spare,    // nobody waits for it: its thread has the lowest priority
  Awaited,  // calls get faster once it is done, or wait for it
  // Libraries load what calls will need of them, on two threads.
  Libraries,
  MoreLibraries,
};

// Runs the work when all that was submitted to the lane before is done. It must not throw, must not need the
// GIL, and must hold nothing whose end does. Dropped if the process ends first, and in a child of a fork: who
// waits for it has to notice, by the end of what it holds or by generation().
// False: it is not taken, as the process ends or has no more threads.
bool submit(std::function<void()> work, Lane lane = Lane::Spare);

// Between two pieces of work is a good place to ask, and to return if so: the process waits for its end.
bool is_ending();

// How many forks lie between this process and the one that was started. Work that was submitted when the
// number was another one is not done here.
int64_t generation();

// While pieces are worked on that hold locks which others in the process need, a fork waits.
class Piece {
 public:
  Piece();

 private:
  std::shared_lock<std::shared_mutex> lock_;
};

// Returns when all work that was begun or may begin is done. Not to be called with the GIL, or by such work.
void wait();

// For tests: from hold() to release() nothing of the lane Awaited is begun.
void hold();
void release();

// Nothing is begun any more, here and in later calls of submit(); returns when the present work has ended.
// Happens at the latest when the process's static objects end.
void end();

}  // namespace oxy::background
