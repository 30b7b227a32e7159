#include "backend/shared/reductions/row_sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "backend/shared/reductions/computation_loads.h"
#include "loop/devices.h"

namespace oxy::backend {

namespace {

using loop::Computation;
using loop::LoopVariable;
using loop::ReductionKind;

std::optional<int64_t> elements(const loop::Buffer& buffer) {
  int64_t count = 1;
  for (const Expr& size : buffer.sizes) {
    const auto constant = size.as_constant();
    if (!constant) return std::nullopt;
    count *= *constant;
  }
  return count;
}

bool is_along(const std::vector<Expr>& index, const LoopVariable& column) {
  if (index.empty()) return false;
  const std::vector<Expr> variables = sym::variables(index.back());
  return std::ranges::find(variables, column.variable) != variables.end();
}

bool reduces(const Item& item, const Item& rows, size_t depth) {
  return item.is_reduction() && item.loop_count == depth && item.extents == rows.extents;
}

// Whether what a row's loops go through stays in registers.
bool has_row_within(const Item& item, size_t depth, int64_t most) {
  int64_t length = 1;
  for (size_t k = depth; k < item.extents.size(); ++k) {
    const auto extent = item.extents[k].as_constant();
    if (!extent) return false;
    length *= *extent;
  }
  return length <= most;
}

// The least power of 2 that is not below n.
int64_t power_of_two(int64_t n) {
  int64_t power = 1;
  while (power < n) power *= 2;
  return power;
}

}  // namespace

RowSums::RowSums(const loop::Program& program, const SplitCosts& costs, const std::set<StepId>& apart)
    : costs_(costs), apart_(apart) {
  if (costs.row_programs > 0) find_rows(program);
}

std::optional<RowsShape> RowSums::rows_of(const std::vector<LoopVariable>& rows,
                                          const std::vector<LoopVariable>& columns) const {
  const auto count = iterations(rows), length = iterations(columns);
  if (!count || !length || *length < 2 || *length > costs_.longest_row) return std::nullopt;
  if (*count < costs_.row_programs / 2 * costs_.least_rows) return std::nullopt;
  return RowsShape{*count, *length};
}

void RowSums::find_rows(const loop::Program& program) {
  std::map<BufferId, RowsShape> results;  // of reductions of rows
  for (const loop::Step& step : program.steps) {
    const auto* c = std::get_if<Computation>(&step);
    if (!c) continue;
    const bool is_reduction = c->kind != ReductionKind::None;
    if (is_reduction) {
      const auto rows = rows_of(c->loops, c->reduction);
      if (!rows) continue;
      for_each_load(*c, [&](BufferId id, const auto&) {
        if (elements(program.buffers[id]) == rows->count * rows->length) read_.emplace(id, *rows);
      });
      for (const loop::Store& store : c->stores)
        if (loop::is_scan(c->kind))
          read_.emplace(store.buffer, *rows);
        else
          results.emplace(store.buffer, *rows);
      continue;
    }
    // What is made of the rows' results, and as large as they are.
    const auto count = iterations(c->loops);
    for_each_load(*c, [&](BufferId id, const auto&) {
      const auto found = results.find(id);
      if (found == results.end() || count != found->second.count * found->second.length) return;
      for (const loop::Store& store : c->stores) read_.emplace(store.buffer, found->second);
    });
  }
}

std::optional<Computation> RowSums::add_up(loop::Program& program, Computation& c, StepId step,
                                           Splits& splits) const {
  if (read_.empty() || c.kind != ReductionKind::Sum || c.stores.size() != 1 || c.loops.size() != 1 ||
      apart_.contains(step))
    return std::nullopt;
  const auto rows = rows_of(c.reduction, c.loops);
  if (!rows) return std::nullopt;
  bool is_beside_rows = false;
  for_each_load(c, [&](BufferId id, const std::vector<Expr>& index) {
    is_beside_rows = is_beside_rows || (read_.contains({id, *rows}) && is_along(index, c.loops[0]));
  });
  if (!is_beside_rows) return std::nullopt;

  // A program takes some rows at a time.
  const int64_t together = std::max<int64_t>(costs_.row_block / power_of_two(rows->length), 1);
  const int64_t chosen = rows->length > costs_.row_block ? costs_.long_row_programs : costs_.row_programs;
  const PartCount programs = splits.take(*rows, {chosen, {0, chosen / 2, chosen * 2}});
  if (programs == 0) return std::nullopt;
  int64_t part = std::max((rows->count + programs - 1) / programs, costs_.least_rows);
  part = (part + together - 1) / together * together;
  const int64_t parts = (rows->count + part - 1) / part;

  const Computation whole = c;
  const LoopVariable& column = whole.loops[0];
  const LoopVariable over{Expr::variable("part", int64_t{1} << 45, {0, parts - 1}), parts};
  const BufferId buffer = program.buffers.add({.name = fmt::format("part{}", program.buffers.next_id()),
                                               .dtype = whole.accumulate,
                                               .sizes = {parts, column.extent},
                                               .device = device_of(program, whole)});
  c.loops = whole.reduction;
  c.loops.push_back(column);
  c.reduction.clear();
  c.kind = ReductionKind::None;
  if (c.body.insts[c.reduced].dtype != c.accumulate)
    c.reduced = c.body.insts.add(
        {.op = loop::Op::Cast, .dtype = c.accumulate, .operands = {c.reduced, loop::kNoInst, loop::kNoInst}});
  c.stores = {{.buffer = buffer,
               .index = {0, column.variable},
               .value = c.reduced,
               .mode = loop::StoreMode::AddInParts,
               .part = {part, rows->length}}};

  Computation combine = whole;
  combine.reduction = {over};
  combine.body = {};
  const auto place = combine.body.indices.add({over.variable, column.variable});
  combine.reduced = combine.body.insts.add(
      {.op = loop::Op::Load, .dtype = whole.accumulate, .buffer = buffer, .index = place});
  return combine;
}

std::set<StepId> sums_without_rows(const IdVector<StepId, Item>& items,
                                   const IdVector<GroupId, Group>& groups, const SplitCosts& costs) {
  std::set<StepId> found;
  for (const Group& group : groups) {
    const size_t depth = group.extents.size();
    std::optional<int64_t> part;
    const bool has_short_rows = std::ranges::all_of(
        group.steps, [&](StepId step) { return has_row_within(items[step], depth, costs.longest_row); });
    for (const StepId step : group.steps) {
      const Item& item = items[step];
      if (!item.added_up) continue;
      const bool has_all_loops = item.extents.size() == depth + 1 &&
                                 std::equal(group.extents.begin(), group.extents.end(), item.extents.begin());
      const bool has_rows =
          std::ranges::any_of(group.steps, [&](StepId other) { return reduces(items[other], item, depth); });
      const int64_t rows = item.stores[0].part.rows;
      if (!has_short_rows || !has_all_loops || !has_rows || part.value_or(rows) != rows)
        found.insert(*item.added_up);
      part = rows;
    }
  }
  return found;
}

}  // namespace oxy::backend
