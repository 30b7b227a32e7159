#include "backend/nests/nest_builder.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/error.h"
#include "base/hash.h"
#include "loop/variables.h"

namespace oxy::backend {

namespace {

using backend::Array;
using backend::ArrayKind;
using backend::estimate;
using backend::LoopNest;
using backend::nest_variable;
using backend::Phase;
using backend::stride_of;
using backend::VectorAxis;
using loop::Inst;
using loop::kNoInst;
using loop::Op;
using loop::ReductionKind;

constexpr double kShortReduction = 8;  // below this many elements, lanes run over the results

bool is_expensive(Op op) {
  return (op >= Op::Exp && op <= Op::Erfc && op != Op::Sqrt && op != Op::Reciprocal) || op == Op::Pow;
}

size_t hash_inst(const Inst& inst) {
  uint64_t h = hash_combine(static_cast<uint64_t>(inst.op), static_cast<uint64_t>(inst.dtype));
  for (InstId id : inst.operands) h = hash_combine(h, static_cast<uint64_t>(id));
  h = hash_combine(h, static_cast<uint64_t>(inst.buffer));
  h = hash_combine(h, static_cast<uint64_t>(inst.index));
  h = hash_combine(h, std::visit([](auto v) { return std::hash<decltype(v)>()(v); }, inst.constant.value));
  return static_cast<size_t>(hash_combine(h, static_cast<uint64_t>(inst.variable)));
}
struct HashInst {
  size_t operator()(const Inst& inst) const { return hash_inst(inst); }
};

// A phase under construction.
struct Draft {
  Phase phase;
  std::vector<Expr> extents;         // of its loops and reduction loops
  std::optional<size_t> loop_count;  // how many are not reduced; open while it has no reduction
  std::unordered_map<Inst, InstId, HashInst> known_insts;
  std::unordered_map<Expr, int32_t> known_expressions;
  std::vector<int32_t> values;  // by instruction: its number among the values of the whole nest
};

struct Written {
  int32_t phase = -1;
  Expr offset;
  InstId inst = kNoInst;  // the value stored by an element store
  int32_t value = -1;     // its number
  int32_t reg = -1;       // a Register array that holds it, if it is one element a row
};

class NestBuilder {
 public:
  NestBuilder(const loop::Program& program, const std::vector<Item>& items, const Group& group,
              const std::function<bool(BufferId)>& is_needed, const NestOptions& options)
      : program_(program),
        items_(items),
        group_(group),
        is_needed_(is_needed),
        options_(options),
        depth_(group.extents.size()),
        next_virtual_(static_cast<BufferId>(program.buffers.size())) {}

  LoopNest build() {
    std::optional<Item> scatter = independent_scatter();
    if (scatter) {
      depth_ = 1;
      nest_.outer.push_back({nest_variable(0, scatter->extents[0]), scatter->extents[0]});
      nest_.axis = VectorAxis::Outer;
      append(*scatter);
      nest_.serial = false;
      nest_.comment = scatter->origin;
      return finished();
    }
    for (size_t k = 0; k < depth_; ++k)
      nest_.outer.push_back({nest_variable(static_cast<int64_t>(k), group_.extents[k]), group_.extents[k]});
    nest_.axis = choose_axis();
    for (int32_t step : group_.steps) append_expanded(items_[static_cast<size_t>(step)]);
    for (int32_t step : group_.steps) {
      const std::string& origin = items_[static_cast<size_t>(step)].origin;
      if (origin.empty()) continue;
      nest_.comment += (nest_.comment.empty() ? "" : ", ") + origin;
    }
    return finished();
  }

 private:
  LoopNest finished() {
    for (Draft& draft : drafts_) {
      size_t loops = draft.loop_count.value_or(draft.extents.size());
      for (size_t k = 0; k < draft.extents.size(); ++k) {
        auto position = static_cast<int64_t>(depth_ + k);
        auto& list = k < loops ? draft.phase.loops : draft.phase.reduction;
        list.push_back({nest_variable(position, draft.extents[k]), draft.extents[k]});
      }
      nest_.phases.push_back(std::move(draft.phase));
    }
    decide_arrays();
    backend::finish(nest_);
    return std::move(nest_);
  }

