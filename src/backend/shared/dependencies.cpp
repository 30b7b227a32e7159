#include "backend/shared/dependencies.h"

#include <algorithm>

#include "aten/opaque.h"
#include "backend/shared/normal_form.h"

namespace oxy::backend {

namespace {

using loop::kNoBuffer;

bool has_bound_variable(const Expr& e) {
  if (e.is_constant()) return false;
  for (const Expr& v : sym::variables(e))
    if (is_bound_variable(v.variable_id())) return true;
  return false;
}

struct Accesses {
  std::vector<BufferId> reads;
  std::vector<BufferId> writes;
  bool is_ordered = false;  // random or effectful: keeps its place among such calls
};

Accesses accesses_of(const loop::Program& program, const Item& item, StepId step,
                     IdVector<BufferId, BufferUse>& buffers) {
  Accesses a;
  if (auto* call = std::get_if<loop::ExternCall>(&program.steps[step])) {
    for_each_view(*call, [&](const loop::BufferView& view) { a.reads.push_back(view.buffer); });
    for (BufferId id : call->outputs)
      if (id != kNoBuffer) a.writes.push_back(id);
    a.is_ordered = call->op && (draws_numbers(*call->op, call->args) || call->op->is_mutating() ||
                                is_opaque(*call->op) || a.writes.empty());
    return a;
  }
  for (const loop::Inst& inst : item.insts)
    if (inst.op == loop::Op::Load) a.reads.push_back(inst.buffer);
  for (const ItemStore& store : item.stores) {
    a.writes.push_back(store.buffer);
    if (store.mode != loop::StoreMode::Set || has_bound_variable(store.offset))
      buffers[store.buffer].is_irregular = true;
  }
  return a;
}

void make_distinct(std::vector<StepId>& list) {
  std::ranges::sort(list);
  list.erase(std::ranges::unique(list).begin(), list.end());
}

}  // namespace

void for_each_view(const loop::ExternCall& call, const std::function<void(const loop::BufferView&)>& fn) {
  for (const loop::ExternArgument& argument : call.args) {
    if (auto* view = std::get_if<loop::BufferView>(&argument)) fn(*view);
    if (auto* list = std::get_if<std::vector<std::optional<loop::BufferView>>>(&argument))
      for (const auto& view : *list)
        if (view) fn(*view);
  }
}

Dependencies find_dependencies(const loop::Program& program, const IdVector<StepId, Item>& items) {
  Dependencies d;
  d.buffers.resize(program.buffers.size());
  d.before.resize(items.size());
  d.after.resize(items.size());
  StepId last_ordered;
  for (const StepId step : items.ids()) {
    Accesses a = accesses_of(program, items[step], step, d.buffers);
    std::vector<StepId>& before = d.before[step];
    for (BufferId id : a.reads) {
      BufferUse& use = d.buffers[id];
      before.insert(before.end(), use.writers.begin(), use.writers.end());
      if (use.readers.empty() || use.readers.back() != step) use.readers.push_back(step);
    }
    for (BufferId id : a.writes) {
      BufferUse& use = d.buffers[id];
      before.insert(before.end(), use.writers.begin(), use.writers.end());
      before.insert(before.end(), use.readers.begin(), use.readers.end());
      if (use.writers.empty() || use.writers.back() != step) use.writers.push_back(step);
      if (use.writers.size() > 1) use.is_irregular = true;
    }
    if (a.is_ordered) {
      if (last_ordered.is_valid()) before.push_back(last_ordered);
      last_ordered = step;
    }
    std::erase(before, step);
    make_distinct(before);
    for (StepId earlier : before) d.after[earlier].push_back(step);
  }
  auto keep = [&](const loop::BufferView& view) {
    if (view.buffer != kNoBuffer) d.buffers[view.buffer].is_kept = true;
  };
  for (const loop::ProgramOutput& output : program.outputs) keep(output.view);
  for (const loop::ProgramMutation& mutation : program.mutations) keep(mutation.value);
  return d;
}

}  // namespace oxy::backend
