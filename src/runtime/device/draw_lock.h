// Who may draw from a device's default generator of random numbers.
//
// PyTorch has one generator a device for all threads. Two things need it for themselves for a moment:
// recording operators that draw, as the generator then refuses whoever draws for a result, and trying out how
// an operator draws, as the generator is put back behind it.
#pragma once

#include <mutex>
#include <shared_mutex>

#include "cpy/gil.h"

namespace oxy::runtime {

// Steps of plans hold it while an operator draws.
class DrawsBesideOthers {
 public:
  DrawsBesideOthers();

 private:
  std::shared_lock<std::shared_timed_mutex> lock_;
};

// Keeps all others from drawing while it lives: steps of plans by the lock, and Python threads by the GIL. It
// waits for those that have begun.
class DrawsAlone {
 public:
  DrawsAlone();
  // False: others draw for long, and go on.
  bool is_alone() const { return lock_.owns_lock(); }

 private:
  cpy::WithGil gil_;
  std::unique_lock<std::shared_timed_mutex> lock_;
};

}  // namespace oxy::runtime