  // The group's one member, if it adds to computed places, with the loop outermost along which threads never
  // meet: the loop runs through whole rows of what is added to.
  std::optional<Item> independent_scatter() {
    const Item& item = items_[static_cast<size_t>(group_.steps[0])];
    if (group_.steps.size() > 1 || item.is_reduction() || item.stores.size() != 1 || item.loop_count < 2)
      return std::nullopt;
    const ItemStore& store = item.stores[0];
    if (store.mode != loop::StoreMode::AtomicAdd) return std::nullopt;
    for (size_t k = 0; k < item.loop_count; ++k) {
      auto linear =
          sym::linear_in(store.offset, nest_variable(static_cast<int64_t>(k), item.extents[k]).variable_id());
      if (!linear || !(linear->first == Expr(1)) || !sym::known_divisible(linear->second, item.extents[k]))
        continue;
      if (estimate(item.extents[k]) < options_.lanes) continue;
      return with_loop_first(item, k);
    }
    return std::nullopt;
  }

  static Item with_loop_first(const Item& item, size_t first) {
    Item moved = item;
    moved.extents.erase(moved.extents.begin() + static_cast<std::ptrdiff_t>(first));
    moved.extents.insert(moved.extents.begin(), item.extents[first]);
    auto renamed = [&](const Expr& e) {
      if (e.is_constant()) return e;
      return sym::substitute(e, [&](int64_t id) -> std::optional<Expr> {
        for (size_t k = 0; k <= first; ++k)
          if (nest_variable(static_cast<int64_t>(k), item.extents[k]).variable_id() == id)
            return nest_variable(k == first ? 0 : static_cast<int64_t>(k + 1), item.extents[k]);
        return std::nullopt;
      });
    };
    for (Expr& e : moved.expressions) e = renamed(e);
    for (ItemStore& store : moved.stores) store.offset = renamed(store.offset);
    return moved;
  }

  VectorAxis choose_axis() {
    bool any_loops = depth_ > 0;
    bool any_reduction = false;
    for (int32_t step : group_.steps) {
      const Item& item = items_[static_cast<size_t>(step)];
      if (item.loop_count != depth_) return VectorAxis::Phase;
      any_reduction = any_reduction || item.is_reduction();
    }
    if (!any_reduction) return any_loops ? VectorAxis::Outer : VectorAxis::None;
    if (depth_ == 0) return VectorAxis::Phase;
    Expr across = nest_.outer.back().variable;
    double outer_extent = static_cast<double>(estimate(nest_.outer.back().extent));
    double votes = 0;
    bool is_short = true;
    for (int32_t step : group_.steps) {
      const Item& item = items_[static_cast<size_t>(step)];
      if (!item.is_reduction()) continue;
      double length = 1;
      for (size_t k = item.loop_count; k < item.extents.size(); ++k)
        length *= static_cast<double>(estimate(item.extents[k]));
      is_short = is_short && length <= kShortReduction;
      Expr along = nest_variable(static_cast<int64_t>(item.extents.size() - 1), item.extents.back());
      for (const Inst& inst : item.insts) {
        if (inst.op != Op::Load) continue;
        const Expr& offset = item.expressions[static_cast<size_t>(inst.index)];
        auto a = stride_of(offset, along);
        auto b = stride_of(offset, across);
        votes += (b && *b == Expr(1)) - (a && *a == Expr(1));
      }
    }
    if (votes > 0 && outer_extent >= 4) return VectorAxis::Outer;
    if (is_short && outer_extent >= 2 * options_.lanes) return VectorAxis::Outer;
    return VectorAxis::Phase;
  }

  // --- reductions that take several passes

  int64_t row_elements(const Item& item) {
    int64_t n = 1;
    for (size_t k = item.loop_count; k < item.extents.size(); ++k)
      n *= std::max<int64_t>(estimate(item.extents[k]), 1);
    return n;
  }

  void append_expanded(const Item& item) {
    if (options_.whole_reductions) return append(item);
    if (item.kind == ReductionKind::OnlineSoftmax) return append_online_softmax(item);
    bool row = nest_.axis == VectorAxis::Phase && item.loop_count == depth_;
    if (item.kind == ReductionKind::Welford && row && row_elements(item) * 4 <= options_.l2_bytes / 2)
      return append_two_pass_variance(item);
    append(item);
  }

  // The store of result k, or one to a buffer of the nest's own.
  ItemStore result_store(const Item& item, InstId k) {
    for (const ItemStore& store : item.stores)
      if (store.value == k) return {store.buffer, store.offset, 0, store.mode};
    virtual_dtypes_[next_virtual_] = item.accumulate;
    return {next_virtual_++, 0, 0, loop::StoreMode::Set};
  }

