// Log channels: what OXYFUEL_LOGS shows on stderr. A disabled channel costs one relaxed load.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace oxy {

enum class Channel : uint8_t {
  Graph,
  Loops,
  Schedule,
  Code,
  Guards,
  Breaks,
  Recompiles,
  Dynamic,
  DeviceGraphs,
  Timing
};

namespace detail {
extern std::atomic<uint32_t> enabled_channels;
void write_log(Channel channel, std::string_view text);
}  // namespace detail

inline bool log_enabled(Channel channel) {
  return detail::enabled_channels.load(std::memory_order_relaxed) >> static_cast<unsigned>(channel) & 1u;
}

// Every line of the text is written as "[graph] line". The lines of one call stay together. Thread-safe.
template <class... Args>
void log(Channel channel, fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(channel)) detail::write_log(channel, fmt::format(format, std::forward<Args>(args)...));
}

// Enables exactly the channels of a comma-separated list; "all" means all; "help" prints help_for_logs() to
// stderr and enables none. UserError naming the valid channels if a name is unknown; nothing changes then.
void enable_logs(std::string_view channels);

// Applies OXYFUEL_LOGS. Called once when the package is loaded. Throws like enable_logs.
void start_logging();

// "graph", ... separated by commas, as enable_logs takes them.
std::string enabled_logs();

// One line a channel: its name and what it shows.
std::string help_for_logs();

// A message for the user that no channel hides ("oxyfuel: the disk is full"). Thread-safe.
void warn(std::string_view message);

// Where lines go instead of stderr, whole blocks at a time; empty: stderr again. For tests and for Python.
void set_log_sink(std::function<void(std::string_view block)> sink);

}  // namespace oxy
