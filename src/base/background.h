// Work that nobody waits for: one thread of low priority, which lives while there is some.
#pragma once

#include <functional>
#include <mutex>

namespace oxy::background {

// Runs the work when all that was submitted before is done. It must not throw, must not need the GIL, and
// must hold nothing whose end does. Dropped if the process ends first, and in a child of a fork.
void submit(std::function<void()> work);

// Between two pieces of work is a good place to ask, and to return if so: the process waits for its end.
bool is_ending();

// While a piece is worked on that holds locks which others in the process need, a fork waits.
class Piece {
 public:
  Piece();

 private:
  std::unique_lock<std::mutex> lock_;
};

// Returns when all work that was submitted is done. Not to be called with the GIL, or by such work.
void wait();

// Nothing is begun any more, here and in later calls of submit(); returns when the present work has ended.
// Happens at the latest when the process's static objects end.
void end();

}  // namespace oxy::background
