// Every environment variable that oxyfuel reads, read once.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace oxy {

struct Config {
  std::string logs;     // OXYFUEL_LOGS: comma-separated channels (base/log.h)
  std::string dump;     // OXYFUEL_DUMP: directory for the text form of every stage; empty: none
  bool strict = false;  // OXYFUEL_STRICT: internal errors are raised instead of falling back to eager
  bool strict_shapes =
      false;               // OXYFUEL_STRICT_SHAPES: every shape rule is compared with eager while recording
  std::string compiler;    // OXYFUEL_COMPILER: "clang", "system", or empty for the build's default
  std::string system_cxx;  // OXYFUEL_CXX: the command that the system compiler runs; empty: search for one
  std::string isa;         // OXYFUEL_ISA: "scalar", "avx2", "avx512", "neon", or empty for the machine's best
  // OXYFUEL_COMPILE_AHEAD: whether backward passes are compiled before they are asked for; none: where
  // kernels run on another device than the host.
  std::optional<bool> compile_ahead;
  // OXYFUEL_CHECK_INDICES: the host checks indices before a kernel reads them.
  bool check_indices = false;
  int compile_threads = 0;  // OXYFUEL_COMPILE_THREADS: threads that compile kernels; 0: one a core
  bool launch_blocking =
      false;  // CUDA_LAUNCH_BLOCKING, which NVIDIA's driver reads: a launch waits for its end
  // OXYFUEL_CACHE, "off", or by default "oxyfuel" in $XDG_CACHE_HOME or ~/.cache: the folder in which
  // compiled kernels of GPUs are kept; empty: they are not kept.
  std::string cache;
};

// Looks a variable up; none if it is not set.
using Environment = std::function<std::optional<std::string>(std::string_view name)>;

// UserError naming the variable and the values it may have.
Config read_config(const Environment& environment);

// The process's environment at the first call. Throws like read_config.
const Config& config();

// Starts as config().strict; may be changed at any time, by any thread.
bool strict();
void set_strict(bool value);

}  // namespace oxy