  static InstId add(Item& item, Inst inst) {
    item.insts.push_back(inst);
    return static_cast<InstId>(item.insts.size() - 1);
  }

  static InstId add_load(Item& item, const ItemStore& of, DType dtype) {
    item.expressions.push_back(of.offset);
    return add(item, {.op = Op::Load,
                      .dtype = dtype,
                      .buffer = of.buffer,
                      .index = static_cast<int32_t>(item.expressions.size() - 1)});
  }

  void append_two_pass_variance(const Item& item) {
    DType dtype = item.accumulate;
    ItemStore mean = result_store(item, 0);
    Item sum = item;
    sum.kind = ReductionKind::Sum;
    virtual_dtypes_[next_virtual_] = dtype;
    sum.stores = {{next_virtual_++, mean.offset, 0, loop::StoreMode::Set}};
    append(sum);

    Item divide;
    divide.extents.assign(item.extents.begin(),
                          item.extents.begin() + static_cast<std::ptrdiff_t>(item.loop_count));
    divide.loop_count = item.loop_count;
    InstId total = add_load(divide, sum.stores[0], dtype);
    Expr count = 1;
    for (size_t k = item.loop_count; k < item.extents.size(); ++k) count = count * item.extents[k];
    InstId n;
    if (auto c = count.as_constant()) {
      n = add(divide, {.op = Op::Constant, .dtype = dtype, .constant = {static_cast<double>(*c)}});
    } else {
      divide.expressions.push_back(count);
      n = add(divide, {.op = Op::Index,
                       .dtype = DType::Int64,
                       .index = static_cast<int32_t>(divide.expressions.size() - 1)});
      n = add(divide, {.op = Op::Cast, .dtype = dtype, .operands = {n, kNoInst, kNoInst}});
    }
    InstId quotient = add(divide, {.op = Op::Div, .dtype = dtype, .operands = {total, n, kNoInst}});
    divide.stores = {{mean.buffer, mean.offset, quotient, loop::StoreMode::Set}};
    append(divide);

    Item squares = item;
    squares.kind = ReductionKind::Sum;
    InstId m = add_load(squares, mean, dtype);
    InstId off = add(squares, {.op = Op::Sub, .dtype = dtype, .operands = {item.reduced, m, kNoInst}});
    squares.reduced = add(squares, {.op = Op::Mul, .dtype = dtype, .operands = {off, off, kNoInst}});
    squares.stores = {result_store(item, 1)};
    append(squares);
  }

  void append_online_softmax(const Item& item) {
    DType dtype = item.accumulate;
    Item maximum = item;
    maximum.kind = ReductionKind::Max;
    maximum.stores = {result_store(item, 0)};
    append(maximum);
    Item sum = item;
    sum.kind = ReductionKind::Sum;
    InstId m = add_load(sum, maximum.stores[0], dtype);
    InstId off = add(sum, {.op = Op::Sub, .dtype = dtype, .operands = {item.reduced, m, kNoInst}});
    sum.reduced = add(sum, {.op = Op::Exp, .dtype = dtype, .operands = {off, kNoInst, kNoInst}});
    sum.stores = {result_store(item, 1)};
    append(sum);
  }

  // --- arrays and phases

  DType dtype_of(BufferId id) {
    auto found = virtual_dtypes_.find(id);
    return found != virtual_dtypes_.end() ? found->second : program_.buffers[static_cast<size_t>(id)].dtype;
  }

  int32_t array_of(BufferId id) {
    auto [it, is_new] = arrays_.try_emplace(id, static_cast<int32_t>(nest_.arrays.size()));
    if (is_new) nest_.arrays.push_back({ArrayKind::Parameter, dtype_of(id), id});
    return it->second;
  }

  int32_t new_register(DType dtype) {
    nest_.arrays.push_back({ArrayKind::Register, dtype});
    return static_cast<int32_t>(nest_.arrays.size() - 1);
  }

  std::vector<Expr> own_extents(const Item& item) const {
    return {item.extents.begin() + static_cast<std::ptrdiff_t>(depth_), item.extents.end()};
  }

  bool fits(const Draft& draft, const Item& item, const std::vector<Expr>& extents) const {
    if (draft.extents != extents) return false;
    return !item.is_reduction() || !draft.loop_count || *draft.loop_count == item.loop_count - depth_;
  }

