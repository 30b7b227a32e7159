#include "backend/cuda/tune/candidates.h"

#include <algorithm>

namespace oxy::backend::cuda {

namespace {

constexpr int64_t kThreadsAWarp = 32;
constexpr int64_t kMostElementsAThread = 64;  // beyond it values leave the registers
constexpr int64_t kLeastBlock = 64;
constexpr int64_t kMostFlatBlock = 8192;
constexpr int64_t kLeastSide = 16;
constexpr int64_t kMostSide = 128;
constexpr int64_t kMostTile = 64 * 128;
constexpr int64_t kLeastStep = 512;
constexpr int64_t kMostStep = 16384;
constexpr int kMostWarps = 32;
constexpr int kStages[] = {2, 4};

struct Candidates {
  std::vector<LaunchShape> shapes;

  void add(const LaunchShape& shape) {
    const int64_t threads = kThreadsAWarp * shape.warps, elements = shape.rows * shape.columns;
    if (shape.warps < 1 || shape.warps > kMostWarps || elements > kMostElementsAThread * threads) return;
    if (std::ranges::find(shapes, shape) == shapes.end()) shapes.push_back(shape);
  }
  // With half and twice the warps, too.
  void add_warps(LaunchShape shape) {
    const int warps = shape.warps;
    for (const int other : {warps, warps / 2, warps * 2}) {
      shape.warps = other;
      add(shape);
    }
  }
};

// As many warps for each element as `chosen` has.
int warps_alike(const LaunchShape& shape, const LaunchShape& chosen) {
  const int64_t warps = chosen.warps * shape.rows * shape.columns / (chosen.rows * chosen.columns);
  return static_cast<int>(std::clamp<int64_t>(warps, 1, kMostWarps));
}

void add_flat(Candidates& found, const LaunchShape& chosen) {
  for (const int64_t columns : {chosen.columns / 2, chosen.columns * 2, chosen.columns * 4}) {
    if (columns < kLeastBlock || columns > kMostFlatBlock) continue;
    LaunchShape shape = chosen;
    shape.columns = columns;
    shape.warps = warps_alike(shape, chosen);
    found.add_warps(shape);
  }
}

void add_tiles(Candidates& found, const LaunchShape& chosen) {
  for (const auto& [rows, columns] : {std::pair{1, 2}, {2, 1}, {2, 2}}) {
    for (const bool is_larger : {false, true}) {
      LaunchShape shape = chosen;
      shape.rows = is_larger ? shape.rows * rows : shape.rows / rows;
      shape.columns = is_larger ? shape.columns * columns : shape.columns / columns;
      if (std::min(shape.rows, shape.columns) < kLeastSide ||
          std::max(shape.rows, shape.columns) > kMostSide || shape.rows * shape.columns > kMostTile)
        continue;
      shape.warps = warps_alike(shape, chosen);
      found.add_warps(shape);
    }
  }
}

// The longest row, as a power of two; nothing where a symbol decides.
std::optional<int64_t> row_in_registers(const LoopNest& nest) {
  int64_t longest = 1;
  for (const Phase& phase : nest.phases)
    for (const auto* loops : {&phase.loops, &phase.reduction}) {
      int64_t extent = 1;
      for (const LoopVariable& l : *loops) {
        const auto number = l.extent.as_constant();
        if (!number) return std::nullopt;
        extent *= *number;
      }
      longest = std::max(longest, extent);
    }
  return longest <= kLongestPersistentRow ? std::optional(power_of_two(longest)) : std::nullopt;
}

void add_stages(Candidates& found, LaunchShape shape) {
  for (const int stages : kStages) {
    shape.stages = stages;
    found.add(shape);
  }
}

void add_rows(Candidates& found, const LoopNest& nest, const LaunchShape& chosen) {
  for (const int64_t rows : {chosen.rows / 2, chosen.rows * 2, chosen.rows * 4}) {
    if (rows < 1) continue;
    LaunchShape shape = chosen;
    shape.rows = rows;
    shape.warps = warps_alike(shape, chosen);
    found.add_warps(shape);
  }
  if (chosen.part > 0) return add_stages(found, chosen);
  if (!chosen.is_persistent) {
    add_stages(found, chosen);
    for (const int64_t columns : {chosen.columns / 4, chosen.columns / 2, chosen.columns * 2}) {
      if (columns * chosen.rows < kLeastStep || columns * chosen.rows > kMostStep) continue;
      LaunchShape shape = chosen;
      shape.columns = columns;
      shape.warps = warps_alike(shape, chosen);
      found.add_warps(shape);
      add_stages(found, shape);
    }
  }
  const std::optional<int64_t> row = row_in_registers(nest);
  if (row && !chosen.is_persistent) {
    LaunchShape shape = chosen;
    shape.is_persistent = true;
    shape.columns = *row;
    shape.rows = 1;
    shape.warps = static_cast<int>(std::clamp<int64_t>(*row / (kThreadsAWarp * 8), 1, 16));
    found.add_warps(shape);
  }
  if (chosen.is_persistent && chosen.columns >= 2 * kLeastStep) {
    LaunchShape shape = chosen;
    shape.is_persistent = false;
    shape.columns = std::min(chosen.columns / 2, kMostStep / 4);
    shape.rows = 1;
    shape.warps = warps_alike(shape, chosen);
    found.add_warps(shape);
    add_stages(found, shape);
  }
}

}  // namespace

std::vector<LaunchShape> candidate_shapes(const LoopNest& nest, const LaunchShape& chosen) {
  Candidates found;
  found.shapes.push_back(chosen);
  found.add_warps(chosen);
  switch (chosen.form) {
    case Form::Flat:
      add_flat(found, chosen);
      break;
    case Form::Tile:
      add_tiles(found, chosen);
      break;
    case Form::Rows:
      add_rows(found, nest, chosen);
      break;
  }
  return std::move(found.shapes);
}

}  // namespace oxy::backend::cuda
