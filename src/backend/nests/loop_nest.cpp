#include "backend/nests/loop_nest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <ranges>

#include "base/error.h"
#include "loop/variables.h"

namespace oxy::backend {

namespace {

using loop::kNoInst;
using loop::Op;

constexpr double kBytesPerNanosecond = 12.0;  // of one core's share of memory bandwidth
constexpr double kVectorOpsPerNanosecond = 3.0;
constexpr double kScalarOpsPerNanosecond = 1.5;

bool uses_variable(const Expr& e, int64_t id) {
  for (const Expr& v : sym::variables(e))
    if (v.variable_id() == id) return true;
  return false;
}

// Whether e crosses loops `a` (outer) and `b` (inner) as one loop of both.
bool crosses_as_one(const Expr& e, const LoopVariable& a, const LoopVariable& b) {
  auto outer = stride_of(e, a.variable);
  auto inner = stride_of(e, b.variable);
  if (!outer || !inner || !(*outer == *inner * b.extent)) return false;
  return !uses_variable(*outer, b.variable.variable_id());
}

// Merges loops[k + 1] into loops[k]; the offsets of `phases` are rewritten.
void merge_pair(std::vector<LoopVariable>& loops, size_t k, std::span<Phase*> phases) {
  LoopVariable outer = loops[k];
  LoopVariable inner = loops[k + 1];
  Expr extent = outer.extent * inner.extent;
  Expr merged = nest_variable(variable_position(outer.variable), extent);
  for (Phase* phase : phases)
    for_each_expression(*phase, [&](Expr& e) {
      auto stride = stride_of(e, inner.variable);
      if (*stride == Expr(0)) return;
      Expr rest = sym::substitute(e, [&](int64_t id) -> std::optional<Expr> {
        if (id == outer.variable.variable_id() || id == inner.variable.variable_id()) return Expr(0);
        return std::nullopt;
      });
      e = rest + *stride * merged;
    });
  loops[k] = {merged, extent};
  loops.erase(loops.begin() + static_cast<std::ptrdiff_t>(k + 1));
}

void merge_loops(std::vector<LoopVariable>& loops, std::vector<Phase*> phases) {
  for (size_t k = 0; k + 1 < loops.size();) {
    bool mergeable = true;
    for (Phase* phase : phases)
      for_each_expression(
          *phase, [&](Expr& e) { mergeable = mergeable && crosses_as_one(e, loops[k], loops[k + 1]); });
    if (!mergeable) {
      ++k;
      continue;
    }
    merge_pair(loops, k, phases);
  }
}

void remove_dead_insts(Phase& phase) {
  IdVector<InstId, bool> alive(phase.insts.size());
  auto mark = [&](InstId id) {
    if (id != kNoInst) alive[id] = true;
  };
  std::vector<int64_t> bound;  // variables in use
  auto mark_bound = [&](const Expr& e) {
    for (const Expr& v : sym::variables(e))
      if (is_bound_variable(v.variable_id())) bound.push_back(v.variable_id());
  };
  for (const ElementStore& store : phase.stores) {
    mark(store.value);
    mark_bound(store.offset);
  }
  for (const Reduction& reduction : phase.reductions) mark(reduction.value);
  for (const InstId id : phase.insts.ids() | std::views::reverse) {
    const NestInst& inst = phase.insts[id];
    if (inst.op == Op::BindIndex && (inst.checked || std::ranges::find(bound, inst.variable) != bound.end()))
      alive[id] = true;
    if (!alive[id]) continue;
    for (InstId operand : inst.operands) mark(operand);
    if (inst.index != loop::kNoIndex) mark_bound(phase.expressions[inst.index]);
  }
  IdVector<InstId, InstId> renumbered(phase.insts.size());
  IdVector<InstId, NestInst> kept;
  IdVector<IndexId, Expr> expressions;
  for (const InstId id : phase.insts.ids()) {
    if (!alive[id]) continue;
    NestInst inst = phase.insts[id];
    for (InstId& operand : inst.operands)
      if (operand != kNoInst) operand = renumbered[operand];
    if (inst.index != loop::kNoIndex) inst.index = expressions.add(phase.expressions[inst.index]);
    renumbered[id] = kept.add(inst);
  }
  phase.insts = std::move(kept);
  phase.expressions = std::move(expressions);
  for (ElementStore& store : phase.stores) store.value = renumbered[store.value];
  for (Reduction& reduction : phase.reductions) reduction.value = renumbered[reduction.value];
}

void collect_symbols(LoopNest& nest) {
  std::map<int64_t, Expr> found;
  auto collect = [&](const Expr& e) {
    if (e.is_constant()) return;
    for (const Expr& v : sym::variables(e))
      if (!is_nest_variable(v.variable_id())) found.emplace(v.variable_id(), v);
  };
  for (const Array& array : nest.arrays) collect(array.scratch_offset);
  for (const LoopVariable& l : nest.outer) collect(l.extent);
  for (Phase& phase : nest.phases) {
    for (const LoopVariable& l : phase.loops) collect(l.extent);
    for (const LoopVariable& l : phase.reduction) collect(l.extent);
    for_each_expression(phase, collect);
  }
  nest.symbols.clear();
  for (auto& [id, v] : found) nest.symbols.push_back({v, v});
}

Expr row_bytes(const Array& array) {
  // A size that is computed from data is known not to be negative once the call has checked it.
  return sym::ceildiv(sym::max(array.elements, 0) * bytes(array.dtype), 64) * 64;
}

double product_estimate(const std::vector<LoopVariable>& loops) {
  double result = 1;
  for (const LoopVariable& l : loops) result *= static_cast<double>(estimate(l.extent));
  return result;
}

// About the cost of an instruction in vector operations.
double op_cost(Op op) {
  switch (op) {
    case Op::Constant:
    case Op::Load:
    case Op::Cast:
    case Op::Index:
      return 0.5;
    case Op::Exp:
    case Op::Exp2:
    case Op::Log:
    case Op::Log2:
    case Op::Sigmoid:
    case Op::NormalCdf:
    case Op::Erf:
    case Op::Tanh:
    case Op::Expm1:
    case Op::Log1p:
    case Op::Log10:
      return 10;
    case Op::Sin:
    case Op::Cos:
      return 40;
    case Op::Tan:
    case Op::Asin:
    case Op::Acos:
    case Op::Atan:
    case Op::Sinh:
    case Op::Cosh:
    case Op::Asinh:
    case Op::Acosh:
    case Op::Atanh:
    case Op::Erfc:
    case Op::Pow:
    case Op::Atan2:
    case Op::Fmod:
    case Op::Mod:
    case Op::FloorDiv:
    case Op::TruncDiv:
      return 150;
    case Op::Div:
    case Op::Sqrt:
    case Op::Rsqrt:
    case Op::Reciprocal:
      return 6;
    default:
      return 1;
  }
}

double phase_nanoseconds(const LoopNest& nest, const Phase& phase) {
  if (phase.condition.is_valid()) return 0;  // rare
  Expr lane;
  bool has_lane = true;
  if (nest.axis == VectorAxis::Outer)
    lane = nest.outer.back().variable;
  else if (lanes_along_reduction(nest, phase))
    lane = phase.reduction.back().variable;
  else if (!phase.loops.empty())
    lane = phase.loops.back().variable;
  else
    has_lane = false;
  double iterations = product_estimate(phase.loops) * product_estimate(phase.reduction);
  double bytes_moved = 0;
  double slow = 0;
  double ops = 0;
  for (const NestInst& inst : phase.insts) {
    ops += op_cost(inst.op);
    if (inst.op != Op::Load) continue;
    const Array& array = nest.arrays[inst.buffer];
    const Expr& offset = phase.expressions[inst.index];
    auto stride = has_lane ? stride_of(offset, lane) : Expr(0);
    if (!stride || (!(*stride == Expr(0)) && !(*stride == Expr(1)))) slow += 1;
    if (array.kind == ArrayKind::Parameter && !(stride && *stride == Expr(0)))
      bytes_moved += static_cast<double>(bytes(array.dtype));
  }
  for (const ElementStore& store : phase.stores) {
    const Array& array = nest.arrays[store.array];
    if (array.kind == ArrayKind::Parameter) bytes_moved += static_cast<double>(bytes(array.dtype));
  }
  ops += static_cast<double>(phase.reductions.size());
  double rate = has_lane ? kVectorOpsPerNanosecond * 16 : kScalarOpsPerNanosecond;
  return iterations * (std::max(bytes_moved / kBytesPerNanosecond, ops / rate) + slow * 0.5) + 1;
}

bool has_no_iteration(const Phase& phase) {
  return std::ranges::any_of(phase.loops, [](const LoopVariable& l) { return l.extent == Expr(0); });
}

}  // namespace

bool is_transposed(const LoopNest& nest, const Phase& phase, const NestInst& load) {
  if (load.op != Op::Load || load.operands[0] != kNoInst || nest.outer.size() < 2) return false;
  const Array& array = nest.arrays[load.buffer];
  if (array.kind != ArrayKind::Parameter || array.dtype != DType::Float32) return false;
  const Expr& offset = phase.expressions[load.index];
  // A tile is loaded before the elements of its rows are computed.
  if (has_bound_variable(offset)) return false;
  auto along = stride_of(offset, nest.outer.back().variable);
  auto across = stride_of(offset, nest.outer[nest.outer.size() - 2].variable);
  return along && across && *across == Expr(1) && !(*along == Expr(0)) && !(*along == Expr(1));
}

bool lanes_along_reduction(const LoopNest& nest, const Phase& phase) {
  if (phase.reduction.empty() || nest.axis != VectorAxis::Phase) return false;
  if (phase.loops.empty()) return true;
  const Expr& along = phase.reduction.back().variable;
  const Expr& across = phase.loops.back().variable;
  int64_t votes = 0;
  auto vote = [&](const Expr& offset) {
    auto a = stride_of(offset, along);
    auto b = stride_of(offset, across);
    votes += (a && *a == Expr(1)) - (b && *b == Expr(1));
  };
  for (const NestInst& inst : phase.insts)
    if (inst.op == Op::Load) vote(phase.expressions[inst.index]);
  for (const ElementStore& store : phase.stores) vote(store.offset);
  return votes > 0;
}

int loops_before_reading(const LoopNest& nest, const Phase& phase, const Array& array) {
  if (array.empty_sizes.empty()) return 0;
  // A launch has no iteration where one of the outer loops has none.
  std::vector<Expr> missing = array.empty_sizes;
  const auto open_loop = [&](const Expr& extent) {
    std::erase_if(missing, [&](const Expr& size) {
      return !size.is_constant() && sym::mod(extent, size) == Expr(0);  // a factor of what is not 0 is not 0
    });
  };
  for (const LoopVariable& l : nest.outer) open_loop(l.extent);
  int open = 0, uncertain = 0;
  for (const auto* loops : {&phase.loops, &phase.reduction})
    for (const LoopVariable& l : *loops) {
      if (missing.empty()) return open;
      ++open;
      open_loop(l.extent);
      if (l.extent.range().low < 1) uncertain = open;
    }
  return uncertain;
}

int64_t rows_of_part(const LoopNest& nest) {
  for (const Phase& phase : nest.phases)
    for (const ElementStore& store : phase.stores)
      if (store.mode == loop::StoreMode::AddInParts) return store.part.rows;
  return 0;
}

void finish(LoopNest& nest) {
  for (Phase& phase : nest.phases) {
    remove_dead_insts(phase);
    merge_loops(phase.loops, {&phase});
    merge_loops(phase.reduction, {&phase});
  }
  std::vector<Phase*> all;
  for (Phase& phase : nest.phases) all.push_back(&phase);
  merge_loops(nest.outer, all);
  for (Array& array : nest.arrays) array.is_read = array.is_written = false;
  for (Phase& phase : nest.phases) {
    if (phase.condition.is_valid()) nest.arrays[phase.condition].is_read = true;
    for (const NestInst& inst : phase.insts)
      if (inst.op == Op::Load) nest.arrays[inst.buffer].is_read = true;
    for (const ElementStore& store : phase.stores) nest.arrays[store.array].is_written = true;
    for (const Reduction& reduction : phase.reductions)
      for (const ResultStore& store : reduction.stores) nest.arrays[store.array].is_written = true;
  }
  if (!std::ranges::all_of(nest.phases, has_no_iteration)) std::erase_if(nest.phases, has_no_iteration);
  Expr scratch = 0;
  for (Array& array : nest.arrays)
    if (array.kind == ArrayKind::Scratch) {
      array.scratch_offset = scratch;
      scratch = scratch + row_bytes(array);
    }
  collect_symbols(nest);
}

void substitute(LoopNest& nest, const Expr& variable, const Expr& value) {
  int64_t id = variable.variable_id();
  for (Phase& phase : nest.phases)
    for_each_expression(phase, [&](Expr& e) {
      if (e.is_constant()) return;
      e = sym::substitute(e, [&](int64_t v) { return v == id ? std::optional<Expr>(value) : std::nullopt; });
    });
}

Expr launch_extent(const LoopNest& nest) {
  Expr extent = 1;
  bool row_lanes = nest.axis == VectorAxis::Outer && nest.outer.size() > 1;
  size_t count = nest.outer.size() - (nest.tiled ? 2 : row_lanes ? 1 : 0);
  for (size_t k = 0; k < count; ++k) extent = extent * nest.outer[k].extent;
  if (nest.tiled) extent = extent * sym::ceildiv(nest.outer[count].extent, kTileSide);
  // A slice reads what its lanes share before it comes to the first of them. Without lanes there may be no
  // memory to read.
  if (count < nest.outer.size() && nest.outer.back().extent.range().low < 1)
    extent = extent * sym::min(nest.outer.back().extent, 1);
  return extent;
}

double nanoseconds_per_iteration(const LoopNest& nest) {
  double total = 0;
  for (const Phase& phase : nest.phases) total += phase_nanoseconds(nest, phase);
  if (nest.axis == VectorAxis::Outer) {
    if (nest.tiled)
      total *= static_cast<double>(estimate(nest.outer.back().extent)) *
               static_cast<double>(std::min(estimate(nest.outer[nest.outer.size() - 2].extent), kTileSide));
    else if (nest.outer.size() > 1)
      total = (total - static_cast<double>(nest.phases.size())) *
              static_cast<double>(estimate(nest.outer.back().extent));
    else
      total -= static_cast<double>(nest.phases.size());
  }
  return std::max(total, 0.001);
}

Expr scratch_bytes(const LoopNest& nest) {
  Expr total = 0;
  for (const Array& array : nest.arrays)
    if (array.kind == ArrayKind::Scratch) total = total + row_bytes(array);
  return total;
}

}  // namespace oxy::backend