  size_t phase_for(const Item& item) {
    std::vector<Expr> extents = own_extents(item);
    size_t first = 0;
    for (const Inst& inst : item.insts) {
      if (inst.op != Op::Load) continue;
      auto found = written_.find(inst.buffer);
      if (found == written_.end()) continue;
      const Written& w = found->second;
      bool aligned = w.inst != kNoInst && w.offset == item.expressions[static_cast<size_t>(inst.index)] &&
                     drafts_[static_cast<size_t>(w.phase)].extents == extents;
      first = std::max(first, static_cast<size_t>(w.phase) + (aligned ? 0 : 1));
    }
    for (size_t p = first; p < drafts_.size(); ++p)
      if (fits(drafts_[p], item, extents)) return p;
    drafts_.push_back({});
    drafts_.back().extents = std::move(extents);
    return drafts_.size() - 1;
  }

  int32_t expression(Draft& draft, const Expr& e) {
    auto [it, is_new] =
        draft.known_expressions.try_emplace(e, static_cast<int32_t>(draft.phase.expressions.size()));
    if (is_new) draft.phase.expressions.push_back(e);
    return it->second;
  }

  // The number of a value among all phases: equal numbers are equal values.
  int32_t number(const Draft& draft, const Inst& inst) {
    Inst key = inst;
    for (InstId& id : key.operands)
      if (id != kNoInst) id = draft.values[static_cast<size_t>(id)];
    if (inst.index >= 0) {
      const Expr& e = draft.phase.expressions[static_cast<size_t>(inst.index)];
      auto [it, is_new] =
          numbered_expressions_.try_emplace(e, static_cast<int32_t>(numbered_expressions_.size()));
      key.index = it->second;
    }
    auto [it, is_new] = numbered_.try_emplace(key, next_value_);
    if (is_new) ++next_value_;
    return it->second;
  }

  InstId emit(Draft& draft, const Inst& inst, std::optional<int32_t> value = std::nullopt) {
    auto [it, is_new] = draft.known_insts.try_emplace(inst, static_cast<InstId>(draft.phase.insts.size()));
    if (is_new) {
      draft.values.push_back(value ? *value : number(draft, inst));
      draft.phase.insts.push_back(inst);
    }
    return it->second;
  }

  // A value that an earlier phase over the same space has computed, through a row of scratch memory.
  std::optional<InstId> reuse(size_t p, const Inst& inst) {
    if (nest_.axis != VectorAxis::Phase || drafts_[p].extents.empty() || !is_expensive(inst.op))
      return std::nullopt;
    int32_t value = number(drafts_[p], inst);
    for (size_t q = 0; q < p; ++q) {
      Draft& earlier = drafts_[q];
      if (earlier.extents != drafts_[p].extents) continue;
      auto found = std::ranges::find(earlier.values, value);
      if (found == earlier.values.end()) continue;
      auto producer = static_cast<InstId>(found - earlier.values.begin());
      Expr offset = 0;
      Expr elements = 1;
      for (size_t k = 0; k < earlier.extents.size(); ++k) {
        offset =
            offset * earlier.extents[k] + nest_variable(static_cast<int64_t>(depth_ + k), earlier.extents[k]);
        elements = elements * earlier.extents[k];
      }
      auto count = elements.as_constant();
      if (!count || *count * backend::bytes(inst.dtype) > options_.l2_bytes / 4) return std::nullopt;
      auto [it, is_new] = rows_.try_emplace(value, static_cast<int32_t>(nest_.arrays.size()));
      if (is_new) {
        nest_.arrays.push_back({ArrayKind::Scratch, inst.dtype, -1, *count});
        earlier.phase.stores.push_back({it->second, offset, producer, loop::StoreMode::Set});
      }
      Inst load{
          .op = Op::Load, .dtype = inst.dtype, .buffer = it->second, .index = expression(drafts_[p], offset)};
      return emit(drafts_[p], load, value);
    }
    return std::nullopt;
  }

