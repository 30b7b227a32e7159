#include "backend/shared/split_reductions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "backend/shared/nest_expressions.h"
#include "backend/shared/normal_form.h"
#include "base/error.h"

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

bool combines_from_parts(ReductionKind kind, bool pairs) {
  switch (kind) {
    case ReductionKind::Sum:
    case ReductionKind::Prod:
    case ReductionKind::Max:
    case ReductionKind::Min:
    case ReductionKind::Any:
    case ReductionKind::All:
      return true;
    case ReductionKind::Welford:
    case ReductionKind::OnlineSoftmax:
      return pairs;
    default:
      return false;
  }
}

// Whether elements of one result lie side by side, rather than those of neighbouring results.
bool reduces_rows(const loop::Program& program, const Computation& c) {
  double votes = 0;  // bytes
  for (const loop::Inst& inst : c.body.insts) {
    if (inst.op != loop::Op::Load) continue;
    const loop::Buffer& buffer = program.buffers[inst.buffer];
    check(buffer.strides.has_value(), "a reduction is split before the layouts of its operands are known");
    const std::vector<Expr>& strides = *buffer.strides;
    const std::vector<Expr>& index = c.body.indices[inst.index];
    Expr offset = 0;
    for (size_t d = 0; d < index.size(); ++d) offset = offset + index[d] * strides[d];
    const auto is_unit = [&](const LoopVariable& l) {
      const auto stride = stride_of(offset, l.variable);
      return stride && *stride == Expr(1);
    };
    const double weight = estimated_bytes(buffer);
    if (std::ranges::any_of(c.reduction, is_unit)) votes += weight;
    if (std::ranges::any_of(c.loops, is_unit)) votes -= weight;
  }
  return votes >= 0;
}

// The largest divisor of n in [kFewestParts, most], or 0.
int64_t part_count(int64_t n, int64_t most) {
  for (int64_t parts = std::min(most, n); parts >= kFewestParts; --parts)
    if (n % parts == 0) return parts;
  return 0;
}

size_t result_count(ReductionKind kind) {
  return kind == ReductionKind::Welford || kind == ReductionKind::OnlineSoftmax ? 2 : 1;
}

// The loop over the parts, where the parts are kept, and the elements of one part.
struct Parts {
  LoopVariable part;
  std::vector<Expr> sizes;
  std::vector<Expr> index;
  Expr elements = 1;
};

Expr rest_elements(const Computation& c, size_t chosen, int64_t rest) {
  Expr elements = rest;
  for (size_t k = 0; k < c.reduction.size(); ++k)
    if (k != chosen) elements = elements * c.reduction[k].extent;
  return elements;
}

Device device_of(const loop::Program& program, const Computation& c) {
  for (const loop::Store& store : c.stores)
    if (store.buffer != loop::kNoBuffer) return program.buffers[store.buffer].device;
  return {};
}

loop::BufferId new_buffer(loop::Program& program, std::string_view name, DType dtype, std::vector<Expr> sizes,
                          Device device) {
  return program.buffers.add({.name = fmt::format("{}{}", name, program.buffers.next_id()),
                              .dtype = dtype,
                              .sizes = std::move(sizes),
                              .device = device});
}

// Writes the body of a computation over the parts.
struct CombineBuilder {
  CombineBuilder(const Computation& whole, const Parts& parts, ReductionKind kind) {
    c.loops = whole.loops;
    c.reduction = {parts.part};
    c.kind = kind;
    c.accumulate = whole.accumulate;
    c.location = whole.location;
    c.origin = whole.origin;
  }
  loop::InstId add(loop::Op op, DType dtype, std::array<loop::InstId, 3> operands) {
    return c.body.insts.add({.op = op, .dtype = dtype, .operands = operands});
  }
  loop::InstId add(loop::Op op, loop::InstId a, loop::InstId b = loop::kNoInst) {
    return add(op, c.accumulate, {a, b, loop::kNoInst});
  }
  loop::InstId load(const loop::Store& of) {
    const loop::IndexId place = c.body.indices.add(of.index);
    return c.body.insts.add(
        {.op = loop::Op::Load, .dtype = c.accumulate, .buffer = of.buffer, .index = place});
  }
  loop::InstId number(double value) {
    return c.body.insts.add({.op = loop::Op::Constant, .dtype = c.accumulate, .constant = {value}});
  }
  loop::InstId number(const Expr& value) {
    if (const auto constant = value.as_constant()) return number(static_cast<double>(*constant));
    const loop::IndexId place = c.body.indices.add({value});
    return add(loop::Op::Cast,
               c.body.insts.add({.op = loop::Op::Index, .dtype = DType::Int64, .index = place}));
  }
  // `value` is reduced, and the result goes where the whole reduction's did.
  Computation finish(loop::InstId value, loop::Store to) {
    c.reduced = value;
    to.result = 0;
    c.stores = {std::move(to)};
    return std::move(c);
  }

  Computation c;
};

Computation combine_alike(const Computation& whole, const Parts& parts, const loop::Store& partial) {
  CombineBuilder b(whole, parts, whole.kind);
  return b.finish(b.load(partial), whole.stores[0]);
}

// Where result 0 of the whole reduction is found by those that combine result 1: in its place, or in a new
// one if nobody wants it or it is kept at another precision.
loop::Store first_result(loop::Program& program, const Computation& whole) {
  loop::Store to = whole.stores[0];
  if (to.buffer != loop::kNoBuffer && program.buffers[to.buffer].dtype == whole.accumulate) return to;
  std::vector<Expr> sizes, index;
  for (const LoopVariable& l : whole.loops) {
    sizes.push_back(l.extent);
    index.push_back(l.variable);
  }
  return {new_buffer(program, "joined", whole.accumulate, std::move(sizes), device_of(program, whole)),
          std::move(index), loop::kNoInst, loop::StoreMode::Set, 0};
}

