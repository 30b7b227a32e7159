#include "backend/cuda/compile/file_store.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <iterator>
#include <system_error>
#include <vector>

#include "backend/cuda/compile/message.h"

namespace oxy::backend::cuda {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kFormat = "oxyfuel file 1";

std::string file_text(const std::string& content) {
  return encode({std::string(kFormat), to_hex(hash128(content)), content});
}

std::optional<std::string> parse(const std::string& text) {
  auto parts = decode(text);
  if (!parts || parts->size() != 3 || (*parts)[0] != kFormat || (*parts)[1] != to_hex(hash128((*parts)[2])))
    return std::nullopt;
  return std::move((*parts)[2]);
}

}  // namespace

fs::path FileStore::file_of(const Hash128& key) const {
  return folder_ / (to_hex(key) + suffix_);
}

std::optional<std::string> FileStore::find(const Hash128& key) const {
  const fs::path file = file_of(key);
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return std::nullopt;
  const std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  auto content = parse(text);
  std::error_code ignored;
  if (content)
    fs::last_write_time(file, fs::file_time_type::clock::now(), ignored);
  else
    fs::remove(file, ignored);
  return content;
}

void FileStore::keep(const Hash128& key, const std::string& content) const {
  static std::atomic<int> counter{0};
  std::error_code error;
  fs::create_directories(folder_, error);
  const fs::path unfinished =
      folder_ / fmt::format("{}.{}.{}.unfinished", to_hex(key), getpid(), counter.fetch_add(1));
  {
    std::ofstream stream(unfinished, std::ios::binary);
    stream << file_text(content);
    stream.flush();
    if (!stream) {
      stream.close();
      fs::remove(unfinished, error);
      return;
    }
  }
  fs::rename(unfinished, file_of(key), error);
  if (error) fs::remove(unfinished, error);
  limit();
}

void FileStore::limit() const {
  struct File {
    fs::path path;
    fs::file_time_type used;
    uintmax_t bytes;
  };
  std::vector<File> files;
  uintmax_t total = 0;
  std::error_code error;
  for (fs::directory_iterator entry(folder_, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code gone;  // another process removes files, too
    const File file{entry->path(), entry->last_write_time(gone), entry->file_size(gone)};
    if (gone || file.path.extension() != suffix_) continue;
    total += file.bytes;
    files.push_back(file);
  }
  if (total <= most_bytes_) return;
  std::ranges::sort(files, {}, &File::used);
  for (const File& file : files) {
    if (total <= most_bytes_) return;
    fs::remove(file.path, error);
    total -= file.bytes;
  }
}

}  // namespace oxy::backend::cuda
