#include "backend/cuda/row_shape.h"

#include <algorithm>
#include <optional>
#include <set>

#include "backend/cuda/accesses.h"

namespace oxy::backend::cuda {

namespace {

using loop::Op;

constexpr int64_t kPrograms = 2 * kMultiprocessors;      // that keep the device busy
constexpr int64_t kManyPrograms = 4 * kMultiprocessors;  // of which each needs fewer warps to do so
constexpr int64_t kMostRowElementsAThread = 32;          // where there are many rows
constexpr int64_t kMostStoredElementsAThread = 16;       // and a result for each element
constexpr int64_t kRowTile = 1024;         // elements of short rows that one program takes together, at least
constexpr int64_t kReducedRowTile = 2048;  // where nothing is stored for the elements
// Bytes that a program of short rows moves at least. The device starts a program in a nanosecond, in which
// its memory moves 3 KiB.
constexpr int64_t kBytesAProgram = 8192;
// Where there are many rows: joining sums of many warps takes long. A thread has more where each element of a
// row has one value that is loaded and one that is stored. Where each row has one sum, and nothing is stored
// for its elements, more threads that load are faster by 1 %.
constexpr int64_t kRowBytesAThread = 64;
constexpr int64_t kRowBytesAThreadOfOneLoad = 128;
constexpr int64_t kSummedRowBytesAThread = 32;
// Elements of a long row a step. A step waits for its loads, so there have to be several a thread: 64 bytes
// where one value is loaded and one accumulates.
constexpr int64_t kLoopedRow = 4096;
constexpr int64_t kColumnThreads = 256;
constexpr int64_t kColumnElementsAThread = 32;  // of a step down columns, which waits likewise
constexpr int64_t kColumnStep = 4096;           // elements of a step, of all columns together
// Values that a thread has at once. With more, fewer programs fit into a multiprocessor.
constexpr int64_t kColumnValuesAThread = 64;
constexpr int64_t kShortColumn = 64;  // elements of a column that stays in registers
// Steps of a walk through rows or down columns whose loads are under way together, where their bytes fit in
// shared memory beside those of other programs.
constexpr int kStages = 3;
constexpr int64_t kBytesOfStages = 24576;
constexpr int64_t kWideRow = 4096;  // from here on, a row needs more than 8 warps
// Elements of the longest row of many operands that stays in registers.
constexpr int64_t kLongestRowOfMany = 8192;

Expr row_extent(const Phase& phase) {
  return extent_of(phase.loops) * extent_of(phase.reduction);
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

// Bytes that are loaded and stored for each element of a row, but for what is the same in all rows.
int64_t bytes_along_rows(const LoopNest& nest) {
  std::set<ArrayId> moved;
  int64_t bytes_moved = 0;
  for (const Phase& phase : nest.phases) {
    const auto add = [&](ArrayId id, const Expr& offset) {
      const auto moves = [&](const LoopVariable& l) { return !is_unmoved(offset, l); };
      if (nest.arrays[id].kind != ArrayKind::Parameter) return;
      if (!nest.outer.empty() && std::ranges::none_of(nest.outer, moves)) return;
      if (std::ranges::none_of(phase.loops, moves) && std::ranges::none_of(phase.reduction, moves)) return;
      if (moved.insert(id).second) bytes_moved += bytes(nest.arrays[id].dtype);
    };
    for (const NestInst& inst : phase.insts)
      if (inst.op == Op::Load) add(inst.buffer, phase.expressions[inst.index]);
    for (const ElementStore& store : phase.stores) add(store.array, store.offset);
  }
  return std::max<int64_t>(bytes_moved, 1);
}

bool has_scans(const LoopNest& nest) {
  return std::ranges::any_of(nest.phases, [](const Phase& phase) {
    return std::ranges::any_of(phase.insts, [](const NestInst& inst) { return inst.op == Op::Scan; });
  });
}

// Elements of the runs of memory that a reduced row consists of, where they are shorter than a line and the
// runs of the next row follow: groups of channels, where channels are last.
std::optional<int64_t> short_run(const LoopNest& nest) {
  std::optional<int64_t> shortest;
  if (nest.outer.empty()) return shortest;
  for (const Phase& phase : nest.phases)
    for (const LoopVariable& l : phase.reduction)
      for_each_access(nest, phase, [&](const Access& access) {
        const std::optional<int64_t> length = l.extent.as_constant();
        if (!length || *length < 1 || *length * access.bytes >= kLine || !is_unit(access.offset, l)) return;
        if (stride_of(access.offset, nest.outer.back().variable) != std::optional(l.extent)) return;
        shortest = std::min(shortest.value_or(*length), *length);
      });
  return shortest;
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
  int64_t step = kColumnThreads * elements;
  // A scan goes on from the step before, which takes its time: it has fewer steps.
  if (!has_scans(nest)) step = std::min(step, kColumnStep);
  return std::min(row, step / rows);
}

// Rows of which one program adds up the columns.
LaunchShape parts_of_rows(const LoopNest& nest, int64_t part, int64_t row) {
  LaunchShape shape{.form = Form::Rows, .part = part};
  shape.columns = row;
  shape.rows = std::clamp<int64_t>(kRowBlock / row, 1, power_of_two(part));
  const int64_t elements = shape.rows * shape.columns;
  shape.warps = warps_for(elements * kElementsAThread / kMostElementsAThread, 16);
  if (elements * bytes_along_rows(nest) <= kBytesOfStages) shape.stages = kStages;
  return shape;
}

// The rows of a nest.
struct RowsOf {
  int64_t count = 1;  // estimated
  int64_t row = 1;    // elements of the longest, up to the next power of 2
  bool is_known = true;
};

RowsOf rows_of(const LoopNest& nest) {
  RowsOf rows{.count = std::max<int64_t>(estimate(extent_of(nest.outer)), 1)};
  int64_t longest = 0;
  for (const Phase& phase : nest.phases) {
    if (phase.loops.empty() && phase.reduction.empty()) continue;
    const Expr extent = row_extent(phase);
    rows.is_known = rows.is_known && extent.is_constant();
    longest = std::max(longest, estimate(extent));
  }
  rows.row = power_of_two(longest);
  return rows;
}

// Rows side by side, whose runs are whole lines of memory, in steps.
LaunchShape rows_of_runs(const LoopNest& nest, int64_t run, const RowsOf& rows) {
  LaunchShape shape{.form = Form::Rows, .is_persistent = false};
  const int64_t elements_of_line = kLine / smallest_element(nest);
  shape.rows =
      std::min(power_of_two(elements_of_line / run), power_of_two(estimate(nest.outer.back().extent)));
  shape.columns = std::min(rows.row, kLoopedRow / shape.rows);
  const bool are_many = rows.count / shape.rows >= kManyPrograms;
  shape.warps = warps_for(shape.rows * shape.columns, are_many ? 8 : 16);
  return shape;
}

// Rows whose elements are contiguous.
LaunchShape along_rows(const LoopNest& nest, const RowsOf& rows) {
  if (const auto run = short_run(nest); run && rows.row > kRowTile) {
    const LaunchShape shape = rows_of_runs(nest, *run, rows);
    if (rows.count / shape.rows >= kMultiprocessors) return shape;
  }
  LaunchShape shape{.form = Form::Rows};
  const int64_t most = operand_count(nest) >= kManyOperands ? kLongestRowOfMany : kLongestPersistentRow;
  shape.is_persistent = rows.is_known && rows.row <= most;
  shape.columns = shape.is_persistent ? rows.row : std::min(rows.row, row_step(nest));
  const int64_t bytes = bytes_along_rows(nest);
  const bool stores_elements = std::ranges::any_of(
      nest.phases, [](const Phase& phase) { return !phase.loops.empty() && !phase.stores.empty(); });
  const int64_t elements =
      stores_elements ? std::max(kRowTile, kBytesAProgram / power_of_two(bytes)) : kReducedRowTile;
  shape.rows = std::max<int64_t>(1, std::min(elements / shape.columns, power_of_two(rows.count)));
  while (shape.rows > 1 && rows.count / shape.rows < kPrograms) shape.rows /= 2;
  // Where the device runs all rows at once, small programs end sooner.
  const bool is_one_wave = rows.count * rows.row / kElementsAThread < kThreads;
  while (is_one_wave && shape.rows > 1 && shape.rows * shape.columns > kRowTile) shape.rows /= 2;
  if (shape.is_persistent && rows.count >= kPrograms) {
    const StepValues values = step_values(nest);
    const int64_t bytes_a_thread = !stores_elements && values.accumulated == 1 ? kSummedRowBytesAThread
                                   : stores_elements && values.loaded == 1     ? kRowBytesAThreadOfOneLoad
                                                                               : kRowBytesAThread;
    // Threads scan their own elements one after another.
    const int64_t most_a_thread = has_scans(nest)   ? kElementsAThread
                                  : stores_elements ? kMostStoredElementsAThread
                                                    : kMostRowElementsAThread;
    int64_t a_thread = std::clamp(bytes_a_thread / bytes, kElementsAThread, most_a_thread);
    while (a_thread > kElementsAThread && rows.count * rows.row / a_thread < kThreads) a_thread /= 2;
    // A row that one warp reduces is joined without waiting for others.
    if (is_one_wave && !stores_elements) a_thread = kMostRowElementsAThread;
    shape.warps = warps_for(shape.rows * shape.columns * kElementsAThread / a_thread, 16);
    return shape;
  }
  // A step of a looped row waits for its loads: more warps hide that.
  const bool is_wide = shape.columns > kWideRow || !shape.is_persistent;
  // Most multiprocessors have no row: those that have one may use more threads for it.
  const int64_t more = rows.count < kMultiprocessors ? 2 : 1;
  shape.warps = warps_for(shape.rows * shape.columns * more, is_wide ? 16 : 8);
  return shape;
}

// Rows side by side: elements of one are apart, and those of the next rows contiguous.
LaunchShape down_columns(const LoopNest& nest, const RowsOf& rows) {
  LaunchShape shape{.form = Form::Rows};
  shape.rows =
      std::min<int64_t>(std::max<int64_t>(kLine / smallest_element(nest), 32), power_of_two(rows.count));
  // Few short columns, as parts that are joined: a program reads a sector of a line, half of one of bytes.
  const int64_t fewest = std::min(kSector / smallest_element(nest), kFewColumns);
  while (shape.rows > fewest && rows.count / shape.rows < kMultiprocessors) shape.rows /= 2;
  shape.is_persistent = rows.is_known && rows.row <= kShortColumn;
  shape.columns = shape.is_persistent ? rows.row : column_step(nest, rows.row, shape.rows);
  const int64_t elements = shape.rows * shape.columns;
  shape.warps = warps_for(elements, 8);
  if (shape.columns < rows.row && elements * bytes_along_rows(nest) <= kBytesOfStages) {
    // Loads wait in shared memory: only what accumulates is in registers.
    shape.stages = kStages;
    if (kColumnElementsAThread * step_values(nest).accumulated <= kColumnValuesAThread)
      shape.warps = warps_for(elements * kElementsAThread / kColumnElementsAThread, 8);
  }
  return shape;
}

}  // namespace

LaunchShape row_shape(const LoopNest& nest) {
  const RowsOf rows = rows_of(nest);
  if (const int64_t part = rows_of_part(nest); part > 0) return parts_of_rows(nest, part, rows.row);
  return is_along_rows(nest) ? along_rows(nest, rows) : down_columns(nest, rows);
}

}  // namespace oxy::backend::cuda
