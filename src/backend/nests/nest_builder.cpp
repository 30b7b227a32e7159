#include "backend/nests/nest_builder.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "backend/nests/outer_loops.h"
#include "backend/nests/several_passes.h"
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
using backend::VectorAxis;
using loop::Inst;
using loop::kNoIndex;
using loop::kNoInst;
using loop::Op;
using loop::ReductionKind;

bool is_expensive(Op op) {
  return (op >= Op::Exp && op <= Op::Erfc && op != Op::Sqrt && op != Op::Reciprocal) || op == Op::Pow;
}

size_t hash_inst(const NestInst& inst) {
  uint64_t h = hash_combine(static_cast<uint64_t>(inst.op), static_cast<uint64_t>(inst.dtype));
  for (InstId id : inst.operands) h = hash_combine(h, std::hash<InstId>()(id));
  h = hash_combine(h, std::hash<ArrayId>()(inst.buffer));
  h = hash_combine(h, std::hash<IndexId>()(inst.index));
  h = hash_combine(h, std::visit([](auto v) { return std::hash<decltype(v)>()(v); }, inst.constant.value));
  return static_cast<size_t>(hash_combine(h, static_cast<uint64_t>(inst.variable)));
}
struct HashInst {
  size_t operator()(const NestInst& inst) const { return hash_inst(inst); }
};

// Of a value among those of the whole nest: equal numbers are equal values.
using ValueNumber = Id<struct ValueNumberTag>;

// A phase under construction.
struct Draft {
  Phase phase;
  std::vector<Expr> extents;         // of its loops and reduction loops
  std::optional<size_t> loop_count;  // how many are not reduced; open while it has no reduction
  std::unordered_map<NestInst, InstId, HashInst> known_insts;
  std::unordered_map<Expr, IndexId> known_expressions;
  IdVector<InstId, ValueNumber> values;
};

struct Written {
  size_t phase = 0;
  Expr offset;
  InstId inst;        // the value stored by an element store
  ValueNumber value;  // its number
  ArrayId reg;        // a Register array that holds it, if it is one element a row
};

// The scan as an instruction of an item over all of its loops.
Item with_scan_instruction(Item item, const loop::Program& program) {
  Inst scan{.op = Op::Scan, .dtype = item.accumulate, .scan = item.kind};
  scan.operands[0] = item.reduced;
  const InstId value = item.insts.add(scan);
  for (ItemStore& store : item.stores) {
    const DType dtype = program.buffers[store.buffer].dtype;
    store.value = value;
    if (dtype != item.accumulate)
      store.value = item.insts.add({.op = Op::Cast, .dtype = dtype, .operands = {value, kNoInst, kNoInst}});
  }
  item.kind = ReductionKind::None;
  item.loop_count = item.extents.size();
  return item;
}

class NestBuilder {
 public:
  NestBuilder(const loop::Program& program, const IdVector<StepId, Item>& items, const Group& group,
              const std::function<bool(BufferId)>& is_needed, const NestOptions& options)
      : program_(program),
        items_(items),
        group_(group),
        is_needed_(is_needed),
        options_(options),
        depth_(group.extents.size()),
        next_virtual_(program.buffers.next_id()) {}

