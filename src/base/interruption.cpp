#include "base/interruption.h"

#include <atomic>

namespace oxy {

namespace {

std::atomic<InterruptionCheck> registered = nullptr;
thread_local int interruptible = 0;

}  // namespace

void set_interruption_check(InterruptionCheck check) {
  registered = check;
}

Interruptible::Interruptible() {
  ++interruptible;
}

Interruptible::~Interruptible() {
  --interruptible;
}

void stop_if_interrupted() {
  const InterruptionCheck is_interrupted = interruptible > 0 ? registered.load() : nullptr;
  if (is_interrupted != nullptr && is_interrupted()) throw Interrupted{};
}

}  // namespace oxy
