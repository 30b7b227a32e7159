#include "backend/cuda/axes.h"

#include <algorithm>
#include <map>
#include <utility>

#include "backend/cuda/index_comparisons.h"
#include "base/error.h"

namespace oxy::backend::cuda {

namespace {

constexpr int64_t kAxisPositions = 200;  // above those of loops
constexpr int64_t kRestNumber = 100;     // above those of columns

Expr extent_of(const std::vector<LoopVariable>& loops) {
  Expr extent = 1;
  for (const LoopVariable& l : loops) extent = extent * l.extent;
  return extent;
}

Axis axis(int64_t number, const Expr& extent, int64_t block) {
  return {nest_variable(kAxisPositions + number, extent), extent, block};
}

using Replacements = std::map<int64_t, Expr>;  // by variable id

// The loops' variables from the position in all of them, row-major.
void unravel(const std::vector<LoopVariable>& loops, const Expr& position, Replacements& values) {
  const bool is_empty = std::ranges::any_of(loops, [](const LoopVariable& l) { return l.extent == Expr(0); });
  Expr stride = 1;
  for (size_t k = loops.size(); k-- > 0;) {
    if (is_empty) {
      values[loops[k].variable.variable_id()] = 0;
      continue;
    }
    const Expr above = sym::floordiv(position, stride);
    values[loops[k].variable.variable_id()] = k == 0 ? above : sym::mod(above, loops[k].extent);
    stride = stride * loops[k].extent;
  }
}

void replace(Phase& phase, const Replacements& values) {
  for_each_expression(phase, [&](Expr& e) {
    if (e.is_constant()) return;
    e = sym::substitute(e, [&](int64_t id) -> std::optional<Expr> {
      const auto found = values.find(id);
      return found == values.end() ? std::nullopt : std::optional(found->second);
    });
  });
}

Axes tile_axes(LoopNest& nest, const LaunchShape& shape) {
  Axes axes;
  const std::vector<LoopVariable> rows = tile_rows(nest, shape);
  const LoopVariable& column = nest.outer.back();
  axes.rows = axis(0, extent_of(rows), shape.rows);
  axes.columns = {axis(1, column.extent, shape.columns)};
  std::vector<LoopVariable> others(nest.outer.begin(), nest.outer.end() - 1);
  const auto first = others.begin() + static_cast<std::ptrdiff_t>(shape.tile_loop);
  others.erase(first, first + static_cast<std::ptrdiff_t>(shape.tile_loops));
  Replacements values{{column.variable.variable_id(), axes.columns[0].variable}};
  unravel(rows, axes.rows->variable, values);
  if (!others.empty()) {
    axes.rest = axis(kRestNumber, extent_of(others), 1);
    unravel(others, axes.rest->variable, values);
    axes.programs = axes.rest->extent;
  }
  for (Phase& phase : nest.phases) replace(phase, values);
  axes.columns_of_phase.assign(nest.phases.size(), 0);
  axes.programs = axes.programs * sym::ceildiv(axes.rows->extent, shape.rows) *
                  sym::ceildiv(column.extent, shape.columns);
  return axes;
}

Axes flat_axes(LoopNest& nest, const LaunchShape& shape) {
  Axes axes;
  axes.columns = {axis(0, extent_of(nest.outer), shape.columns)};
  Replacements values;
  unravel(nest.outer, axes.columns[0].variable, values);
  for (Phase& phase : nest.phases) replace(phase, values);
  axes.columns_of_phase.assign(nest.phases.size(), 0);
  axes.programs = sym::ceildiv(axes.columns[0].extent, shape.columns);
  return axes;
}

// Whether no block of rows goes beyond the last outer loop: the other loops are the same for all its rows.
bool ends_with_last_loop(const LoopNest& nest, const LaunchShape& shape) {
  if (nest.outer.size() < 2 || shape.rows == 1 || shape.part > 0) return false;
  const auto extent = nest.outer.back().extent.as_constant();
  return extent && *extent > 0 && *extent % shape.rows == 0;
}

// Sets what the loops around all phases are.
Replacements outer_axes(const LoopNest& nest, const LaunchShape& shape, Axes& axes) {
  Replacements values;
  if (!ends_with_last_loop(nest, shape)) {
    axes.rows = axis(0, extent_of(nest.outer), shape.rows);
    axes.programs = sym::ceildiv(axes.rows->extent, shape.part > 0 ? shape.part : shape.rows);
    unravel(nest.outer, axes.rows->variable, values);
    return values;
  }
  const LoopVariable& last = nest.outer.back();
  const std::vector<LoopVariable> others(nest.outer.begin(), nest.outer.end() - 1);
  axes.rows = axis(0, last.extent, shape.rows);
  axes.rest = axis(kRestNumber, extent_of(others), 1);
  axes.programs = axes.rest->extent * sym::ceildiv(last.extent, shape.rows);
  unravel(others, axes.rest->variable, values);
  values[last.variable.variable_id()] = axes.rows->variable;
  return values;
}

Axes row_axes(LoopNest& nest, const LaunchShape& shape) {
  Axes axes;
  const Replacements outer = outer_axes(nest, shape, axes);
  for (Phase& phase : nest.phases) {
    if (!phase.loops.empty() && !phase.reduction.empty())
      throw Unsupported("a kernel with loops around a reduction inside shared loops");
    const auto& loops = phase.loops.empty() ? phase.reduction : phase.loops;
    Replacements values = outer;
    int number = -1;
    if (!loops.empty()) {
      const Expr extent = extent_of(loops);
      const auto same = std::ranges::find_if(axes.columns, [&](const Axis& a) { return a.extent == extent; });
      number = static_cast<int>(same - axes.columns.begin());
      if (same == axes.columns.end()) {
        const int64_t block =
            extent.is_constant() ? std::min(shape.columns, power_of_two(extent.constant())) : shape.columns;
        axes.columns.push_back(axis(number + 1, extent, block));
      }
      unravel(loops, axes.columns[static_cast<size_t>(number)].variable, values);
    }
    replace(phase, values);
    axes.columns_of_phase.push_back(number);
  }
  return axes;
}

Axes axes_of_form(LoopNest& nest, const LaunchShape& shape) {
  switch (shape.form) {
    case Form::Flat:
      return flat_axes(nest, shape);
    case Form::Tile:
      return tile_axes(nest, shape);
    case Form::Rows:
      return row_axes(nest, shape);
  }
  throw InternalError("a launch of unknown form");
}

}  // namespace

Axes make_axes(LoopNest& nest, const LaunchShape& shape) {
  Axes axes = axes_of_form(nest, shape);
  for (Phase& phase : nest.phases) compare_undivided(phase);
  return axes;
}

bool passes_in_registers(const LoopNest& nest, const Axes& axes) {
  std::map<ArrayId, std::vector<std::pair<Expr, int>>> stored;  // by array: where, and over which columns
  for (size_t p = 0; p < nest.phases.size(); ++p) {
    const Phase& phase = nest.phases[p];
    const int columns = axes.columns_of_phase[p];
    for (const NestInst& inst : phase.insts) {
      if (inst.op != loop::Op::Load) continue;
      if (nest.arrays[inst.buffer].kind != ArrayKind::Scratch) continue;
      const std::pair wanted{phase.expressions[inst.index], columns};
      if (std::ranges::find(stored[inst.buffer], wanted) == stored[inst.buffer].end()) return false;
    }
    for (const ElementStore& store : phase.stores) stored[store.array].emplace_back(store.offset, columns);
    for (const Reduction& reduction : phase.reductions)
      for (const ResultStore& store : reduction.stores) stored[store.array].emplace_back(store.offset, -1);
  }
  return true;
}

}  // namespace oxy::backend::cuda
