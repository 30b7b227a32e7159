#include "backend/cuda/compile/kernel_store.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <fstream>
#include <iterator>
#include <system_error>
#include <vector>

#include "backend/cuda/compile/message.h"

namespace oxy::backend::cuda {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kFormat = "oxyfuel kernel 1";
constexpr std::string_view kSuffix = ".kernel";

std::optional<int32_t> number(const std::string& text) {
  int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

std::string file_text(const CompiledKernel& kernel) {
  const std::string content =
      encode({kernel.machine_code, std::to_string(kernel.threads), std::to_string(kernel.shared_bytes),
              std::to_string(kernel.extra_pointers)});
  return encode({std::string(kFormat), to_hex(hash128(content)), content});
}

std::optional<CompiledKernel> parse(const std::string& text) {
  const auto outer = decode(text);
  if (!outer || outer->size() != 3 || (*outer)[0] != kFormat || (*outer)[1] != to_hex(hash128((*outer)[2])))
    return std::nullopt;
  const auto fields = decode((*outer)[2]);
  if (!fields || fields->size() != 4) return std::nullopt;
  const auto threads = number((*fields)[1]), shared = number((*fields)[2]), extra = number((*fields)[3]);
  if (!threads || !shared || !extra) return std::nullopt;
  return CompiledKernel{(*fields)[0], *threads, *shared, *extra};
}

}  // namespace

fs::path KernelStore::file_of(const Hash128& key) const {
  return folder_ / (to_hex(key) + std::string(kSuffix));
}

std::optional<CompiledKernel> KernelStore::find(const Hash128& key) const {
  const fs::path file = file_of(key);
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return std::nullopt;
  const std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  auto kernel = parse(text);
  std::error_code ignored;
  if (kernel)
    fs::last_write_time(file, fs::file_time_type::clock::now(), ignored);
  else
    fs::remove(file, ignored);
  return kernel;
}

void KernelStore::keep(const Hash128& key, const CompiledKernel& kernel) const {
  static std::atomic<int> counter{0};
  std::error_code error;
  fs::create_directories(folder_, error);
  const fs::path unfinished =
      folder_ / fmt::format("{}.{}.{}.unfinished", to_hex(key), getpid(), counter.fetch_add(1));
  {
    std::ofstream stream(unfinished, std::ios::binary);
    stream << file_text(kernel);
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

void KernelStore::limit() const {
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
    if (gone || file.path.extension() != kSuffix) continue;
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
