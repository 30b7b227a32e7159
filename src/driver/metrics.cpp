#include "driver/metrics.h"

#include "base/log.h"
#include "base/timing.h"

namespace oxy::driver {

Metrics& metrics() {
  static Metrics instance;
  return instance;
}

void reset_metrics() {
  metrics() = Metrics();
  reset_stage_times();
}

void count_break(const std::string& reason, const std::string& hint, std::vector<std::string> stack) {
  log(Channel::Breaks, "{}{}{}", reason, hint.empty() ? "" : " — " + hint,
      stack.empty() ? "" : "\n  at " + stack.front());
  for (BreakRecord& record : metrics().breaks) {
    if (record.reason != reason || record.stack != stack) continue;
    ++record.count;
    return;
  }
  metrics().breaks.push_back({reason, hint, std::move(stack), 1});
}

}  // namespace oxy::driver
