#include "backend/cuda/launch_shape.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>

#include "backend/cuda/accesses.h"
#include "backend/cuda/row_shape.h"

namespace oxy::backend::cuda {

namespace {

using loop::Op;

// That a thread loads and stores: with more, memory is slower by 1 %. Where the elements of all operands have
// 4 bytes or more, and many bytes together, fewer a thread are faster by as much.
constexpr int64_t kBytesAThread = 64;
constexpr int64_t kWideBytesAThread = 32;
constexpr int64_t kWideElement = 4;        // bytes
constexpr int64_t kManyWideBytes = 16;     // of one element of each operand
constexpr int64_t kLeastWideElements = 2;  // a thread
// Where a body has more instructions, a thread has so many bytes of the operand with the smallest elements.
constexpr size_t kLongBody = 16;
constexpr int64_t kOperandBytesAThread = 32;
constexpr int64_t kFlatThreads = 128;  // of a program that is not short of elements
// Elements of a program, which takes a nanosecond to start.
constexpr int64_t kFlatBlock = 512;
constexpr int64_t kFlatBlockOfOneWave = 1024;  // where the device runs all programs at once
constexpr int64_t kLeastBlock = 128;           // elements
// Blocks are halved while there are fewer programs, since some multiprocessors would have none.
constexpr int64_t kFewPrograms = kMultiprocessors * 7 / 8;
constexpr int64_t kFewThreads = kThreads * 3 / 4;  // while there are fewer, each has fewer elements
constexpr int64_t kTileRows = 128;
constexpr int64_t kTileColumns = 64;
constexpr int64_t kTileLoads = 2;  // of a tile of that many rows; where there are more, it has half as many
// Sides of tiles are halved while there are fewer tiles: some multiprocessors would get one more than others,
// and one more is a large part of the time then.
constexpr int64_t kFewTiles = 24 * kMultiprocessors;
// Elements of all operands that a thread of a flat kernel loads. Of more, some leave the registers.
constexpr int64_t kMostLoadedAThread = 256;
constexpr int64_t kLeastTileSide = 16;
constexpr int64_t kLeastHalvedSide = 32;  // of a tile

bool has_rows(const LoopNest& nest) {
  return std::ranges::any_of(nest.phases,
                             [](const Phase& p) { return !p.loops.empty() || !p.reduction.empty(); });
}

// Outer loops side by side that are as one.
struct LoopRange {
  size_t first = 0;
  size_t count = 1;
};

// The outer loops, without the last, along which most bytes are contiguous, if these are a good part of all.
std::optional<LoopRange> transposed_loops(const LoopNest& nest) {
  if (nest.outer.size() < 2) return std::nullopt;
  const size_t last = nest.outer.size() - 1;
  std::vector<int64_t> votes(last);
  const auto for_each_transposed = [&](auto fn) {  // fn(access, its unit loop)
    for (const Phase& phase : nest.phases)
      for_each_access(nest, phase, [&](const Access& access) {
        for (size_t k = 0; k < last; ++k)
          if (is_unit(access.offset, nest.outer[k]) && !is_unmoved(access.offset, nest.outer[last]))
            fn(access, k);
      });
  };
  for_each_transposed([&](const Access& access, size_t k) { votes[k] += access.bytes; });
  const auto best = std::ranges::max_element(votes);
  if (*best == 0) return std::nullopt;
  LoopRange range{static_cast<size_t>(best - votes.begin())};
  Expr extent = nest.outer[range.first].extent;
  const auto goes_on = [&](const LoopVariable& above) {  // in all accesses along the loops so far
    bool does = true;
    for_each_transposed([&](const Access& access, size_t k) {
      const auto stride = stride_of(access.offset, above.variable);
      if (k == range.first + range.count - 1) does = does && stride && *stride == extent;
    });
    return does;
  };
  while (range.first > 0 && goes_on(nest.outer[range.first - 1])) {
    --range.first;
    ++range.count;
    extent = extent * nest.outer[range.first].extent;
  }
  const bool is_large =
      estimate(extent) >= kLeastTileSide && estimate(nest.outer[last].extent) >= kLeastTileSide;
  return is_large ? std::optional(range) : std::nullopt;
}

// Sines and their like reduce large arguments in a way of their own, for which a thread waits.
bool has_sines(const LoopNest& nest) {
  const auto is_sine = [](const NestInst& inst) {
    return inst.op == Op::Sin || inst.op == Op::Cos || inst.op == Op::Tan;
  };
  return std::ranges::any_of(nest.phases,
                             [&](const Phase& phase) { return std::ranges::any_of(phase.insts, is_sine); });
}

size_t body_length(const LoopNest& nest) {
  size_t length = 0;
  for (const Phase& phase : nest.phases) length += phase.insts.size();
  return length;
}

// Elements that a thread of a flat kernel has, if there are enough.
int64_t elements_a_thread(const LoopNest& nest) {
  const int64_t moved = moved_bytes(nest), smallest = smallest_element(nest);
  const size_t length = body_length(nest);
  if (moved_count(nest) >= kManyOperands || has_sines(nest)) return kElementsAThread;
  const auto moving = [&](int64_t bytes_moved) {
    return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(bytes_moved / moved)));
  };
  if (smallest >= kWideElement && moved >= kManyWideBytes && length <= 2 * kLongBody)
    return std::clamp(moving(kWideBytesAThread), kLeastWideElements, kElementsAThread);
  return std::clamp(length > kLongBody ? kOperandBytesAThread / smallest : moving(kBytesAThread),
                    kLeastElementsAThread, kMostElementsAThread);
}

