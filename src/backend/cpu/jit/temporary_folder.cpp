#include "backend/cpu/jit/temporary_folder.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"

namespace oxy::backend::cpu {

TemporaryFolder::TemporaryFolder() {
  const char* variable = std::getenv("TMPDIR");
  std::string base = variable && *variable ? variable : "/tmp";
  std::string pattern = base + "/oxyfuel-XXXXXX";
  if (!mkdtemp(pattern.data()))
    throw Unsupported(
        fmt::format("cannot make a folder for compiled kernels in {}: {}", base, std::strerror(errno)),
        "point TMPDIR to a folder that can be written");
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void TemporaryFolder::write(std::string_view name, std::string_view text) const {
  std::filesystem::path file = path_ / name;
  FILE* stream = std::fopen(file.c_str(), "wb");
  bool written = stream && std::fwrite(text.data(), 1, text.size(), stream) == text.size();
  int error = errno;
  if (stream && std::fclose(stream) != 0 && written) {
    written = false;
    error = errno;
  }
  if (!written)
    throw Unsupported(fmt::format("cannot write a kernel to {}: {}", file.string(), std::strerror(error)),
                      "make room, or point TMPDIR to another disk");
}

}  // namespace oxy::backend::cpu