  InstId append_load(size_t p, Inst inst) {
    Draft& draft = drafts_[p];
    Expr offset = draft.phase.expressions[static_cast<size_t>(inst.index)];
    auto found = written_.find(inst.buffer);
    if (found != written_.end()) {
      const Written& w = found->second;
      bool plain = inst.operands[0] == kNoInst;
      const auto chosen = [&](InstId value) {
        if (plain) return value;
        Inst where{.op = Op::Where, .dtype = inst.dtype};
        where.operands = {inst.operands[0], value, inst.operands[1]};
        return emit(draft, where);
      };
      // In the phase that computes it: the store comes after everything that reads.
      if (w.phase == static_cast<int32_t>(p) && w.inst != kNoInst && w.offset == offset)
        return chosen(w.inst);
      if (w.reg >= 0)
        return chosen(emit(
            draft, {.op = Op::Load, .dtype = inst.dtype, .buffer = w.reg, .index = expression(draft, 0)}));
      inst.buffer = array_of(inst.buffer);
      return emit(draft, inst,
                  plain && w.offset == offset && w.value >= 0 ? std::optional(w.value) : std::nullopt);
    }
    inst.buffer = array_of(inst.buffer);
    return emit(draft, inst);
  }

  void append(const Item& item) {
    size_t p = phase_for(item);
    std::vector<InstId> renamed(item.insts.size());
    std::vector<std::pair<int64_t, Expr>> bound;
    auto rebound = [&](const Expr& e) {
      if (bound.empty() || e.is_constant()) return e;
      return sym::substitute(e, [&](int64_t id) -> std::optional<Expr> {
        for (auto& [from, to] : bound)
          if (from == id) return to;
        return std::nullopt;
      });
    };
    for (size_t i = 0; i < item.insts.size(); ++i) {
      Inst inst = item.insts[i];
      for (InstId& id : inst.operands)
        if (id != kNoInst) id = renamed[static_cast<size_t>(id)];
      Draft& draft = drafts_[p];
      if (inst.index >= 0)
        inst.index = expression(draft, rebound(item.expressions[static_cast<size_t>(inst.index)]));
      if (inst.op == Op::Load) {
        renamed[i] = append_load(p, inst);
      } else if (inst.op == Op::BindIndex) {
        int64_t own = inst.variable;
        inst.variable = -1;
        InstId id = emit(draft, inst);
        Inst& kept = draft.phase.insts[static_cast<size_t>(id)];
        if (kept.variable < 0) kept.variable = loop::kBoundVariables + draft.values[static_cast<size_t>(id)];
        bound.emplace_back(own,
                           loop::index_variable(loop::kBoundVariables, kept.variable - loop::kBoundVariables,
                                                draft.phase.expressions[static_cast<size_t>(kept.index)]));
        renamed[i] = id;
      } else if (auto reused = reuse(p, inst)) {
        renamed[i] = *reused;
      } else {
        renamed[i] = emit(drafts_[p], inst);
      }
    }
    append_results(item, p, renamed, rebound);
  }

  template <class Rebound>
  void append_results(const Item& item, size_t p, const std::vector<InstId>& renamed, Rebound rebound) {
    Draft& draft = drafts_[p];
    if (item.is_reduction()) {
      draft.loop_count = item.loop_count - depth_;
      backend::Reduction reduction{
          item.kind, item.accumulate, renamed[static_cast<size_t>(item.reduced)], {}};
      for (const ItemStore& store : item.stores) {
        Written w{static_cast<int32_t>(p), store.offset, kNoInst, -1, -1};
        if (item.loop_count == depth_) {
          w.reg = new_register(dtype_of(store.buffer));
          reduction.stores.push_back({w.reg, 0, static_cast<int>(store.value)});
        }
        reduction.stores.push_back({array_of(store.buffer), store.offset, static_cast<int>(store.value)});
        written_[store.buffer] = w;
      }
      draft.phase.reductions.push_back(std::move(reduction));
      return;
    }
    for (const ItemStore& store : item.stores) {
      InstId value = renamed[static_cast<size_t>(store.value)];
      Expr offset = rebound(store.offset);
      if (store.mode == loop::StoreMode::AtomicAdd) nest_.serial = true;
      Written w{static_cast<int32_t>(p), offset, value, draft.values[static_cast<size_t>(value)], -1};
      if (draft.extents.empty() && store.mode == loop::StoreMode::Set) {
        w.reg = new_register(dtype_of(store.buffer));
        draft.phase.stores.push_back({w.reg, 0, value, store.mode});
      }
      draft.phase.stores.push_back({array_of(store.buffer), offset, value, store.mode});
      if (store.mode == loop::StoreMode::Set) written_[store.buffer] = w;
    }
  }

  // --- what becomes of the arrays that the nest writes

