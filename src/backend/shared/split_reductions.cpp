#include "backend/shared/split_reductions.h"

#include <fmt/format.h>

#include "backend/shared/nest_expressions.h"

namespace oxy::backend {

namespace {

using loop::Computation;
using loop::LoopVariable;
using loop::ReductionKind;

constexpr int64_t kFewResults = 16;
constexpr int64_t kLongReduction = 128 * 1024;
constexpr int64_t kMostParts = 64;
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

// The largest divisor of n in [kFewestParts, kMostParts], or 0.
int64_t part_count(int64_t n) {
  for (int64_t parts = std::min(kMostParts, n); parts >= kFewestParts; --parts)
    if (n % parts == 0) return parts;
  return 0;
}

// Makes `c` write its parts and returns the computation that combines them; nothing if it is not worth it.
std::optional<Computation> split(loop::Program& program, Computation& c) {
  if (!combines_from_parts(c.kind) || c.stores.size() != 1 || c.reduction.empty()) return std::nullopt;
  if (iterations(c.loops) >= kFewResults || iterations(c.loops) * iterations(c.reduction) < kLongReduction)
    return std::nullopt;
  size_t chosen = c.reduction.size();
  int64_t parts = 0;
  for (size_t k = 0; k < c.reduction.size() && parts == 0; ++k)
    if (auto extent = c.reduction[k].extent.as_constant()) {
      parts = part_count(*extent);
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
  std::vector<Expr> sizes;
  std::vector<Expr> index;
  for (const LoopVariable& l : c.loops) {
    sizes.push_back(l.extent);
    index.push_back(l.variable);
  }
  sizes.push_back(parts);
  index.push_back(part.variable);
  const loop::BufferId buffer = program.buffers.add(
      {.name = fmt::format("part{}", program.buffers.next_id()), .dtype = c.accumulate, .sizes = sizes});
  const loop::IndexId place = combine.body.indices.add(index);
  combine.reduced =
      combine.body.insts.add({.op = loop::Op::Load, .dtype = c.accumulate, .buffer = buffer, .index = place});

  c.loops.push_back(part);
  c.reduction[chosen] = within;
  c.stores = {{buffer, index, loop::kNoInst, loop::StoreMode::Set, 0}};
  return combine;
}

}  // namespace

void split_long_reductions(loop::Program& program) {
  IdVector<loop::StepId, loop::Step> steps;
  steps.reserve(program.steps.size());
  for (loop::Step& step : program.steps) {
    std::optional<Computation> combine;
    if (auto* c = std::get_if<Computation>(&step)) combine = split(program, *c);
    steps.add(std::move(step));
    if (combine) steps.add(std::move(*combine));
  }
  program.steps = std::move(steps);
}

}  // namespace oxy::backend
