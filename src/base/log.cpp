#include "base/log.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <vector>

#include "base/config.h"
#include "base/error.h"

namespace oxy {

std::atomic<uint32_t> detail::enabled_channels = 0;

namespace {

struct ChannelEntry {
  Channel channel;
  std::string_view name;
  std::string_view shows;
};

constexpr std::array kChannels = {
    ChannelEntry{Channel::Graph, "graph", "the recorded graph, and the graph after the passes"},
    ChannelEntry{Channel::Loops, "loops", "the loop program that lowering makes of the graph"},
    ChannelEntry{Channel::Schedule, "schedule", "which loops were fused, their order, and the memory plan"},
    ChannelEntry{Channel::Code, "code", "the source of every kernel"},
    ChannelEntry{Channel::Guards, "guards", "what a compiled function checks before it runs"},
    ChannelEntry{Channel::Breaks, "breaks", "where and why a graph ends before the function does"},
    ChannelEntry{Channel::Recompiles, "recompiles", "which guard failed when a function is compiled again"},
    ChannelEntry{
        Channel::Dynamic, "dynamic",
        "the symbols of sizes that change, the guards that programs need of them, and static variants"},
    ChannelEntry{Channel::DeviceGraphs, "device_graphs",
                 "what a GPU's calls replay as CUDA graphs, and which steps cannot be recorded"},
    ChannelEntry{Channel::Timing, "timing", "seconds spent in every stage of a compilation"},
};

struct Output {
  std::mutex mutex;
  std::function<void(std::string_view)> sink;
};

Output& output() {
  static Output* once = new Output;  // never destroyed: threads may log while the process ends
  return *once;
}

void write_block(std::string_view block) {
  Output& out = output();
  std::lock_guard lock(out.mutex);
  if (out.sink) {
    out.sink(block);
    return;
  }
  while (!block.empty()) {
    ssize_t written = ::write(STDERR_FILENO, block.data(), block.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // stderr is closed: there is nobody to tell
    block.remove_prefix(static_cast<size_t>(written));
  }
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> split_names(std::string_view list) {
  std::vector<std::string_view> names;
  while (!list.empty()) {
    size_t comma = std::min(list.find(','), list.size());
    if (std::string_view name = trim(list.substr(0, comma)); !name.empty()) names.push_back(name);
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return names;
}

}  // namespace

void detail::write_log(Channel channel, std::string_view text) {
  std::string_view name = kChannels[static_cast<size_t>(channel)].name;
  std::string block;
  do {
    size_t end = std::min(text.find('\n'), text.size());
    block += fmt::format("[{}] {}\n", name, text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  } while (!text.empty());
  write_block(block);
}

void enable_logs(std::string_view channels) {
  uint32_t mask = 0;
  bool help = false;
  for (std::string_view name : split_names(channels)) {
    if (name == "help") {
      help = true;
    } else if (name == "all") {
      mask = (1u << kChannels.size()) - 1;
    } else {
      auto found = std::ranges::find(kChannels, name, &ChannelEntry::name);
      if (found == kChannels.end()) {
        std::vector<std::string_view> valid;
        for (const ChannelEntry& entry : kChannels) valid.push_back(entry.name);
        throw UserError(fmt::format("unknown log channel '{}': the channels are {}, all, help", name,
                                    fmt::join(valid, ", ")));
      }
      mask |= 1u << static_cast<unsigned>(found->channel);
    }
  }
  if (help) write_block(help_for_logs());
  detail::enabled_channels.store(help ? 0 : mask, std::memory_order_relaxed);
}

void start_logging() {
  try {
    enable_logs(config().logs);
  } catch (const UserError& error) {
    throw UserError(fmt::format("OXYFUEL_LOGS: {}", error.what()));
  }
}

std::string enabled_logs() {
  std::vector<std::string_view> names;
  for (const ChannelEntry& entry : kChannels)
    if (log_enabled(entry.channel)) names.push_back(entry.name);
  return fmt::format("{}", fmt::join(names, ","));
}

std::string help_for_logs() {
  std::string text = "OXYFUEL_LOGS takes a comma-separated list of these channels, or all:\n";
  for (const ChannelEntry& entry : kChannels) text += fmt::format("  {:<11} {}\n", entry.name, entry.shows);
  return text;
}

void warn(std::string_view message) {
  write_block(fmt::format("oxyfuel: {}\n", message));
}

void set_log_sink(std::function<void(std::string_view)> sink) {
  Output& out = output();
  std::lock_guard lock(out.mutex);
  out.sink = std::move(sink);
}

}  // namespace oxy
