// Counts of what the compiler has done since the last reset. oxyfuel.metrics() shows them.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace oxy::driver {

// A graph break, or a reason why something runs in eager. The texts are for the user.
struct BreakRecord {
  std::string reason;
  std::string hint;
  std::vector<std::string> stack;  // the user's lines, innermost first
  int64_t count = 0;
};

// Counts of compiling one recording or graph.
struct CompileStatistics {
  int64_t graphs = 0;           // recordings
  int64_t operators = 0;        // recorded
  int64_t shape_fallbacks = 0;  // operators whose metadata came from PyTorch's meta kernels
  int64_t kernels = 0;
  int64_t launches = 0;      // in the plans
  int64_t extern_calls = 0;  // in the plans
  int64_t arena_bytes = 0;   // of the plans
  int64_t packed_bytes = 0;  // copies of weights that the plans hold
  std::map<std::string, int64_t> shape_fallback_names;
  std::map<std::string, int64_t> extern_names;

  CompileStatistics& operator+=(const CompileStatistics& other);
};

struct Metrics {
  CompileStatistics compiled;
  int64_t recompiles = 0;
  int64_t calls_compiled = 0;  // whole calls that ran an entry
  int64_t calls_eager = 0;     // whole calls that ran in eager
  int64_t guards = 0;
  std::vector<BreakRecord> breaks;
  std::vector<std::string> recompile_reasons;
};

// The metrics of the process. The GIL guards them.
Metrics& metrics();
void reset_metrics();
// Counts a break: breaks with the same reason and stack are one record.
void count_break(const std::string& reason, const std::string& hint, std::vector<std::string> stack);

}  // namespace oxy::driver
