#include "base/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <span>

#include "base/error.h"

namespace oxy {
namespace {

bool parse_flag(std::string_view name, const std::string& text) {
  if (text.empty() || text == "0" || text == "false" || text == "no" || text == "off") return false;
  if (text == "1" || text == "true" || text == "yes" || text == "on") return true;
  throw UserError(fmt::format("{}={}: expected 0 or 1", name, text));
}

std::string parse_choice(std::string_view name, std::string text, std::span<const std::string_view> choices) {
  if (text.empty() || std::ranges::find(choices, text) != choices.end()) return text;
  throw UserError(fmt::format("{}={}: expected one of {}", name, text, fmt::join(choices, ", ")));
}

int parse_count(std::string_view name, const std::string& text) {
  if (text.empty()) return 0;
  int value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0 || value > 4096)
    throw UserError(fmt::format("{}={}: expected a number from 0 to 4096", name, text));
  return value;
}

std::string cache_folder(const Environment& environment) {
  const auto text = [&](std::string_view name) { return environment(name).value_or(""); };
  if (std::string folder = text("OXYFUEL_CACHE"); !folder.empty()) return folder == "off" ? "" : folder;
  if (const std::string folder = text("XDG_CACHE_HOME"); !folder.empty()) return folder + "/oxyfuel";
  const std::string home = text("HOME");
  return home.empty() ? "" : home + "/.cache/oxyfuel";
}

constexpr std::array<std::string_view, 2> kCompilers = {"clang", "system"};
constexpr std::array<std::string_view, 4> kIsas = {"scalar", "avx2", "avx512", "neon"};

std::atomic<bool>& strict_flag() {
  static std::atomic<bool> flag = config().strict;
  return flag;
}

}  // namespace

Config read_config(const Environment& environment) {
  auto text = [&](std::string_view name) { return environment(name).value_or(""); };
  Config result;
  result.logs = text("OXYFUEL_LOGS");
  result.dump = text("OXYFUEL_DUMP");
  result.strict = parse_flag("OXYFUEL_STRICT", text("OXYFUEL_STRICT"));
  result.strict_shapes = parse_flag("OXYFUEL_STRICT_SHAPES", text("OXYFUEL_STRICT_SHAPES"));
  result.compiler = parse_choice("OXYFUEL_COMPILER", text("OXYFUEL_COMPILER"), kCompilers);
  result.system_cxx = text("OXYFUEL_CXX");
  result.isa = parse_choice("OXYFUEL_ISA", text("OXYFUEL_ISA"), kIsas);
  result.compile_threads = parse_count("OXYFUEL_COMPILE_THREADS", text("OXYFUEL_COMPILE_THREADS"));
  if (const std::string ahead = text("OXYFUEL_COMPILE_AHEAD"); !ahead.empty())
    result.compile_ahead = parse_flag("OXYFUEL_COMPILE_AHEAD", ahead);
  result.check_indices = parse_flag("OXYFUEL_CHECK_INDICES", text("OXYFUEL_CHECK_INDICES"));
  const std::string blocking = text("CUDA_LAUNCH_BLOCKING");
  result.launch_blocking = !blocking.empty() && blocking != "0";
  result.cache = cache_folder(environment);
  return result;
}

const Config& config() {
  static const Config once = read_config([](std::string_view name) -> std::optional<std::string> {
    const char* value = std::getenv(std::string(name).c_str());
    if (!value) return std::nullopt;
    return std::string(value);
  });
  return once;
}

bool strict() {
  return strict_flag().load(std::memory_order_relaxed);
}
void set_strict(bool value) {
  strict_flag().store(value, std::memory_order_relaxed);
}

}  // namespace oxy
