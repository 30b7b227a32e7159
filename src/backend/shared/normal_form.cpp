#include "backend/shared/normal_form.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "backend/shared/reductions/row_sums.h"
#include "backend/shared/reductions/split_reductions.h"
#include "base/error.h"
#include "loop/variables.h"
#include "sym/lower_bounds.h"

namespace oxy::backend {

namespace {

using loop::Computation;
using loop::Inst;
using loop::LoopVariable;
using loop::Op;

constexpr double kStoreWeight = 1.2;                   // scattered stores cost more than scattered loads
constexpr int64_t kSplitVariables = int64_t{1} << 46;  // halves of split loops, before they get positions

// A computation while it is normalised: expressions still over its own variables.
struct Draft {
  std::vector<LoopVariable> loops;
  std::vector<LoopVariable> reduction;
  IdVector<loop::IndexId, std::vector<Expr>> indices;  // of the body's instructions
  std::vector<std::vector<Expr>> stores;
  std::optional<Expr> counted;
};

template <class Fn>
void for_each_expression(Draft& draft, Fn fn) {
  for (auto& index : draft.indices)
    for (Expr& e : index) fn(e);
  for (auto& index : draft.stores)
    for (Expr& e : index) fn(e);
  if (draft.counted) fn(*draft.counted);
}

// `bounds`: what holds where the variable is used.
void substitute(Draft& draft, int64_t id, const Expr& value, const sym::LowerBounds& bounds = {}) {
  for_each_expression(draft, [&](Expr& e) {
    if (e.is_constant()) return;
    Expr replaced =
        sym::substitute(e, [&](int64_t v) { return v == id ? std::optional<Expr>(value) : std::nullopt; });
    if (replaced == e) return;
    e = bounds.empty() ? std::move(replaced) : bounds.applied(replaced);
  });
}

void remove_unit_loops(Draft& draft) {
  for (auto* loops : {&draft.loops, &draft.reduction})
    std::erase_if(*loops, [&](const LoopVariable& l) {
      if (!(l.extent == Expr(1))) return false;
      if (l.variable.kind() == sym::Kind::Variable) substitute(draft, l.variable.variable_id(), 0);
      return true;
    });
}

bool has_loop_variable(const Expr& e) {
  return std::ranges::any_of(sym::variables(e),
                             [](const Expr& v) { return v.variable_id() >= loop::kLoopVariables; });
}

// The least divisor of some `v // c` or `v % c` in e, where v is the loop's variable alone and c has no
// loop's variable. Of two that cannot be compared it is the first.
void find_divisor(const Expr& e, const LoopVariable& loop, std::optional<Expr>& divisor) {
  if (e.is_constant() || e.kind() == sym::Kind::Variable) return;
  auto operands = e.operands();
  if ((e.kind() == sym::Kind::FloorDiv || e.kind() == sym::Kind::Mod) && operands[0] == loop.variable &&
      !has_loop_variable(operands[1]) && (!divisor || sym::known_less(operands[1], *divisor)))
    divisor = operands[1];
  for (const Expr& operand : operands) find_divisor(operand, loop, divisor);
}

LoopVariable half(const char* name, int64_t id, const Expr& extent) {
  int64_t high = extent.range().high;
  if (high < sym::kMaxInt) --high;
  return {Expr::variable(name, id, {0, high}, extent), extent};
}

// `e` with its symbols as `other` has them: their ranges may be wider there.
Expr with_symbols_of(const Expr& other, const Expr& e) {
  const std::vector<Expr> symbols = sym::variables(other);
  return sym::substitute(e, [&](int64_t id) -> std::optional<Expr> {
    const auto symbol = std::ranges::find(symbols, id, &Expr::variable_id);
    return symbol == symbols.end() ? std::nullopt : std::optional(*symbol);
  });
}

// Splits loops so that divisions of their variables disappear: i // 8 and i % 8 become loops of their own. A
// divisor may be a size that divides the extent.
void split_divided_loops(Draft& draft) {
  int64_t next = kSplitVariables;
  for (auto* loops : {&draft.loops, &draft.reduction})
    for (size_t k = 0; k < loops->size() && loops->size() < 8; ++k) {
      LoopVariable l = (*loops)[k];
      std::optional<Expr> divisor;
      for_each_expression(draft, [&](Expr& e) { find_divisor(e, l, divisor); });
      if (!divisor) continue;
      // What uses the variable runs in an iteration: the extent is at least 1 there. Extents are also read
      // where there is none, so that their symbols keep their ranges.
      sym::LowerBounds bounds;
      bounds.note(l.extent, 1);
      const Expr extent = bounds.applied(l.extent);
      const Expr size = bounds.applied(*divisor);
      if (size.range().low < 1 || !sym::known_divisible(extent, size) || extent == size) continue;
      const LoopVariable outer = half("h", next++, with_symbols_of(l.extent, sym::floordiv(extent, size)));
      const LoopVariable inner = half("l", next++, *divisor);
      substitute(draft, l.variable.variable_id(), outer.variable * *divisor + inner.variable, bounds);
      (*loops)[k] = outer;
      loops->insert(loops->begin() + static_cast<std::ptrdiff_t>(k + 1), inner);
      --k;  // the outer half may be divided again
    }
}

struct Access {
  Expr offset;
  double weight;  // bytes
};

Expr linear_offset(const std::vector<Expr>& index, const std::vector<Expr>& strides) {
  check(index.size() == strides.size(), "an access with an index of another rank than its buffer");
  Expr offset = 0;
  for (size_t d = 0; d < index.size(); ++d) offset = offset + index[d] * strides[d];
  return offset;
}

double size_estimate(const std::vector<LoopVariable>& loops, const Expr& offset) {
  double n = 1;
  for (const LoopVariable& l : loops) {
    auto stride = stride_of(offset, l.variable);
    if (!stride || !(*stride == Expr(0))) n *= static_cast<double>(estimate(l.extent));
  }
  return n;
}

std::vector<Access> known_accesses(const loop::Program& program, const Computation& c, const Draft& draft) {
  std::vector<Access> accesses;
  std::vector<LoopVariable> all = draft.loops;
  all.insert(all.end(), draft.reduction.begin(), draft.reduction.end());
  auto add = [&](loop::BufferId id, const std::vector<Expr>& index, double factor) {
    const loop::Buffer& buffer = program.buffers[id];
    if (!buffer.strides) return;
    Expr offset = linear_offset(index, *buffer.strides);
    accesses.push_back(
        {offset, factor * size_estimate(all, offset) * static_cast<double>(item_size(buffer.dtype))});
  };
  for (const Inst& inst : c.body.insts)
    if (inst.op == Op::Load) add(inst.buffer, draft.indices[inst.index], 1);
  for (size_t k = 0; k < c.stores.size(); ++k)
    if (c.stores[k].buffer != loop::kNoBuffer) add(c.stores[k].buffer, draft.stores[k], kStoreWeight);
  return accesses;
}

int64_t stride_estimate(const Expr& offset, const LoopVariable& l) {
  auto stride = stride_of(offset, l.variable);
  return stride ? std::abs(estimate(*stride)) : 0;
}

// The strides of an access along the loops, in elements; 0 where it has none, or where it is not known.
struct AccessStrides {
  std::vector<int64_t> strides;  // by loop
  double weight;                 // bytes
};

std::vector<AccessStrides> strides_of(const std::vector<Access>& accesses,
                                      const std::vector<LoopVariable>& loops) {
  std::vector<AccessStrides> result;
  for (const Access& access : accesses) {
    AccessStrides& of_access = result.emplace_back(AccessStrides{{}, access.weight});
    for (const LoopVariable& l : loops) of_access.strides.push_back(stride_estimate(access.offset, l));
  }
  return result;
}

// The loops in descending order of their stride; those that the access does not depend on keep their places.
std::vector<size_t> order_by(const std::vector<int64_t>& strides) {
  std::vector<size_t> order(strides.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<size_t> places;
  for (size_t k = 0; k < strides.size(); ++k)
    if (strides[k] != 0) places.push_back(k);
  std::vector<size_t> moved = places;
  std::ranges::stable_sort(moved, [&](size_t a, size_t b) { return strides[a] > strides[b]; });
  for (size_t k = 0; k < places.size(); ++k) order[places[k]] = moved[k];
  return order;
}

// Bytes that are accessed in ascending addresses when the loops run in `order`.
double score(const std::vector<size_t>& order, const std::vector<AccessStrides>& accesses) {
  double total = 0;
  for (const AccessStrides& access : accesses) {
    int64_t last = 0;
    double ascending = 1;
    for (size_t k = order.size(); k-- > 0;) {
      const int64_t stride = access.strides[order[k]];
      if (k + 1 == order.size() && stride == 1) ascending += 4;
      if (stride == 0) continue;
      if (stride < last) ascending -= 0.5;
      last = stride;
    }
    total += access.weight * ascending;
  }
  return total;
}

void reorder(std::vector<LoopVariable>& loops, const std::vector<Access>& accesses) {
  if (loops.size() < 2 || accesses.empty()) return;
  std::vector<size_t> best(loops.size());
  std::iota(best.begin(), best.end(), 0);
  const std::vector<AccessStrides> strides = strides_of(accesses, loops);
  double best_score = score(best, strides) * 1.01;
  size_t tried = 0;
  for (const AccessStrides& access : strides) {
    if (++tried > 12) break;
    std::vector<size_t> order = order_by(access.strides);
    const double s = score(order, strides);
    if (s <= best_score) continue;
    best_score = s;
    best = order;
  }
  std::vector<LoopVariable> sorted;
  for (size_t k : best) sorted.push_back(loops[k]);
  loops = std::move(sorted);
}

// Dense strides with the dimensions in the order of the loops that index them, where the index is that
// simple.
std::vector<Expr> layout_for(const loop::Buffer& buffer, const std::vector<Expr>& index,
                             const std::vector<LoopVariable>& loops) {
  std::vector<std::pair<size_t, size_t>> order;  // position of the loop, dimension
  for (size_t d = 0; d < index.size(); ++d) {
    if (buffer.sizes[d] == Expr(1)) continue;
    if (index[d].kind() != sym::Kind::Variable) return contiguous_strides(buffer.sizes);
    size_t position = loops.size();
    for (size_t k = 0; k < loops.size(); ++k)
      if (loops[k].variable == index[d] && loops[k].extent == buffer.sizes[d]) position = k;
    if (position == loops.size()) return contiguous_strides(buffer.sizes);
    order.emplace_back(position, d);
  }
  std::ranges::sort(order);
  std::vector<Expr> strides(buffer.sizes.size(), 1);
  Expr stride = 1;
  for (size_t k = order.size(); k-- > 0;) {
    strides[order[k].second] = stride;
    stride = stride * buffer.sizes[order[k].second];
  }
  return strides;
}

// What holds of sizes wherever a body runs, since each loop around it has an iteration.
sym::LowerBounds bounds_in(const std::vector<LoopVariable>& loops, sym::LowerBounds bounds = {}) {
  for (const LoopVariable& l : loops) bounds.note(l.extent, 1);
  return bounds;
}

Item normalise(loop::Program& program, const Computation& c, StepId step) {
  Draft draft{c.loops, c.reduction, c.body.indices, {}, c.counted};
  for (const loop::Store& store : c.stores) draft.stores.push_back(store.index);
  remove_unit_loops(draft);
  if (c.kind != loop::ReductionKind::None && draft.reduction.empty())
    draft.reduction.push_back({Expr::variable("u", kSplitVariables - 1, {0, 0}), 1});
  split_divided_loops(draft);
  std::vector<Access> accesses = known_accesses(program, c, draft);
  reorder(draft.loops, accesses);
  const bool is_scan = loop::is_scan(c.kind);
  const bool in_order =
      c.kind == loop::ReductionKind::ArgMax || c.kind == loop::ReductionKind::ArgMin || c.counted || is_scan;
  if (!in_order) reorder(draft.reduction, accesses);
  for (size_t k = 0; k < c.stores.size(); ++k) {
    if (c.stores[k].buffer == loop::kNoBuffer) continue;
    loop::Buffer& buffer = program.buffers[c.stores[k].buffer];
    if (!buffer.strides) buffer.strides = layout_for(buffer, draft.stores[k], draft.loops);
  }

  Item item;
  item.step = step;
  item.loop_count = draft.loops.size();
  item.kind = c.kind;
  item.accumulate = c.accumulate;
  item.reduced = c.reduced;
  item.origin = c.origin;
  std::vector<std::pair<int64_t, Expr>> positions;
  for (auto* loops : {&draft.loops, &draft.reduction})
    for (const LoopVariable& l : *loops) {
      positions.emplace_back(l.variable.variable_id(),
                             nest_variable(static_cast<int64_t>(item.extents.size()), l.extent));
      item.extents.push_back(l.extent);
    }
  // What is stored of a reduction is stored as well where nothing is reduced.
  const sym::LowerBounds around = bounds_in(draft.loops), inside = bounds_in(draft.reduction, around);
  auto positioned = [&](const Expr& e, const sym::LowerBounds& bounds) {
    if (e.is_constant()) return e;
    return sym::substitute(e, [&](int64_t id) -> std::optional<Expr> {
      for (auto& [from, to] : positions)
        if (from == id) return to;
      const Expr* const size = bounds.find(id);
      return size ? std::optional(*size) : std::nullopt;
    });
  };
  if (draft.counted) item.counted = positioned(*draft.counted, around);
  item.insts = c.body.insts;
  for (Inst& inst : item.insts) {
    if (inst.index == loop::kNoIndex) continue;
    const std::vector<Expr>& index = draft.indices[inst.index];
    Expr e;
    if (inst.op == Op::Load) {
      const loop::Buffer& buffer = program.buffers[inst.buffer];
      check(buffer.strides.has_value(), "buffer " + buffer.name + " is read before it is written");
      e = linear_offset(index, *buffer.strides);
    } else {
      e = index.at(0);
    }
    inst.index = item.expressions.add(positioned(e, inside));
  }
  for (size_t k = 0; k < c.stores.size(); ++k) {
    const loop::Store& store = c.stores[k];
    if (store.buffer == loop::kNoBuffer) continue;
    const loop::Buffer& buffer = program.buffers[store.buffer];
    const Expr offset = linear_offset(draft.stores[k], *buffer.strides);
    item.stores.push_back({store.buffer, positioned(offset, is_scan ? inside : around), store.value,
                           store.mode, store.result, store.in_order, store.part});
  }
  return item;
}

}  // namespace

IdVector<StepId, Item> normalise(loop::Program& program, const SplitCosts& costs, Splits& splits,
                                 const std::set<StepId>& apart) {
  for (loop::Buffer& buffer : program.buffers)
    if (!buffer.strides && buffer.kind != loop::BufferKind::Intermediate)
      buffer.strides = contiguous_strides(buffer.sizes);
  IdVector<StepId, Item> items;
  IdVector<StepId, loop::Step> steps;
  items.reserve(program.steps.size());
  steps.reserve(program.steps.size());
  const auto add = [&](Computation c) {
    items.add(normalise(program, c, steps.next_id()));
    steps.add(std::move(c));
  };
  const RowSums row_sums(program, costs, apart);
  for (const StepId number : program.steps.ids()) {
    loop::Step& step = program.steps[number];
    if (auto* c = std::get_if<Computation>(&step)) {
      if (auto combine = row_sums.add_up(program, *c, number, splits)) {
        add(std::move(*c));
        items.back().added_up = number;
        add(std::move(*combine));
        continue;
      }
      std::vector<Computation> combine = split_long_reduction(program, *c, costs, splits);
      add(std::move(*c));
      for (Computation& next : combine) add(std::move(next));
      continue;
    }
    for (BufferId id : std::get<loop::ExternCall>(step).outputs)
      if (id != loop::kNoBuffer) {
        loop::Buffer& buffer = program.buffers[id];
        if (!buffer.strides) buffer.strides = contiguous_strides(buffer.sizes);
      }
    items.add({});
    steps.add(std::move(step));
  }
  program.steps = std::move(steps);
  return items;
}

int loads_across(const Item& item) {
  if (!item.is_reduction() || item.loop_count == 0) return 0;
  const auto is_contiguous = [&](const Expr& offset, size_t loop) {
    return stride_of(offset, nest_variable(static_cast<int64_t>(loop), item.extents[loop])) == Expr(1);
  };
  int across = 0;
  for (const loop::Inst& inst : item.insts) {
    if (inst.op != loop::Op::Load) continue;
    const Expr& offset = item.expressions[inst.index];
    across += is_contiguous(offset, item.loop_count - 1);
    across -= is_contiguous(offset, item.extents.size() - 1);
  }
  return across;
}

}  // namespace oxy::backend
