#include "backend/nests/first_elements.h"

#include <algorithm>
#include <map>
#include <ranges>
#include <utility>

namespace oxy::backend {
namespace {

using loop::Inst;
using loop::kNoIndex;
using loop::kNoInst;
using loop::Op;

class Copier {
 public:
  Copier(const IdVector<StepId, Item>& items, std::span<const StepId> steps, size_t position)
      : items_(items),
        steps_(steps),
        reduction_(items[steps[position]]),
        first_{.item = {}, .place = position} {
    Item& item = first_.item;
    const auto loops = static_cast<std::ptrdiff_t>(reduction_.loop_count);
    item.extents.assign(reduction_.extents.begin(), reduction_.extents.begin() + loops);
    item.loop_count = reduction_.loop_count;
    item.accumulate = reduction_.accumulate;
    Expr elements = 1;
    bool may_be_empty = false;
    for (const Expr& extent : reduction_.extents | std::views::drop(reduction_.loop_count)) {
      elements = elements * extent;
      may_be_empty |= extent.range().low < 1;
    }
    if (may_be_empty) has_elements_ = is_positive(elements);
  }

  std::optional<FirstElement> copy(const ItemStore& target) {
    const InstId value = copied(reduction_, reduction_.reduced, first_.place);
    if (value == kNoInst || after_ > first_.place) return std::nullopt;
    first_.item.stores = {{target.buffer, target.offset, value, loop::StoreMode::Set}};
    return std::move(first_);
  }

 private:
  // The position of the step that has stored to the buffer before step `end`; `end` if none has.
  size_t writer_of(BufferId buffer, size_t end) const {
    for (size_t p = end; p-- > 0;)
      for (const ItemStore& store : items_[steps_[p]].stores)
        if (store.buffer == buffer) return p;
    return end;
  }

  Expr at_first(Expr e) const {
    for (size_t k = reduction_.loop_count; k < reduction_.extents.size(); ++k) {
      const int64_t reduced = nest_variable(static_cast<int64_t>(k), reduction_.extents[k]).variable_id();
      e = sym::substitute(e,
                          [&](int64_t id) { return id == reduced ? std::optional<Expr>(0) : std::nullopt; });
    }
    return e;
  }

  // The value of `result`, an instruction of the step at `position`. None if it cannot be computed apart.
  InstId copied(const Item& item, InstId result, size_t position) {
    IdVector<InstId, InstId> renamed(item.insts.size());
    for (const InstId own : item.insts.ids()) {
      if (item.insts[own].op == Op::Load) {
        renamed[own] = copied_load(item, item.insts[own], renamed, position);
      } else if (may_be_copied(item, item.insts[own].op)) {
        renamed[own] = add(item, item.insts[own], renamed);
      }
      if (renamed[own] == kNoInst) return kNoInst;
      if (own == result) break;
    }
    return renamed[result];
  }

  InstId is_positive(const Expr& number) {
    Item& item = first_.item;
    const IndexId index = item.expressions.add(number);
    const InstId value = item.insts.add({.op = Op::Index, .dtype = DType::Int64, .index = index});
    const InstId zero = item.insts.add({.op = Op::Constant, .dtype = DType::Int64, .constant = {int64_t{0}}});
    return item.insts.add({.op = Op::Lt, .dtype = DType::Bool, .operands = {zero, value, kNoInst}});
  }

  // Names of bound indices are those of one item. What is not read of a row without elements is no index.
  bool may_be_copied(const Item& item, Op op) {
    if (op != Op::BindIndex) return op != Op::Scan;
    if (binds_ == nullptr) binds_ = &item;
    return binds_ == &item && !has_masks_;
  }

  // Whether it has other loop variables than those of the rows.
  bool is_of_element(const Expr& offset) const {
    return std::ranges::any_of(sym::variables(offset), [&](const Expr& v) {
      if (!is_nest_variable(v.variable_id())) return false;
      for (size_t k = 0; k < reduction_.loop_count; ++k)
        if (nest_variable(static_cast<int64_t>(k), reduction_.extents[k]) == v) return false;
      return true;
    });
  }

  InstId add(const Item& item, Inst inst, const IdVector<InstId, InstId>& renamed) {
    for (InstId& id : inst.operands)
      if (id != kNoInst) id = renamed[id];
    if (inst.op == Op::Load && has_elements_ != kNoInst && is_of_element(item.expressions[inst.index])) {
      has_masks_ = true;
      if (inst.operands[0] != kNoInst) return kNoInst;
      const InstId nothing =
          first_.item.insts.add({.op = Op::Constant, .dtype = inst.dtype, .constant = {0.0}});
      inst.operands = {has_elements_, nothing, kNoInst};
    }
    if (inst.index != kNoIndex)
      inst.index = first_.item.expressions.add(at_first(item.expressions[inst.index]));
    return first_.item.insts.add(inst);
  }

  InstId copied_load(const Item& item, const Inst& load, const IdVector<InstId, InstId>& renamed,
                     size_t position) {
    const size_t p = writer_of(load.buffer, position);
    if (p == position) return add(item, load, renamed);
    const Item& writer = items_[steps_[p]];
    if (writer.extents.size() <= reduction_.loop_count || writer.loop_count <= reduction_.loop_count) {
      after_ = std::max(after_, p + 1);  // of a whole row
      return add(item, load, renamed);
    }
    const auto store = std::ranges::find(writer.stores, load.buffer, &ItemStore::buffer);
    const bool is_same_element = writer.extents == reduction_.extents && !writer.is_reduction() &&
                                 !writer.is_scan() && load.operands[0] == kNoInst &&
                                 store->mode == loop::StoreMode::Set &&
                                 store->offset == item.expressions[load.index];
    if (!is_same_element) return kNoInst;
    first_.place = std::min(first_.place, p);
    const auto [known, is_new] = copies_.try_emplace({p, load.buffer}, kNoInst);
    if (is_new) {
      const InstId copy = copied(writer, store->value, p);
      copies_[{p, load.buffer}] = copy;
      return copy;
    }
    return known->second;
  }

  const IdVector<StepId, Item>& items_;
  std::span<const StepId> steps_;
  const Item& reduction_;
  FirstElement first_;
  std::map<std::pair<size_t, BufferId>, InstId> copies_;  // by step and what it stores to
  InstId has_elements_ = kNoInst;                         // whether a row has any; none if all have
  bool has_masks_ = false;                                // some element is not read where there is none
  const Item* binds_ = nullptr;                           // its bound indices are among the instructions
  size_t after_ = 0;                                      // it needs what the steps before this one store
};

}  // namespace

std::optional<FirstElement> first_element(const IdVector<StepId, Item>& items, std::span<const StepId> steps,
                                          size_t position, const ItemStore& target) {
  return Copier(items, steps, position).copy(target);
}

}  // namespace oxy::backend
