// A private folder that disappears with its object.
#pragma once

#include <filesystem>
#include <string_view>

namespace oxy::backend::cpu {

class TemporaryFolder {
 public:
  TemporaryFolder();  // below TMPDIR, else /tmp; Unsupported if it cannot be made
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  // Unsupported if the disk is full or the file cannot be written.
  void write(std::string_view name, std::string_view text) const;

 private:
  std::filesystem::path path_;
};

}  // namespace oxy::backend::cpu
