#include "runtime/cuda/graphs/decoy_memory.h"

#include <algorithm>

namespace oxy::runtime {

namespace {

constexpr uintptr_t kAlignment = 4096;  // more than a library looks at
constexpr size_t kFewPieces = 64, kMostPieceBytes = size_t{64} << 20;

size_t rounded_up(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

DecoyMemory::DecoyMemory(const backend::cuda::Driver& driver, c10::DeviceIndex device,
                         std::span<const MovableMemory> memories)
    : driver_(driver) {
  size_t next = 0;
  for (const MovableMemory& memory : memories) {
    const size_t offset = next + memory.address % kAlignment;
    addresses_.push_back(offset);
    next = rounded_up(offset + static_cast<size_t>(memory.bytes) + 1, kAlignment);
  }
  try {
    if (next > 0) map(device, next);
  } catch (const NotReplayable&) {
    free();
    throw;
  }
  for (size_t i = 0; i < memories.size(); ++i)
    addresses_[i] = memories[i].bytes > 0 ? begin_ + addresses_[i] : memories[i].address;
}

DecoyMemory::~DecoyMemory() {
  free();
}

void DecoyMemory::map(c10::DeviceIndex device, size_t bytes) {
  const auto& graphs = driver_.graphs;
  const auto require = [](backend::cuda::Result result) {
    if (result != 0) throw NotReplayable{"the driver gives no addresses for a trial", {}};
  };
  backend::cuda::PhysicalMemory memory;
  memory.location.index = device;
  size_t unit = 0;
  require(graphs.granularity(&unit, &memory, 0));
  const size_t piece = rounded_up(std::min(bytes / kFewPieces + 1, kMostPieceBytes), unit);
  const size_t all = rounded_up(bytes, piece);
  require(graphs.reserve_addresses(&begin_, all, 0, 0, 0));
  reserved_ = all;
  require(graphs.create_memory(&piece_, piece, &memory, 0));
  for (; mapped_ < all; mapped_ += piece) require(graphs.map_memory(begin_ + mapped_, piece, 0, piece_, 0));
  backend::cuda::MemoryAccess access;
  access.location.index = device;
  require(graphs.set_access(begin_, all, &access, 1));
}

void DecoyMemory::free() {
  const auto& graphs = driver_.graphs;
  if (mapped_ > 0) graphs.unmap_memory(begin_, mapped_);
  if (piece_ != 0) graphs.release_memory(piece_);
  if (reserved_ > 0) graphs.free_addresses(begin_, reserved_);
}

}  // namespace oxy::runtime