  LoopNest build() {
    std::optional<Item> scatter = independent_scatter(items_, group_, options_.lanes);
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
    nest_.axis = choose_axis(items_, group_, nest_.outer, options_.lanes);
    for (StepId step : group_.steps) append_expanded(items_[step]);
    for (StepId step : group_.steps) {
      const std::string& origin = items_[step].origin;
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

  // --- reductions that take several passes

  // As several items where its reduction is made in several passes.
  void append_expanded(const Item& item) {
    const NewBuffer new_buffer = [this](DType dtype) { return new_virtual(dtype); };
    if (item.is_scan()) {
      check(item.loop_count == depth_, "a scan's row is divided");
      return append(with_scan_instruction(item, program_));
    }
    if (is_online_softmax(item))
      for (const Item& pass : maximum_and_sum(item, new_buffer)) append(pass);
    else if (is_two_pass_variance(item))
      for (const Item& pass : two_pass_variance(item, new_buffer)) append(pass);
    else
      append(item);
  }

  bool is_online_softmax(const Item& item) const {
    return !options_.whole_reductions && item.kind == ReductionKind::OnlineSoftmax;
  }

  // The row stays in the cache between the passes.
  bool is_two_pass_variance(const Item& item) const {
    if (options_.whole_reductions || item.kind != ReductionKind::Welford) return false;
    if (nest_.axis != VectorAxis::Phase || item.loop_count != depth_) return false;
    int64_t elements = 1;
    for (size_t k = item.loop_count; k < item.extents.size(); ++k)
      elements *= std::max<int64_t>(estimate(item.extents[k]), 1);
    return elements * 4 <= options_.l2_bytes / 2;
  }

  // A buffer of the nest's own, under a number that the program has not.
  BufferId new_virtual(DType dtype) {
    const BufferId id = next_virtual_;
    next_virtual_ = BufferId(id.number() + 1);
    virtual_dtypes_[id] = dtype;
    return id;
  }

  // --- arrays and phases

  DType dtype_of(BufferId id) {
    auto found = virtual_dtypes_.find(id);
    return found != virtual_dtypes_.end() ? found->second : program_.buffers[id].dtype;
  }

  ArrayId array_of(BufferId id) {
    auto [it, is_new] = arrays_.try_emplace(id, nest_.arrays.next_id());
    if (!is_new) return it->second;
    nest_.arrays.add({ArrayKind::Parameter, dtype_of(id), id});
    if (!virtual_dtypes_.contains(id))
      for (const Expr& size : program_.buffers[id].sizes)
        if (size.range().low < 1) nest_.arrays[it->second].empty_sizes.push_back(size);
    return it->second;
  }

  ArrayId new_register(DType dtype) { return nest_.arrays.add({ArrayKind::Register, dtype}); }

  std::vector<Expr> own_extents(const Item& item) const {
    return {item.extents.begin() + static_cast<std::ptrdiff_t>(depth_), item.extents.end()};
  }

  // The register of the item's condition.
  ArrayId condition_of(const Item& item) const {
    return item.condition.is_valid() ? written_.at(item.condition).reg : ArrayId();
  }

  bool fits(const Draft& draft, const Item& item, const std::vector<Expr>& extents) const {
    if (draft.extents != extents || draft.phase.condition != condition_of(item)) return false;
    return !item.is_reduction() || !draft.loop_count || *draft.loop_count == item.loop_count - depth_;
  }

  size_t phase_for(const Item& item) {
    std::vector<Expr> extents = own_extents(item);
    size_t first = item.condition.is_valid() ? written_.at(item.condition).phase + 1 : 0;
    for (const Inst& inst : item.insts) {
      if (inst.op != Op::Load) continue;
      auto found = written_.find(inst.buffer);
      if (found == written_.end()) continue;
      const Written& w = found->second;
      bool aligned = w.inst != kNoInst && w.offset == item.expressions[inst.index] &&
                     drafts_[w.phase].extents == extents;
      first = std::max(first, w.phase + (aligned ? 0 : 1));
    }
    for (size_t p = first; p < drafts_.size(); ++p)
      if (fits(drafts_[p], item, extents)) return p;
    drafts_.push_back({});
    drafts_.back().extents = std::move(extents);
    drafts_.back().phase.condition = condition_of(item);
    return drafts_.size() - 1;
  }

  IndexId expression(Draft& draft, const Expr& e) {
    auto [it, is_new] = draft.known_expressions.try_emplace(e, draft.phase.expressions.next_id());
    if (is_new) draft.phase.expressions.add(e);
    return it->second;
  }

  ValueNumber number(const Draft& draft, const NestInst& inst) {
    // The instruction with the numbers of its operands and of its index.
    NestInst key = inst;
    for (InstId& id : key.operands)
      if (id != kNoInst) id = InstId(draft.values[id].number());
    if (inst.index != kNoIndex)
      key.index = numbered_expressions_
                      .try_emplace(draft.phase.expressions[inst.index], IndexId(numbered_expressions_.size()))
                      .first->second;
    return numbered_.try_emplace(key, ValueNumber(numbered_.size())).first->second;
  }

  InstId emit(Draft& draft, const NestInst& inst, std::optional<ValueNumber> value = std::nullopt) {
    auto [it, is_new] = draft.known_insts.try_emplace(inst, draft.phase.insts.next_id());
    if (is_new) {
      draft.values.add(value ? *value : number(draft, inst));
      draft.phase.insts.add(inst);
    }
    return it->second;
  }

  // A value that an earlier phase over the same space has computed, through a row of scratch memory.
  std::optional<InstId> reuse(size_t p, const NestInst& inst) {
    if (nest_.axis != VectorAxis::Phase || drafts_[p].extents.empty() || !is_expensive(inst.op))
      return std::nullopt;
    const ValueNumber value = number(drafts_[p], inst);
    for (size_t q = 0; q < p; ++q) {
      Draft& earlier = drafts_[q];
      if (earlier.extents != drafts_[p].extents || earlier.phase.condition.is_valid()) continue;
      auto found = std::ranges::find(earlier.values, value);
      if (found == earlier.values.end()) continue;
      const InstId producer(found - earlier.values.begin());
      Expr offset = 0;
      Expr elements = 1;
      for (size_t k = 0; k < earlier.extents.size(); ++k) {
        offset =
            offset * earlier.extents[k] + nest_variable(static_cast<int64_t>(depth_ + k), earlier.extents[k]);
        elements = elements * earlier.extents[k];
      }
      if (estimate(elements) * backend::bytes(inst.dtype) > options_.l2_bytes / 4) return std::nullopt;
      auto [it, is_new] = rows_.try_emplace({value, q}, nest_.arrays.next_id());
      if (is_new) {
        nest_.arrays.add({ArrayKind::Scratch, inst.dtype, loop::kNoBuffer, elements});
        earlier.phase.stores.push_back({it->second, offset, producer, loop::StoreMode::Set});
      }
      NestInst load{
          .op = Op::Load, .dtype = inst.dtype, .buffer = it->second, .index = expression(drafts_[p], offset)};
      return emit(drafts_[p], load, value);
    }
    return std::nullopt;
  }

  // `inst` has the operands and the index of the phase already.
  InstId append_load(size_t p, const Inst& inst) {
    Draft& draft = drafts_[p];
    Expr offset = draft.phase.expressions[inst.index];
    auto found = written_.find(inst.buffer);
    if (found != written_.end()) {
      const Written& w = found->second;
      bool plain = inst.operands[0] == kNoInst;
      const auto chosen = [&](InstId value) {
        if (plain) return value;
        NestInst where{.op = Op::Where, .dtype = inst.dtype};
        where.operands = {inst.operands[0], value, inst.operands[1]};
        return emit(draft, where);
      };
      // In the phase that computes it: the store comes after everything that reads.
      if (w.phase == p && w.inst != kNoInst && w.offset == offset) return chosen(w.inst);
      if (w.reg.is_valid())
        return chosen(emit(
            draft, {.op = Op::Load, .dtype = inst.dtype, .buffer = w.reg, .index = expression(draft, 0)}));
      return emit(draft, inst.over(array_of(inst.buffer)),
                  plain && w.offset == offset && w.value.is_valid() ? std::optional(w.value) : std::nullopt);
    }
    return emit(draft, inst.over(array_of(inst.buffer)));
  }

  void append(const Item& item) {
    size_t p = phase_for(item);
    IdVector<InstId, InstId> renamed(item.insts.size());
    std::vector<std::pair<int64_t, Expr>> bound;
    auto rebound = [&](const Expr& e) {
      if (bound.empty() || e.is_constant()) return e;
      return sym::substitute(e, [&](int64_t id) -> std::optional<Expr> {
        for (auto& [from, to] : bound)
          if (from == id) return to;
        return std::nullopt;
      });
    };
    for (const InstId own : item.insts.ids()) {
      Inst inst = item.insts[own];
      for (InstId& id : inst.operands)
        if (id != kNoInst) id = renamed[id];
      Draft& draft = drafts_[p];
      if (inst.index != kNoIndex) inst.index = expression(draft, rebound(item.expressions[inst.index]));
      if (inst.op == Op::Load) {
        renamed[own] = append_load(p, inst);
        continue;
      }
      NestInst computed = inst.over(ArrayId());
      if (inst.op == Op::BindIndex) {
        computed.variable = -1;
        const InstId id = emit(draft, computed);
        NestInst& kept = draft.phase.insts[id];
        if (kept.variable < 0) kept.variable = loop::kBoundVariables + draft.values[id].number();
        bound.emplace_back(inst.variable,
                           loop::index_variable(loop::kBoundVariables, kept.variable - loop::kBoundVariables,
                                                draft.phase.expressions[kept.index]));
        renamed[own] = id;
      } else if (auto reused = reuse(p, computed)) {
        renamed[own] = *reused;
      } else {
        renamed[own] = emit(drafts_[p], computed);
      }
    }
    append_results(item, p, renamed, rebound);
  }

  template <class Rebound>
  void append_results(const Item& item, size_t p, const IdVector<InstId, InstId>& renamed, Rebound rebound) {
    Draft& draft = drafts_[p];
    if (item.is_reduction()) {
      draft.loop_count = item.loop_count - depth_;
      backend::Reduction reduction{item.kind, item.accumulate, renamed[item.reduced], {}, item.counted};
      for (const ItemStore& store : item.stores) {
        Written w{p, store.offset};
        if (item.loop_count == depth_) {
          w.reg = new_register(dtype_of(store.buffer));
          reduction.stores.push_back({w.reg, 0, store.result});
        }
        reduction.stores.push_back({array_of(store.buffer), store.offset, store.result});
        written_[store.buffer] = w;
      }
      draft.phase.reductions.push_back(std::move(reduction));
      return;
    }
    for (const ItemStore& store : item.stores) {
      InstId value = renamed[store.value];
      Expr offset = rebound(store.offset);
      if (store.mode == loop::StoreMode::AtomicAdd) nest_.serial = true;  // no atomics are printed
      const bool always = !item.condition.is_valid();
      Written w{p, offset, always ? value : kNoInst, always ? draft.values[value] : ValueNumber()};
      if (draft.extents.empty() && store.mode == loop::StoreMode::Set) {
        const auto before = written_.find(store.buffer);
        w.reg =
            always || before == written_.end() ? new_register(dtype_of(store.buffer)) : before->second.reg;
        draft.phase.stores.push_back({w.reg, 0, value, store.mode});
      }
      draft.phase.stores.push_back(
          {array_of(store.buffer), offset, value, store.mode, store.in_order, store.part});
      if (store.mode == loop::StoreMode::Set) written_[store.buffer] = w;
    }
  }

  // --- what becomes of the arrays that the nest writes

  void decide_arrays() {
    IdVector<ArrayId, bool> is_read(nest_.arrays.size());
    for (const Phase& phase : nest_.phases) {
      if (phase.condition.is_valid()) is_read[phase.condition] = true;
      for (const NestInst& inst : phase.insts)
        if (inst.op == Op::Load) is_read[inst.buffer] = true;
    }
    for (auto& [buffer, w] : written_) {
      const ArrayId id = arrays_.at(buffer);
      bool is_virtual = virtual_dtypes_.contains(buffer);
      if (w.reg.is_valid() && !is_read[w.reg]) nest_.arrays[w.reg].kind = ArrayKind::Dead;
      if (!is_virtual && is_needed_(buffer)) continue;
      Array& array = nest_.arrays[id];
      if (!is_read[id])
        array.kind = ArrayKind::Dead;
      else
        make_scratch(id);
    }
    for (Phase& phase : nest_.phases) {
      auto dead = [&](ArrayId id) { return nest_.arrays[id].kind == ArrayKind::Dead; };
      std::erase_if(phase.stores, [&](const auto& store) { return dead(store.array); });
      for (backend::Reduction& reduction : phase.reductions)
        std::erase_if(reduction.stores, [&](const auto& store) { return dead(store.array); });
      std::erase_if(phase.reductions, [](const backend::Reduction& r) { return r.stores.empty(); });
    }
    std::erase_if(nest_.phases, [](const Phase& phase) {
      bool checks = std::ranges::any_of(phase.insts,
                                        [](const NestInst& i) { return i.op == Op::BindIndex && i.checked; });
      return phase.stores.empty() && phase.reductions.empty() && !checks;
    });
  }

  template <class Fn>
  void for_each_offset(ArrayId array, Fn fn) {
    for (Phase& phase : nest_.phases) {
      for (NestInst& inst : phase.insts)
        if (inst.op == Op::Load && inst.buffer == array) fn(phase.expressions[inst.index], &phase, &inst);
      for (backend::ElementStore& store : phase.stores)
        if (store.array == array) fn(store.offset, nullptr, nullptr);
      for (backend::Reduction& reduction : phase.reductions)
        for (backend::ResultStore& store : reduction.stores)
          if (store.array == array) fn(store.offset, nullptr, nullptr);
    }
  }

  // The elements of an array that is addressed by `row`, over loops of the phases.
  std::optional<Expr> elements_of_row(const Expr& row) const {
    if (row.range().high < sym::kMaxInt) return Expr(row.range().high + 1);
    Expr last = row;
    for (const Phase& phase : nest_.phases)
      for (const auto* loops : {&phase.loops, &phase.reduction})
        for (const LoopVariable& l : *loops) {
          const auto linear = sym::linear_in(last, l.variable.variable_id());
          if (!linear || linear->first.range().low < 0) return std::nullopt;
          last = linear->first * (l.extent - 1) + linear->second;
        }
    for (const Expr& v : sym::variables(last))
      if (is_nest_variable(v.variable_id())) return std::nullopt;
    return sym::max(last + 1, 0);
  }

  // Turns the array into a row of the thread's own if each iteration of the shared loops uses a small part of
  // it.
  void make_scratch(ArrayId id) {
    Array& array = nest_.arrays[id];
    bool possible = nest_.axis == VectorAxis::Phase;
    Expr elements = 0;
    for_each_offset(id, [&](const Expr& offset, Phase*, NestInst*) {
      if (!possible) return;
      Expr row = without_outer(offset, depth_);
      const std::optional<Expr> count = elements_of_row(row);
      possible = without_inner(offset, depth_) + row == offset && row.range().low >= 0 && count;
      if (count) elements = sym::max(elements, *count);
    });
    if (!possible || estimate(elements) > options_.l2_bytes / 2 / backend::bytes(array.dtype)) return;
    for_each_offset(id, [&](Expr& offset, Phase* phase, NestInst* inst) {
      Expr row = without_outer(offset, depth_);
      if (phase) {  // other loads may share the expression
        inst->index = phase->expressions.add(row);
      } else {
        offset = row;
      }
    });
    array = {ArrayKind::Scratch, array.dtype, loop::kNoBuffer, elements};
  }

  const loop::Program& program_;
  const IdVector<StepId, Item>& items_;
  const Group& group_;
  const std::function<bool(BufferId)>& is_needed_;
  NestOptions options_;
  size_t depth_;
  LoopNest nest_;
  std::vector<Draft> drafts_;
  std::map<BufferId, ArrayId> arrays_;
  std::map<BufferId, Written> written_;
  std::map<BufferId, DType> virtual_dtypes_;
  BufferId next_virtual_;
  std::unordered_map<NestInst, ValueNumber, HashInst> numbered_;
  std::unordered_map<Expr, IndexId> numbered_expressions_;
  // Scratch arrays by the value and the phase that stores it. Phases over other spaces compute it too.
  std::map<std::pair<ValueNumber, size_t>, ArrayId> rows_;
};

}  // namespace

backend::LoopNest build_nest(const loop::Program& program, const IdVector<StepId, Item>& items,
                             const Group& group, const std::function<bool(BufferId)>& is_needed,
                             const NestOptions& options) {
  return NestBuilder(program, items, group, is_needed, options).build();
}

}  // namespace oxy::backend
