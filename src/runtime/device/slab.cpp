#include "runtime/device/slab.h"

#include <algorithm>

namespace oxy::runtime {

namespace {

constexpr int64_t kBlockBytes = int64_t{4} << 20;

int64_t aligned(int64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

}  // namespace

// Counted by its pieces and by the allocator while it is the current one.
struct SlabAllocator::Block : c10::intrusive_ptr_target {
  Block(c10::DataPtr data, int64_t bytes) : memory(std::move(data)), size(bytes) {}

  static void release(void* block) { c10::raw::intrusive_ptr::decref(static_cast<Block*>(block)); }

  c10::DataPtr memory;
  int64_t size;
};

c10::Storage SlabAllocator::allocate(int64_t bytes, int64_t left) {
  const int64_t needed = aligned(bytes);
  if (block_ == nullptr || used_ + needed > block_->size) {
    reset();
    const int64_t size = std::max(needed, std::min(aligned(left), kBlockBytes));
    block_ = c10::make_intrusive<Block>(device_.allocate(size, index_), size).release();
  }
  char* const memory = static_cast<char*>(block_->memory.get()) + used_;
  used_ += needed;
  c10::raw::intrusive_ptr::incref(block_);
  c10::DataPtr piece(memory, block_, &Block::release, block_->memory.device());
  return c10::Storage(c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(),
                                                            static_cast<size_t>(bytes), std::move(piece),
                                                            /*allocator=*/nullptr, /*resizable=*/false));
}

void SlabAllocator::reset() {
  if (block_ != nullptr) Block::release(block_);
  block_ = nullptr;
  used_ = 0;
}

}  // namespace oxy::runtime
