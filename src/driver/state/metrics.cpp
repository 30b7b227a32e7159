#include "driver/state/metrics.h"

#include "base/log.h"
#include "base/timing.h"
#include "runtime/variants/static_variants.h"

namespace oxy::driver {

CompileStatistics& CompileStatistics::operator+=(const CompileStatistics& other) {
  graphs += other.graphs;
  operators += other.operators;
  shape_fallbacks += other.shape_fallbacks;
  kernels += other.kernels;
  launches += other.launches;
  extern_calls += other.extern_calls;
  arena_bytes += other.arena_bytes;
  packed_bytes += other.packed_bytes;
  for (const auto& [name, count] : other.shape_fallback_names) shape_fallback_names[name] += count;
  for (const auto& [name, count] : other.extern_names) extern_names[name] += count;
  return *this;
}

Metrics& metrics() {
  static Metrics instance;
  return instance;
}

void reset_metrics() {
  metrics() = Metrics();
  reset_stage_times();
  runtime::StaticVariantCounts& variants = runtime::static_variant_counts();
  for (std::atomic<int64_t>* count : {&variants.made, &variants.kept, &variants.dropped, &variants.let_go})
    *count = 0;
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