std::vector<Computation> with_first_result(const Computation& whole, const loop::Store& first,
                                           Computation first_combine, Computation second_combine) {
  std::vector<Computation> all;
  if (first.buffer != whole.stores[0].buffer && whole.stores[0].buffer != loop::kNoBuffer) {
    Computation again = first_combine;
    again.stores = {whole.stores[0]};
    again.stores[0].result = 0;
    all.push_back(std::move(again));
  }
  all.push_back(std::move(first_combine));
  if (whole.stores[1].buffer != loop::kNoBuffer) all.push_back(std::move(second_combine));
  return all;
}

// Means m of parts of n elements, and their squared deviations: the mean is that of the means, the squared
// deviations are the parts' and n (m - mean)^2 for each (Chan, Golub and LeVeque, 1979).
std::vector<Computation> combine_moments(loop::Program& program, const Computation& whole, const Parts& parts,
                                         const std::vector<loop::Store>& partial) {
  const loop::Store first = first_result(program, whole);
  CombineBuilder mean(whole, parts, ReductionKind::Sum);
  const auto share = mean.number(1.0 / static_cast<double>(parts.part.extent.constant()));
  Computation means = mean.finish(mean.add(loop::Op::Mul, mean.load(partial[0]), share), first);
  CombineBuilder squares(whole, parts, ReductionKind::Sum);
  const auto off = squares.add(loop::Op::Sub, squares.load(partial[0]), squares.load(first));
  const auto between =
      squares.add(loop::Op::Mul, squares.add(loop::Op::Mul, off, off), squares.number(parts.elements));
  Computation deviations =
      squares.finish(squares.add(loop::Op::Add, squares.load(partial[1]), between), whole.stores[1]);
  return with_first_result(whole, first, std::move(means), std::move(deviations));
}

// Maxima m of parts and sums s of exp(x - m): the maximum M is that of the maxima, the sum that of
// s exp(m - M). A part of nothing but -inf adds nothing.
std::vector<Computation> combine_softmax(loop::Program& program, const Computation& whole, const Parts& parts,
                                         const std::vector<loop::Store>& partial) {
  const loop::Store first = first_result(program, whole);
  CombineBuilder maximum(whole, parts, ReductionKind::Max);
  Computation maxima = maximum.finish(maximum.load(partial[0]), first);
  CombineBuilder sum(whole, parts, ReductionKind::Sum);
  const auto m = sum.load(partial[0]);
  const auto nothing = sum.add(loop::Op::Eq, DType::Bool,
                               {m, sum.number(-std::numeric_limits<double>::infinity()), loop::kNoInst});
  const auto scale = sum.add(loop::Op::Exp, sum.add(loop::Op::Sub, m, sum.load(first)));
  const auto scaled = sum.add(loop::Op::Mul, sum.load(partial[1]), scale);
  const auto zero = sum.number(0.0);
  Computation sums =
      sum.finish(sum.add(loop::Op::Where, whole.accumulate, {nothing, zero, scaled}), whole.stores[1]);
  return with_first_result(whole, first, std::move(maxima), std::move(sums));
}

}  // namespace

std::vector<Computation> split_long_reduction(loop::Program& program, Computation& c,
                                              const SplitCosts& costs) {
  if (!combines_from_parts(c.kind, costs.splits_pairs) || c.reduction.empty()) return {};
  if (c.stores.size() != result_count(c.kind)) return {};
  const double results = iterations(c.loops);
  if (results * iterations(c.reduction) < static_cast<double>(costs.long_reduction)) return {};
  const bool is_row = reduces_rows(program, c);
  const auto few = static_cast<double>(is_row ? costs.few_rows : costs.few_columns);
  if (results >= few) return {};
  if (iterations(c.reduction) < static_cast<double>(is_row ? costs.long_row : costs.long_column)) return {};
  int64_t most = costs.most_parts;
  if (costs.fills_device)
    most = std::min(most, static_cast<int64_t>(std::ceil(few / std::max(results, 1.0))));
  size_t chosen = c.reduction.size();
  int64_t parts = 0;
  for (size_t k = 0; k < c.reduction.size(); ++k) {
    const auto extent = c.reduction[k].extent.as_constant();
    const int64_t found = extent ? part_count(*extent, most) : 0;
    if (found <= parts) continue;
    parts = found;
    chosen = k;
  }
  if (parts == 0) return {};

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

  Parts parts_of{part, {}, {}, rest_elements(c, chosen, rest)};
  for (const LoopVariable& l : c.loops) {
    parts_of.sizes.push_back(l.extent);
    parts_of.index.push_back(l.variable);
  }
  parts_of.sizes.push_back(parts);
  parts_of.index.push_back(part.variable);
  const Computation whole = c;
  c.loops.push_back(part);
  c.reduction[chosen] = within;
  c.stores.clear();
  const auto device = device_of(program, whole);
  for (size_t k = 0; k < result_count(c.kind); ++k)
    c.stores.push_back({new_buffer(program, "part", c.accumulate, parts_of.sizes, device), parts_of.index,
                        loop::kNoInst, loop::StoreMode::Set, static_cast<int32_t>(k)});
  switch (whole.kind) {
    case ReductionKind::Welford:
      return combine_moments(program, whole, parts_of, c.stores);
    case ReductionKind::OnlineSoftmax:
      return combine_softmax(program, whole, parts_of, c.stores);
    default:
      return {combine_alike(whole, parts_of, c.stores[0])};
  }
}

}  // namespace oxy::backend
