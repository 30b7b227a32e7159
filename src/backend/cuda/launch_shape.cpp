#include "backend/cuda/launch_shape.h"

#include <algorithm>
#include <optional>

namespace oxy::backend::cuda {

namespace {

using loop::Op;

constexpr int64_t kMultiprocessors = 132;            // of an H100; no result depends on it
constexpr int64_t kPrograms = 2 * kMultiprocessors;  // that keep the device busy
constexpr int64_t kBytesAThread = 32;                // of an operand: two loads of 16 bytes are under way
constexpr int64_t kElementsAThread = 8;              // of a row
constexpr int64_t kMostElementsAThread = 16;
constexpr int64_t kLine = 128;   // bytes of a line of memory
constexpr int64_t kSector = 32;  // bytes of the least that is read of it
constexpr int64_t kThreadsAWarp = 32;
constexpr int64_t kFlatThreads = 128;
constexpr int64_t kLeastBlock = 128;  // one warp, four elements a thread
constexpr int64_t kRowTile = 1024;    // elements of short rows that one program takes together
// Elements of a long row a step. A step waits for its loads, so there have to be several a thread: 64 bytes
// where one value is loaded and one accumulates.
constexpr int64_t kLoopedRow = 4096;
constexpr int64_t kColumnThreads = 256;
constexpr int64_t kLeastElementsAThread = 4;
constexpr int64_t kColumnElementsAThread = 32;  // of a step down columns, which waits likewise
// Values that a thread has at once. With more, fewer programs fit into a multiprocessor.
constexpr int64_t kColumnValuesAThread = 64;
// Elements of all operands that a thread of a flat kernel loads. Of more, some leave the registers.
constexpr int64_t kMostLoadedAThread = 256;
constexpr int64_t kShortColumn = 64;  // elements of a column that stays in registers
constexpr int64_t kLeastTileSide = 16;
constexpr int64_t kWideRow = 4096;  // from here on, a row needs more than 8 warps
// Elements of the longest row of many operands that stays in registers.
constexpr int64_t kLongestRowOfMany = 8192;
constexpr int kManyOperands = 5;

struct Access {
  const Expr& offset;
  int64_t bytes;  // of an element
};

// Calls fn(Access) for what the phase loads from and stores to memory.
template <class Fn>
void for_each_access(const LoopNest& nest, const Phase& phase, Fn fn) {
  const auto access = [&](ArrayId id, const Expr& offset) {
    const Array& array = nest.arrays[id];
    if (array.kind == ArrayKind::Parameter) fn(Access{offset, bytes(array.dtype)});
  };
  for (const NestInst& inst : phase.insts)
    if (inst.op == Op::Load) access(inst.buffer, phase.expressions[inst.index]);
  for (const ElementStore& store : phase.stores) access(store.array, store.offset);
}

Expr extent_of(const std::vector<LoopVariable>& loops) {
  Expr extent = 1;
  for (const LoopVariable& l : loops) extent = extent * l.extent;
  return extent;
}

Expr row_extent(const Phase& phase) {
  return extent_of(phase.loops) * extent_of(phase.reduction);
}

bool has_rows(const LoopNest& nest) {
  return std::ranges::any_of(nest.phases,
                             [](const Phase& p) { return !p.loops.empty() || !p.reduction.empty(); });
}

int warps_for(int64_t elements, int64_t most) {
  const int64_t warps = elements / (kThreadsAWarp * kElementsAThread);
  return static_cast<int>(power_of_two(std::clamp<int64_t>(warps, 1, most)));
}

bool is_unit(const Expr& offset, const LoopVariable& l) {
  const auto stride = stride_of(offset, l.variable);
  return stride && *stride == Expr(1);
}

bool is_unmoved(const Expr& offset, const LoopVariable& l) {
  const auto stride = stride_of(offset, l.variable);
  return stride && *stride == Expr(0);
}

// The outer loop, other than the last, along which most bytes are contiguous, if these are a good part of
// all.
std::optional<size_t> transposed_loop(const LoopNest& nest) {
  if (nest.outer.size() < 2) return std::nullopt;
  std::vector<int64_t> votes(nest.outer.size());
  for (const Phase& phase : nest.phases)
    for_each_access(nest, phase, [&](const Access& access) {
      for (size_t k = 0; k < nest.outer.size(); ++k)
        if (is_unit(access.offset, nest.outer[k]) && !is_unmoved(access.offset, nest.outer.back()))
          votes[k] += access.bytes;
    });
  const auto best = std::ranges::max_element(votes.begin(), votes.end() - 1);
  if (*best == 0) return std::nullopt;
  const auto loop = static_cast<size_t>(best - votes.begin());
  const bool is_large = estimate(nest.outer[loop].extent) >= kLeastTileSide &&
                        estimate(nest.outer.back().extent) >= kLeastTileSide;
  return is_large ? std::optional(loop) : std::nullopt;
}

int64_t smallest_element(const LoopNest& nest) {
  int64_t least = 8;
  for (const Phase& phase : nest.phases)
    for_each_access(nest, phase, [&](const Access& access) { least = std::min(least, access.bytes); });
  return least;
}

int operand_count(const LoopNest& nest) {
  int count = 0;
  for (const Phase& phase : nest.phases) for_each_access(nest, phase, [&](const Access&) { ++count; });
  return count;
}

int64_t load_count(const LoopNest& nest) {
  int64_t count = 0;
  for (const Phase& phase : nest.phases)
    count += std::ranges::count_if(phase.insts, [&](const NestInst& inst) {
      return inst.op == Op::Load && nest.arrays[inst.buffer].kind == ArrayKind::Parameter;
    });
  return count;
}

LaunchShape flat(const LoopNest& nest, int64_t iterations) {
  LaunchShape shape;
  int64_t elements = operand_count(nest) >= kManyOperands
                         ? kElementsAThread
                         : std::min(kBytesAThread / smallest_element(nest), kMostElementsAThread);
  while (elements > 1 && elements * load_count(nest) > kMostLoadedAThread) elements /= 2;
  shape.columns = kFlatThreads * elements;
  while (shape.columns > kLeastBlock && iterations / shape.columns < kPrograms) shape.columns /= 2;
  const int64_t warps = shape.columns / (kThreadsAWarp * std::min(elements, kElementsAThread));
  shape.warps = static_cast<int>(std::clamp<int64_t>(warps, 1, kFlatThreads / kThreadsAWarp));
  return shape;
}

LaunchShape tile(const LoopNest& nest, size_t loop) {
  const int64_t side = std::clamp<int64_t>(kLine / smallest_element(nest), 32, 64);
  LaunchShape shape{.form = Form::Tile, .tile_loop = loop};
  shape.rows = std::min(side, power_of_two(estimate(nest.outer[loop].extent)));
  shape.columns = std::min(side, power_of_two(estimate(nest.outer.back().extent)));
  shape.warps = warps_for(shape.rows * shape.columns, 8);
  return shape;
}

// Bytes that the access touches in all iterations of the loops.
double touched_bytes(const Access& access, const std::vector<LoopVariable>& outer,
                     const std::vector<LoopVariable>& inner) {
  auto bytes = static_cast<double>(access.bytes);
  for (const auto* loops : {&outer, &inner})
    for (const LoopVariable& l : *loops)
      if (!is_unmoved(access.offset, l)) bytes *= static_cast<double>(estimate(l.extent));
  return bytes;
}

// Whether the rows' elements are contiguous, rather than those of the last outer loop.
bool is_along_rows(const LoopNest& nest) {
  if (nest.outer.empty()) return true;
  double votes = 0;
  for (const Phase& phase : nest.phases) {
    const auto& loops = phase.reduction.empty() ? phase.loops : phase.reduction;
    if (loops.empty()) continue;
    for_each_access(nest, phase, [&](const Access& access) {
      const bool along =
          std::ranges::any_of(loops, [&](const LoopVariable& l) { return is_unit(access.offset, l); });
      votes += touched_bytes(access, nest.outer, loops) * (along - is_unit(access.offset, nest.outer.back()));
    });
  }
  return votes >= 0;
}

// For each element of a step along or down a row: how many values are loaded, and how many accumulate.
struct StepValues {
  int64_t loaded = 0;
  int64_t accumulated = 0;
};

StepValues step_values(const LoopNest& nest) {
  StepValues most;
  for (const Phase& phase : nest.phases) {
    StepValues values;
    for (const NestInst& inst : phase.insts) {
      if (inst.op != Op::Load || nest.arrays[inst.buffer].kind != ArrayKind::Parameter) continue;
      const Expr& offset = phase.expressions[inst.index];
      const auto moves = [&](const LoopVariable& l) { return !is_unmoved(offset, l); };
      const bool is_along =
          std::ranges::any_of(phase.loops, moves) || std::ranges::any_of(phase.reduction, moves);
      values.loaded += is_along && (nest.outer.empty() || moves(nest.outer.back()));
    }
    for (const Reduction& reduction : phase.reductions)
      values.accumulated += reduction.kind == ReductionKind::Sum || reduction.kind == ReductionKind::Max ||
                                    reduction.kind == ReductionKind::Min
                                ? 1
                                : 2;
    most = {std::max(most.loaded, values.loaded), std::max(most.accumulated, values.accumulated)};
  }
  return most;
}

// Elements a step of a long row, by 16 warps.
int64_t row_step(const LoopNest& nest) {
  const StepValues values = step_values(nest);
  const bool is_simple = nest.phases.size() == 1 && values.loaded + values.accumulated <= 2;
  return is_simple ? kLoopedRow * std::max<int64_t>(8 / smallest_element(nest), 1) : kLoopedRow;
}

// Elements of columns of length `row` that one program of `rows` columns takes in a step. Nothing accumulates
// where one step is enough.
int64_t column_step(const LoopNest& nest, int64_t row, int64_t rows) {
  const StepValues values = step_values(nest);
  int64_t elements = kColumnElementsAThread;  // a thread
  const auto fits = [&](int64_t count) { return elements * count <= kColumnValuesAThread; };
  if (row * rows <= kColumnThreads * elements && fits(values.loaded)) return row;
  while (elements > kLeastElementsAThread && !fits(values.loaded + values.accumulated)) elements /= 2;
  return std::min(row, kColumnThreads * elements / rows);
}

// Rows of which one program adds up the columns.
LaunchShape parts_of_rows(int64_t part, int64_t row) {
  LaunchShape shape{.form = Form::Rows, .part = part};
  shape.columns = row;
  shape.rows = std::clamp<int64_t>(kRowBlock / row, 1, power_of_two(part));
  shape.warps = warps_for(shape.rows * shape.columns, 16);
  return shape;
}

LaunchShape rows(const LoopNest& nest) {
  const int64_t count = std::max<int64_t>(estimate(extent_of(nest.outer)), 1);
  int64_t longest = 0;
  bool is_known = true;
  for (const Phase& phase : nest.phases) {
    if (phase.loops.empty() && phase.reduction.empty()) continue;
    const Expr extent = row_extent(phase);
    is_known = is_known && extent.is_constant();
    longest = std::max(longest, estimate(extent));
  }
  LaunchShape shape{.form = Form::Rows};
  const int64_t row = power_of_two(longest);
  if (const int64_t part = rows_of_part(nest); part > 0) return parts_of_rows(part, row);
  if (is_along_rows(nest)) {
    const int64_t most = operand_count(nest) >= kManyOperands ? kLongestRowOfMany : kLongestPersistentRow;
    shape.is_persistent = is_known && row <= most;
    shape.columns = shape.is_persistent ? row : std::min(row, row_step(nest));
    shape.rows = std::max<int64_t>(1, std::min(kRowTile / shape.columns, power_of_two(count)));
    while (shape.rows > 1 && count / shape.rows < kPrograms) shape.rows /= 2;
    // A step of a looped row waits for its loads: more warps hide that.
    const bool is_wide = shape.columns > kWideRow || !shape.is_persistent;
    shape.warps = warps_for(shape.rows * shape.columns, is_wide ? 16 : 8);
    return shape;
  }
  shape.rows = std::min<int64_t>(std::max<int64_t>(kLine / smallest_element(nest), 32), power_of_two(count));
  // Few short columns, as parts that are joined: what a program reads of a line is a sector at least.
  while (shape.rows > kSector / smallest_element(nest) && count / shape.rows < kMultiprocessors)
    shape.rows /= 2;
  shape.is_persistent = is_known && row <= kShortColumn;
  shape.columns = shape.is_persistent ? row : column_step(nest, row, shape.rows);
  shape.warps = warps_for(shape.rows * shape.columns, 8);
  return shape;
}

}  // namespace

int64_t power_of_two(int64_t n) {
  int64_t power = 1;
  while (power < n) power *= 2;
  return power;
}

LaunchShape choose_launch_shape(const LoopNest& nest) {
  if (has_rows(nest)) return rows(nest);
  if (const auto loop = transposed_loop(nest)) return tile(nest, *loop);
  return flat(nest, std::max<int64_t>(estimate(extent_of(nest.outer)), 1));
}

}  // namespace oxy::backend::cuda
