#include "backend/shared/scattered_inputs.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "backend/shared/buffer_uses.h"
#include "backend/shared/direct_writes.h"

namespace oxy::backend {
namespace {

using loop::BufferId;
using loop::Computation;
using loop::Inst;
using loop::kNoBuffer;
using loop::Op;
using loop::Program;
using loop::StepId;

// Whether every element of `to` is that of `from`. Values may be held in a wider type on the way.
bool is_copy(const Program& program, const Computation& c, BufferId from, BufferId to) {
  const loop::Buffer& target = program.buffers[to];
  if (c.kind != loop::ReductionKind::None || c.stores.size() != 1 || c.stores[0].buffer != to ||
      c.stores[0].mode != loop::StoreMode::Set)
    return false;
  const std::vector<Expr>& place = c.stores[0].index;
  size_t loops = 0;
  for (size_t d = 0; d < place.size(); ++d) {
    const bool is_single = target.sizes[d] == Expr(1) && place[d] == Expr(0);
    const bool is_loop = loops < c.loops.size() && place[d] == c.loops[loops].variable &&
                         c.loops[loops].extent == target.sizes[d];
    if (!is_single && !is_loop) return false;
    loops += is_loop ? 1 : 0;
  }
  if (loops != c.loops.size()) return false;
  int loads = 0;
  for (const Inst& inst : c.body.insts) {
    const bool is_load = inst.op == Op::Load && inst.buffer == from && c.body.indices[inst.index] == place &&
                         inst.operands[0] == loop::kNoInst;
    const bool is_cast = inst.op == Op::Cast && item_size(inst.dtype) >= item_size(target.dtype) &&
                         is_floating(inst.dtype) == is_floating(target.dtype);
    if (!is_load && !is_cast) return false;
    loads += is_load ? 1 : 0;
  }
  return loads == 1;
}

bool sets_elements(const Computation& c, BufferId of) {
  const bool loads = std::ranges::any_of(
      c.body.insts, [&](const Inst& inst) { return inst.op == Op::Load && inst.buffer == of; });
  return !loads && c.stores.size() == 1 && c.stores[0].buffer == of &&
         c.stores[0].mode == loop::StoreMode::Set;
}

class Finder {
 public:
  explicit Finder(const Program& program)
      : program_(program), uses_(uses_of(program)), input_buffers_(buffers_of_inputs(program)) {}

  // The copies, and for each the input that takes its place, by the buffer that holds the copy.
  std::map<BufferId, BufferId> run() {
    std::map<BufferId, BufferId> inputs;
    for (const loop::ProgramMutation& mutation : program_.mutations)
      if (const auto input = input_for(mutation)) inputs.emplace(mutation.value.buffer, *input);
    return inputs;
  }

 private:
  std::optional<BufferId> input_for(const loop::ProgramMutation& mutation) const {
    const auto found = input_buffers_.find(mutation.input);
    const BufferId value = mutation.value.buffer;
    if (found == input_buffers_.end() || value == kNoBuffer) return std::nullopt;
    const BufferId input = found->second;
    const ProgramUse &value_uses = uses_[value], &input_uses = uses_[input];
    if (!can_be_input(program_, mutation, input) || value_uses.results != 1 || input_uses.results != 0 ||
        value_uses.writers.size() != 2 || input_uses.readers.size() != 1 || !input_uses.writers.empty())
      return std::nullopt;
    const StepId copy = value_uses.writers[0], scatter = value_uses.writers[1];
    const auto* copies = std::get_if<Computation>(&program_.steps[copy]);
    const auto* scatters = std::get_if<Computation>(&program_.steps[scatter]);
    const bool is_update = copies != nullptr && scatters != nullptr && input_uses.readers[0] == copy &&
                           is_copy(program_, *copies, input, value) && sets_elements(*scatters, value) &&
                           (value_uses.readers.empty() || scatter < value_uses.readers.front());
    return is_update ? std::optional(input) : std::nullopt;
  }

  const Program& program_;
  IdVector<BufferId, ProgramUse> uses_;
  std::unordered_map<int32_t, BufferId> input_buffers_;  // by number of the input
};

void rename(loop::BufferView& view, const std::map<BufferId, BufferId>& names) {
  if (const auto found = names.find(view.buffer); found != names.end()) view.buffer = found->second;
}

void rename(loop::ExternCall& call, const std::map<BufferId, BufferId>& names) {
  for (loop::ExternArgument& argument : call.args) {
    if (auto* view = std::get_if<loop::BufferView>(&argument)) rename(*view, names);
    if (auto* list = std::get_if<std::vector<std::optional<loop::BufferView>>>(&argument))
      for (auto& view : *list)
        if (view) rename(*view, names);
  }
}

}  // namespace

void scatter_into_inputs(Program& program) {
  if (program.mutations.empty()) return;
  const std::map<BufferId, BufferId> inputs = Finder(program).run();
  if (inputs.empty()) return;
  IdVector<StepId, loop::Step> kept;
  for (loop::Step& step : program.steps) {
    auto* const computation = std::get_if<Computation>(&step);
    if (computation == nullptr) {
      rename(std::get<loop::ExternCall>(step), inputs);
    } else {
      bool is_copy = false;
      for (loop::Store& store : computation->stores)
        if (const auto found = inputs.find(store.buffer); found != inputs.end()) {
          is_copy = std::ranges::any_of(computation->body.insts, [&](const Inst& inst) {
            return inst.op == Op::Load && inst.buffer == found->second;
          });
          store.buffer = found->second;
        }
      if (is_copy) continue;
      for (Inst& inst : computation->body.insts)
        if (const auto found = inputs.find(inst.buffer); inst.op == Op::Load && found != inputs.end())
          inst.buffer = found->second;
    }
    kept.add(std::move(step));
  }
  program.steps = std::move(kept);
  for (loop::ProgramMutation& mutation : program.mutations) rename(mutation.value, inputs);
}

}  // namespace oxy::backend
