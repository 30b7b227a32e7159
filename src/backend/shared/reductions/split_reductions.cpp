#include "backend/shared/reductions/split_reductions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "backend/shared/buffer_bytes.h"
#include "backend/shared/division.h"
#include "backend/shared/nest_expressions.h"
#include "base/error.h"
#include "loop/devices.h"

namespace oxy::backend {

namespace {

using loop::Computation;
using loop::LoopVariable;
using loop::ReductionKind;

constexpr int64_t kFewestParts = 4;
constexpr int64_t kLeastPart = 16;    // elements: blocks of kernels are no smaller
constexpr int64_t kAlignedPart = 64;  // elements side by side: parts begin at lines of memory
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

size_t result_count(ReductionKind kind) {
  return kind == ReductionKind::Welford || kind == ReductionKind::OnlineSoftmax ? 2 : 1;
}

// The loops over the parts, where the parts are kept, and the elements of one part.
struct Parts {
  std::vector<LoopVariable> loops;
  int64_t count = 1;
  std::vector<Expr> sizes;
  std::vector<Expr> index;
  Expr elements = 1;  // over the loops: fewer in the last part where they are not even
  bool are_even = true;
};

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
    c.reduction = parts.loops;
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

// Means m of parts of n elements, and their squared deviations: the mean is that of the means, each as often
// as its part has elements, the squared deviations are the parts' and n (m - mean)^2 for each (Chan, Golub
// and LeVeque, 1979).
std::vector<Computation> combine_moments(loop::Program& program, const Computation& whole, const Parts& parts,
                                         const std::vector<loop::Store>& partial) {
  const loop::Store first = first_result(program, whole);
  CombineBuilder mean(whole, parts, ReductionKind::Sum);
  const auto share = parts.are_even ? mean.number(1.0 / static_cast<double>(parts.count))
                                    : mean.add(loop::Op::Mul, mean.number(parts.elements),
                                               mean.number(1.0 / iterations(whole.reduction)));
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

// Whether an index is checked. That of an element which does not count may be out of range.
bool checks_indices(const loop::Body& body) {
  return std::ranges::any_of(
      body.insts, [](const loop::Inst& inst) { return inst.op == loop::Op::BindIndex && inst.checked; });
}

// What changes no result, as an element of `dtype`.
loop::Scalar identity(ReductionKind kind, DType dtype) {
  const bool is_real = is_floating(dtype);
  const auto number = [&](int64_t n) {
    return dtype == DType::Bool ? loop::Scalar{n != 0}
           : is_real            ? loop::Scalar{static_cast<double>(n)}
                                : loop::Scalar{n};
  };
  const auto bits = static_cast<int64_t>(8 * item_size(dtype)) - (is_signed(dtype) ? 1 : 0);
  const bool is_truth = dtype == DType::Bool;
  const int64_t greatest = is_truth     ? 1
                           : bits >= 63 ? std::numeric_limits<int64_t>::max()
                                        : (int64_t{1} << bits) - 1;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  switch (kind) {
    case ReductionKind::Max:
    case ReductionKind::OnlineSoftmax:
      return is_real ? loop::Scalar{-kInfinity} : number(is_truth || !is_signed(dtype) ? 0 : -1 - greatest);
    case ReductionKind::Min:
      return is_real ? loop::Scalar{kInfinity} : number(greatest);
    case ReductionKind::Prod:
    case ReductionKind::All:
      return number(1);
    default:
      return number(0);
  }
}

// The body of a computation where only the iterations with `position` below `extent` count: nothing is read
// in the others, and they reduce to what changes no result.
class MaskedBody {
 public:
  MaskedBody(const Computation& c, const Expr& position, const Expr& extent, int64_t within)
      : c_(c), within_(within), body_{{}, c.body.indices} {
    const auto at = body_.insts.add(
        {.op = loop::Op::Index, .dtype = DType::Int64, .index = body_.indices.add({position})});
    const auto end =
        body_.insts.add({.op = loop::Op::Constant, .dtype = DType::Int64, .constant = {extent.constant()}});
    counts_ = add(loop::Op::Lt, DType::Bool, {at, end, loop::kNoInst});
  }

  // Sets `reduced`.
  loop::Body take(loop::InstId& reduced) {
    IdVector<loop::InstId, loop::InstId> renumbered;
    for (loop::Inst inst : c_.body.insts) {
      for (loop::InstId& id : inst.operands)
        if (id != loop::kNoInst) id = renumbered[id];
      if (inst.op == loop::Op::Load && moves(inst)) mask(inst);
      renumbered.add(body_.insts.add(inst));
    }
    const loop::InstId value = renumbered[c_.reduced];
    reduced = is_zero_elsewhere(value) ? value : chosen(value);
    return std::move(body_);
  }

 private:
  loop::InstId add(loop::Op op, DType dtype, std::array<loop::InstId, 3> operands) {
    return body_.insts.add({.op = op, .dtype = dtype, .operands = operands});
  }

  // Whether another element is read where another iteration of the loop is.
  bool moves(const loop::Inst& load) const {
    return std::ranges::any_of(body_.indices[load.index], [&](const Expr& e) {
      return std::ranges::any_of(sym::variables(e), [&](const Expr& v) {
        return v.variable_id() == within_ || is_bound_variable(v.variable_id());
      });
    });
  }

  void mask(loop::Inst& load) {
    if (load.operands[0] != loop::kNoInst) {
      load.operands[0] = add(loop::Op::BitAnd, DType::Bool, {load.operands[0], counts_, loop::kNoInst});
      return;
    }
    load.operands[0] = counts_;
    load.operands[1] = body_.insts.add({.op = loop::Op::Constant,
                                        .dtype = load.dtype,
                                        .constant = identity(ReductionKind::Sum, load.dtype)});
  }

  // What is read alone is 0 already where it does not count.
  bool is_zero_elsewhere(loop::InstId value) const {
    if (c_.kind != ReductionKind::Sum && c_.kind != ReductionKind::Any) return false;
    const loop::Inst* inst = &body_.insts[value];
    while (inst->op == loop::Op::Cast) inst = &body_.insts[inst->operands[0]];
    return inst->op == loop::Op::Load && inst->operands[0] == counts_;
  }

  loop::InstId chosen(loop::InstId value) {
    if (c_.kind == ReductionKind::Welford) return value;  // Computation::counted tells
    const DType dtype = body_.insts[value].dtype;
    const auto otherwise =
        body_.insts.add({.op = loop::Op::Constant, .dtype = dtype, .constant = identity(c_.kind, dtype)});
    return add(loop::Op::Where, dtype, {counts_, value, otherwise});
  }

  const Computation& c_;
  int64_t within_;  // the variable of the loop over a part
  loop::Body body_;
  loop::InstId counts_;
};

// Whether a part may begin anywhere. Where one loop stands for several dimensions, an index is a quotient or
// remainder of its variable: parts of those lengths keep the places of neighbours simple, and others do not.
bool has_linear_indices(const Computation& c) {
  const auto is_linear = [&](const Expr& e) {
    return std::ranges::all_of(c.reduction, [&](const LoopVariable& l) {
      return sym::linear_in(e, l.variable.variable_id()).has_value();
    });
  };
  return std::ranges::all_of(c.body.indices,
                             [&](const auto& index) { return std::ranges::all_of(index, is_linear); });
}

// How many results keep the device busy without parts. `all_elements`: of all results.
double enough_results(const SplitCosts& costs, double all_elements, bool is_row) {
  if (is_row) return static_cast<double>(costs.few_rows);
  const auto few = static_cast<double>(costs.few_columns);
  if (costs.elements_a_column == 0) return few;
  return std::max(few, std::min(all_elements / static_cast<double>(costs.elements_a_column),
                                static_cast<double>(costs.most_few_columns)));
}

// Whether columns are not split because programs of few columns each keep the device busy.
bool columns_stay_whole(const SplitCosts& costs, const Computation& c) {
  const auto is_known = [](const LoopVariable& l) { return l.extent.is_constant(); };
  const double results = iterations(c.loops);
  return std::ranges::all_of(c.loops, is_known) && results >= static_cast<double>(costs.many_columns) &&
         results * iterations(c.reduction) <= static_cast<double>(costs.whole_elements);
}

int64_t most_parts(const SplitCosts& costs, double elements) {
  return std::min(costs.most_parts, static_cast<int64_t>(elements) / kLeastPart);
}

// How many parts of each result make the device busy.
int64_t wanted_parts(const SplitCosts& costs, double results, double elements, bool is_row) {
  const int64_t most = most_parts(costs, elements);
  if (!costs.fills_device) return most;
  const auto together = static_cast<double>(is_row ? 1 : costs.columns_together);
  const double programs = enough_results(costs, results * elements, is_row) / together;
  const double share = programs / std::max(std::ceil(results / together), 1.0);
  // No more than fit at once, where that is more than the least.
  const auto parts = static_cast<int64_t>(share);
  return std::min(most, parts < kFewestParts ? static_cast<int64_t>(std::ceil(share)) : parts);
}

// Into how many parts each result is divided, of those that a trial may tell to be better.
PartChoice parts_of(const SplitCosts& costs, const Computation& c, const ReductionShape& shape) {
  const auto results = static_cast<double>(shape.results), elements = static_cast<double>(shape.elements);
  const int64_t wanted = wanted_parts(costs, results, elements, shape.is_row);
  const bool stays_whole =
      results >= enough_results(costs, results * elements, shape.is_row) ||
      elements < static_cast<double>(shape.is_row ? costs.long_row : costs.long_column) ||
      (!shape.is_row && columns_stay_whole(costs, c));
  PartChoice choice{stays_whole ? 1 : wanted, {}};
  if (wanted < 2) return choice;
  for (const int64_t count : {int64_t{1}, wanted / 4, wanted / 2, wanted, wanted * 2, wanted * 4}) {
    const bool is_possible = count == 1 || (count >= kFewestParts && count <= most_parts(costs, elements));
    if (is_possible && count != choice.taken) choice.others.push_back(count);
  }
  return choice;
}

}  // namespace

std::vector<Computation> split_long_reduction(loop::Program& program, Computation& c, const SplitCosts& costs,
                                              Splits& splits) {
  if (!combines_from_parts(c.kind, costs.splits_pairs) || c.reduction.empty()) return {};
  if (c.stores.size() != result_count(c.kind)) return {};
  const double results = iterations(c.loops), elements = iterations(c.reduction);
  if (results * elements < static_cast<double>(costs.long_reduction)) return {};
  const bool is_row = reduces_rows(program, c);
  const ReductionShape shape{c.kind, static_cast<int64_t>(results), static_cast<int64_t>(elements), is_row};
  const PartCount wanted = splits.take(shape, parts_of(costs, c, shape));
  if (wanted < kFewestParts) return {};
  // The elements that count for a mean and its variance are the first ones of a part.
  const bool may_be_uneven = costs.masks_parts && !checks_indices(c.body) && has_linear_indices(c) &&
                             (c.kind != ReductionKind::Welford || c.reduction.size() == 1);
  const Division division = divide(c.reduction, wanted, may_be_uneven, is_row ? kAlignedPart : kLeastPart);
  if (division.total < kFewestParts) return {};

  Parts parts{.count = division.total};
  std::vector<std::pair<int64_t, Expr>> replaced;  // variables, and what stands in their place
  int64_t next = kPartVariables;
  std::vector<LoopVariable> within;
  std::optional<Expr> position;  // in the loop that is divided unevenly
  int64_t within_uneven = 0;     // the variable of that loop in a part
  for (size_t k = 0; k < c.reduction.size(); ++k) {
    const LoopVariable& loop = c.reduction[k];
    const int64_t count = division.counts[k];
    const Expr& length = division.lengths[k];
    if (count == 1) {
      within.push_back(loop);
      parts.elements = parts.elements * loop.extent;
      continue;
    }
    parts.loops.push_back({Expr::variable("part", next++, {0, count - 1}), count});
    Expr value = parts.loops.back().variable;
    if (length.constant() > 1) {
      within.push_back({Expr::variable("within", next++, {0, length.constant() - 1}), length});
      value = value * length + within.back().variable;
    }
    if (k == division.uneven) {
      parts.are_even = false;
      position = value;
      within_uneven = within.back().variable.variable_id();
      parts.elements = parts.elements * sym::min(length, loop.extent - parts.loops.back().variable * length);
    } else {
      parts.elements = parts.elements * length;
    }
    replaced.emplace_back(loop.variable.variable_id(), std::move(value));
  }
  for (auto& index : c.body.indices)
    for (Expr& e : index)
      if (!e.is_constant())
        e = sym::substitute(e, [&](int64_t v) {
          const auto found = std::ranges::find(replaced, v, &std::pair<int64_t, Expr>::first);
          return found == replaced.end() ? std::nullopt : std::optional(found->second);
        });

  for (const auto* loops : {&c.loops, &parts.loops})
    for (const LoopVariable& l : *loops) {
      parts.sizes.push_back(l.extent);
      parts.index.push_back(l.variable);
    }
  const Computation whole = c;
  if (position) {
    const Expr& extent = c.reduction[*division.uneven].extent;
    c.body = MaskedBody(whole, *position, extent, within_uneven).take(c.reduced);
    if (c.kind == ReductionKind::Welford) c.counted = parts.elements;
  }
  c.loops.insert(c.loops.end(), parts.loops.begin(), parts.loops.end());
  c.reduction = std::move(within);
  c.stores.clear();
  const auto device = device_of(program, whole);
  for (size_t k = 0; k < result_count(c.kind); ++k)
    c.stores.push_back({new_buffer(program, "part", c.accumulate, parts.sizes, device), parts.index,
                        loop::kNoInst, loop::StoreMode::Set, static_cast<int32_t>(k)});
  switch (whole.kind) {
    case ReductionKind::Welford:
      return combine_moments(program, whole, parts, c.stores);
    case ReductionKind::OnlineSoftmax:
      return combine_softmax(program, whole, parts, c.stores);
    default:
      return {combine_alike(whole, parts, c.stores[0])};
  }
}

}  // namespace oxy::backend
