// Texts on disk, each by a key.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/hash.h"

namespace oxy::backend::cuda {

// A folder of files, named by their keys. Several processes may use it at once: a file is written under
// another name first, and carries a checksum. The files that were used longest ago go when all of them are
// larger than `most_bytes`. A disk that is full, or a folder that cannot be written, keeps nothing and raises
// nothing. Thread-safe.
class FileStore {
 public:
  // `suffix`: of its files, which no other store in the folder has: ".kernel".
  FileStore(std::filesystem::path folder, std::string suffix, uintmax_t most_bytes)
      : folder_(std::move(folder)), suffix_(std::move(suffix)), most_bytes_(most_bytes) {}

  // Nothing if there is none, or the file is damaged; a damaged file is removed.
  std::optional<std::string> find(const Hash128& key) const;
  void keep(const Hash128& key, const std::string& content) const;

 private:
  std::filesystem::path file_of(const Hash128& key) const;
  void limit() const;

  std::filesystem::path folder_;
  std::string suffix_;
  uintmax_t most_bytes_;
};

}  // namespace oxy::backend::cuda
