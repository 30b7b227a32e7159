#include "backend/cuda/compile/kernel_store.h"

#include <charconv>

#include "backend/cuda/compile/message.h"

namespace oxy::backend::cuda {

namespace {

std::optional<int32_t> number(const std::string& text) {
  int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<CompiledKernel> KernelStore::find(const Hash128& key) const {
  const auto content = files_.find(key);
  const auto fields = content ? decode(*content) : std::nullopt;
  if (!fields || fields->size() != 4) return std::nullopt;
  const auto threads = number((*fields)[1]), shared = number((*fields)[2]), extra = number((*fields)[3]);
  if (!threads || !shared || !extra) return std::nullopt;
  return CompiledKernel{(*fields)[0], *threads, *shared, *extra};
}

void KernelStore::keep(const Hash128& key, const CompiledKernel& kernel) const {
  files_.keep(key, encode({kernel.machine_code, std::to_string(kernel.threads),
                           std::to_string(kernel.shared_bytes), std::to_string(kernel.extra_pointers)}));
}

}  // namespace oxy::backend::cuda
