#include "backend/shared/split_reductions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "backend/shared/nest_expressions.h"

namespace oxy::backend {

namespace {

using loop::Computation;
using loop::LoopVariable;
using loop::ReductionKind;

constexpr int64_t kFewestParts = 4;
constexpr int64_t kPartVariables = int64_t{1} << 45;

double iterations(const std::vector<LoopVariable>& loops) {
  double n = 1;
  for (const LoopVariable& l : loops) n *= static_cast<double>(estimate(l.extent));
  return n;
}

bool combines_from_parts(ReductionKind kind) {
  switch (kind) {
    case ReductionKind::Sum:
    case ReductionKind::Prod:
    case ReductionKind::Max:
    case ReductionKind::Min:
    case ReductionKind::Any:
    case ReductionKind::All:
      return true;
    default:
      return false;
  }
}

// Whether elements of one result lie side by side, rather than those of neighbouring results.
bool reduces_rows(const loop::Program& program, const Computation& c) {
  int64_t votes = 0;
  for (const loop::Inst& inst : c.body.insts) {
    if (inst.op != loop::Op::Load) continue;
    const loop::Buffer& buffer = program.buffers[static_cast<size_t>(inst.buffer)];
    const std::vector<Expr> strides = buffer.strides ? *buffer.strides : contiguous_strides(buffer.sizes);
    const std::vector<Expr>& index = c.body.indices[static_cast<size_t>(inst.index)];
    Expr offset = 0;
    for (size_t d = 0; d < index.size(); ++d) offset = offset + index[d] * strides[d];
    const auto is_unit = [&](const LoopVariable& l) {
      const auto stride = stride_of(offset, l.variable);
      return stride && *stride == Expr(1);
    };
    votes += std::ranges::any_of(c.reduction, is_unit) ? 1 : 0;
    votes -= std::ranges::any_of(c.loops, is_unit) ? 1 : 0;
  }
  return votes >= 0;
}

// The largest divisor of n in [kFewestParts, most], or 0.
int64_t part_count(int64_t n, int64_t most) {
  for (int64_t parts = std::min(most, n); parts >= kFewestParts; --parts)
    if (n % parts == 0) return parts;
  return 0;
}

// Makes `c` write its parts and returns the computation that combines them; nothing if it is not worth it.
std::optional<Computation> split(loop::Program& program, Computation& c, const SplitCosts& costs) {
  if (!combines_from_parts(c.kind) || c.stores.size() != 1 || c.reduction.empty()) return std::nullopt;
  const double results = iterations(c.loops);
  if (results * iterations(c.reduction) < static_cast<double>(costs.long_reduction)) return std::nullopt;
  const auto few = static_cast<double>(reduces_rows(program, c) ? costs.few_rows : costs.few_columns);
  if (results >= few) return std::nullopt;
  int64_t most = costs.most_parts;
  if (costs.fills_device)
    most = std::min(most, static_cast<int64_t>(std::ceil(few / std::max(results, 1.0))));
  size_t chosen = c.reduction.size();
  int64_t parts = 0;
  for (size_t k = 0; k < c.reduction.size() && parts == 0; ++k)
    if (auto extent = c.reduction[k].extent.as_constant()) {
      parts = part_count(*extent, most);
      chosen = k;
    }
  if (parts == 0) return std::nullopt;

  LoopVariable& divided = c.reduction[chosen];
  int64_t rest = divided.extent.constant() / parts;
  LoopVariable part{Expr::variable("part", kPartVariables, {0, parts - 1}), parts};
  LoopVariable within{Expr::variable("within", kPartVariables + 1, {0, rest - 1}), rest};
  int64_t id = divided.variable.variable_id();
  for (auto& index : c.body.indices)
    for (Expr& e : index)
      if (!e.is_constant())
        e = sym::substitute(e, [&](int64_t v) {
          return v == id ? std::optional<Expr>(part.variable * rest + within.variable) : std::nullopt;
        });

  Computation combine;
  combine.loops = c.loops;
  combine.reduction = {part};
  combine.kind = c.kind;
  combine.accumulate = c.accumulate;
  combine.location = c.location;
  combine.stores = c.stores;
  combine.reduced = 0;
  std::vector<Expr> sizes;
  std::vector<Expr> index;
  for (const LoopVariable& l : c.loops) {
    sizes.push_back(l.extent);
    index.push_back(l.variable);
  }
  sizes.push_back(parts);
  index.push_back(part.variable);
  auto buffer = static_cast<loop::BufferId>(program.buffers.size());
  program.buffers.push_back({.name = fmt::format("part{}", buffer), .dtype = c.accumulate, .sizes = sizes});
  combine.body.insts = {{.op = loop::Op::Load, .dtype = c.accumulate, .buffer = buffer, .index = 0}};
  combine.body.indices = {index};

  c.loops.push_back(part);
  c.reduction[chosen] = within;
  c.stores = {{buffer, index, 0, loop::StoreMode::Set}};
  return combine;
}

}  // namespace

void split_long_reductions(loop::Program& program, const SplitCosts& costs) {
  std::vector<loop::Step> steps;
  steps.reserve(program.steps.size());
  for (loop::Step& step : program.steps) {
    std::optional<Computation> combine;
    if (auto* c = std::get_if<Computation>(&step)) combine = split(program, *c, costs);
    steps.push_back(std::move(step));
    if (combine) steps.emplace_back(std::move(*combine));
  }
  program.steps = std::move(steps);
}

}  // namespace oxy::backend
