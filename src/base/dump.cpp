#include "base/dump.h"

#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/config.h"
#include "base/log.h"

namespace oxy {
namespace {

void report(const std::filesystem::path& path, std::string_view reason) {
  static std::atomic<bool> reported = false;
  if (!reported.exchange(true)) warn(fmt::format("OXYFUEL_DUMP: cannot write {}: {}", path.string(), reason));
}

// Function names hold characters such as '<' and '/' ("<lambda>", "module/forward").
std::string file_name(std::string_view name) {
  std::string safe;
  for (char c : name.substr(0, 100)) {
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
                 c == '-' || (c == '.' && !safe.empty());
    safe += plain ? c : '_';
  }
  return safe.empty() ? "unnamed" : safe;
}

std::filesystem::path make_folder(std::string_view function, const std::filesystem::path& directory) {
  if (directory.empty()) return {};
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  for (int n = 0; !error; ++n) {
    std::filesystem::path folder = directory / fmt::format("{}_{}", file_name(function), n);
    // Another process or thread may take the same number: creating it decides.
    if (std::filesystem::create_directory(folder, error)) return folder;
  }
  report(directory, error.message());
  return {};
}

}  // namespace

Dump::Dump(std::string_view function) : Dump(function, config().dump) {}

Dump::Dump(std::string_view function, const std::filesystem::path& directory)
    : folder_(make_folder(function, directory)) {}

void Dump::write(std::string_view stage, std::string_view text) const {
  if (!enabled()) return;
  std::filesystem::path path = folder_;
  if (size_t slash = stage.find('/'); slash != std::string_view::npos) {
    path /= file_name(stage.substr(0, slash));
    stage.remove_prefix(slash + 1);
    std::error_code error;
    std::filesystem::create_directory(path, error);
    if (error) return report(path, error.message());
  }
  path /= file_name(stage);
  if (!path.has_extension()) path += ".txt";
  FILE* file = std::fopen(path.c_str(), "wb");
  if (!file) return report(path, std::strerror(errno));
  bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  int error = errno;
  if (std::fclose(file) != 0) {
    written = false;
    error = errno;
  }
  if (!written) report(path, std::strerror(error));
}

}  // namespace oxy