LaunchShape flat(const LoopNest& nest, int64_t iterations) {
  int64_t elements = elements_a_thread(nest);
  while (elements > 1 && elements * load_count(nest) > kMostLoadedAThread) elements /= 2;
  while (elements > kLeastElementsAThread && iterations / elements < kFewThreads) elements /= 2;
  const int64_t block = iterations / elements <= kThreads ? kFlatBlockOfOneWave : kFlatBlock;
  const int64_t threads = std::clamp(block / elements, kFlatThreads, 2 * kFlatThreads);
  LaunchShape shape{.columns = threads * elements};
  while (shape.columns > kLeastBlock && iterations / shape.columns < kFewPrograms) shape.columns /= 2;
  shape.warps = static_cast<int>(std::max<int64_t>(shape.columns / (kThreadsAWarp * elements), 1));
  return shape;
}

LaunchShape tile(const LoopNest& nest, const LoopRange& loops) {
  LaunchShape shape{.form = Form::Tile, .tile_loop = loops.first, .tile_loops = loops.count};
  const int64_t rows = load_count(nest) <= kTileLoads ? kTileRows : kTileColumns;
  shape.rows = std::min(rows, power_of_two(estimate(extent_of(tile_rows(nest, shape)))));
  shape.columns = std::min(kTileColumns, power_of_two(estimate(nest.outer.back().extent)));
  const int64_t elements = estimate(extent_of(nest.outer));
  while (elements / (shape.rows * shape.columns) < kFewTiles) {
    int64_t& side = shape.rows >= shape.columns ? shape.rows : shape.columns;
    if (side <= kLeastHalvedSide) break;
    side /= 2;
  }
  shape.warps = warps_for(shape.rows * shape.columns, 8);
  return shape;
}

}  // namespace

int64_t power_of_two(int64_t n) {
  int64_t power = 1;
  while (power < n) power *= 2;
  return power;
}

std::vector<LoopVariable> tile_rows(const LoopNest& nest, const LaunchShape& shape) {
  const auto first = nest.outer.begin() + static_cast<std::ptrdiff_t>(shape.tile_loop);
  return {first, first + static_cast<std::ptrdiff_t>(shape.tile_loops)};
}

LaunchShape choose_launch_shape(const LoopNest& nest) {
  if (has_rows(nest)) return row_shape(nest);
  if (const auto loops = transposed_loops(nest)) return tile(nest, *loops);
  return flat(nest, std::max<int64_t>(estimate(extent_of(nest.outer)), 1));
}

}  // namespace oxy::backend::cuda