  void decide_arrays() {
    std::vector<bool> is_read(nest_.arrays.size());
    for (const Phase& phase : nest_.phases)
      for (const Inst& inst : phase.insts)
        if (inst.op == Op::Load) is_read[static_cast<size_t>(inst.buffer)] = true;
    for (auto& [buffer, w] : written_) {
      int32_t id = arrays_.at(buffer);
      bool is_virtual = virtual_dtypes_.contains(buffer);
      if (w.reg >= 0 && !is_read[static_cast<size_t>(w.reg)])
        nest_.arrays[static_cast<size_t>(w.reg)].kind = ArrayKind::Dead;
      if (!is_virtual && is_needed_(buffer)) continue;
      Array& array = nest_.arrays[static_cast<size_t>(id)];
      if (!is_read[static_cast<size_t>(id)])
        array.kind = ArrayKind::Dead;
      else
        make_scratch(id);
    }
    for (Phase& phase : nest_.phases) {
      auto dead = [&](int32_t id) { return nest_.arrays[static_cast<size_t>(id)].kind == ArrayKind::Dead; };
      std::erase_if(phase.stores, [&](const auto& store) { return dead(store.array); });
      for (backend::Reduction& reduction : phase.reductions)
        std::erase_if(reduction.stores, [&](const auto& store) { return dead(store.array); });
      std::erase_if(phase.reductions, [](const backend::Reduction& r) { return r.stores.empty(); });
    }
    std::erase_if(nest_.phases, [](const Phase& phase) {
      bool checks =
          std::ranges::any_of(phase.insts, [](const Inst& i) { return i.op == Op::BindIndex && i.checked; });
      return phase.stores.empty() && phase.reductions.empty() && !checks;
    });
  }

  template <class Fn>
  void for_each_offset(int32_t array, Fn fn) {
    for (Phase& phase : nest_.phases) {
      for (Inst& inst : phase.insts)
        if (inst.op == Op::Load && inst.buffer == array)
          fn(phase.expressions[static_cast<size_t>(inst.index)], &phase, &inst);
      for (backend::ElementStore& store : phase.stores)
        if (store.array == array) fn(store.offset, nullptr, nullptr);
      for (backend::Reduction& reduction : phase.reductions)
        for (backend::ResultStore& store : reduction.stores)
          if (store.array == array) fn(store.offset, nullptr, nullptr);
    }
  }

  // Turns the array into a row of the thread's own if each iteration of the shared loops uses a small part of
  // it.
  void make_scratch(int32_t id) {
    Array& array = nest_.arrays[static_cast<size_t>(id)];
    bool possible = nest_.axis == VectorAxis::Phase;
    int64_t elements = 0;
    for_each_offset(id, [&](const Expr& offset, Phase*, Inst*) {
      if (!possible) return;
      Expr row = without_outer(offset, depth_);
      int64_t high = row.range().high;
      possible = without_inner(offset, depth_) + row == offset && row.range().low >= 0 &&
                 high < options_.l2_bytes / 2 / backend::bytes(array.dtype);
      elements = std::max(elements, high + 1);
    });
    if (!possible) return;
    for_each_offset(id, [&](Expr& offset, Phase* phase, Inst* inst) {
      Expr row = without_outer(offset, depth_);
      if (phase) {  // other loads may share the expression
        phase->expressions.push_back(row);
        inst->index = static_cast<int32_t>(phase->expressions.size() - 1);
      } else {
        offset = row;
      }
    });
    array = {ArrayKind::Scratch, array.dtype, -1, elements};
  }

  const loop::Program& program_;
  const std::vector<Item>& items_;
  const Group& group_;
  const std::function<bool(BufferId)>& is_needed_;
  NestOptions options_;
  size_t depth_;
  LoopNest nest_;
  std::vector<Draft> drafts_;
  std::map<BufferId, int32_t> arrays_;
  std::map<BufferId, Written> written_;
  std::map<BufferId, DType> virtual_dtypes_;
  BufferId next_virtual_;
  std::unordered_map<Inst, int32_t, HashInst> numbered_;
  std::unordered_map<Expr, int32_t> numbered_expressions_;
  std::map<int32_t, int32_t> rows_;  // scratch array by value
  int32_t next_value_ = 0;
};

}  // namespace

namespace {

}  // namespace

backend::LoopNest build_nest(const loop::Program& program, const std::vector<Item>& items, const Group& group,
                             const std::function<bool(BufferId)>& is_needed, const NestOptions& options) {
  return NestBuilder(program, items, group, is_needed, options).build();
}

}  // namespace oxy::backend
