#include "backend/shared/direct_writes.h"

#include <algorithm>
#include <ranges>
#include <unordered_set>

#include "backend/shared/buffer_bytes.h"

namespace oxy::backend {
namespace {

bool is_whole(const loop::Buffer& buffer, const loop::BufferView& view) {
  return buffer.strides && view.sizes == buffer.sizes && view.strides == *buffer.strides &&
         view.offset == Expr(0);
}

bool fits(const loop::Buffer& value, const loop::Buffer& input) {
  return value.kind == loop::BufferKind::Intermediate && input.strides && value.dtype == input.dtype &&
         value.device == input.device && value.sizes == input.sizes && *value.strides == *input.strides;
}

std::unordered_map<BufferId, BufferId> candidates(const loop::Program& program,
                                                  const Dependencies& dependencies) {
  const std::unordered_map<int32_t, BufferId> buffer_of_input = buffers_of_inputs(program);
  std::unordered_map<BufferId, int> uses;  // after the last step
  for (const loop::ProgramOutput& output : program.outputs) ++uses[output.view.buffer];
  for (const loop::ProgramMutation& mutation : program.mutations) ++uses[mutation.value.buffer];
  std::unordered_map<BufferId, BufferId> result;
  for (const loop::ProgramMutation& mutation : program.mutations) {
    const auto input = buffer_of_input.find(mutation.input);
    if (input == buffer_of_input.end() || mutation.value.buffer == loop::kNoBuffer) continue;
    const BufferId value = mutation.value.buffer;
    if (uses[value] == 1 && can_be_input(program, mutation, input->second) &&
        dependencies.buffers[value].writers.size() == 1 && !dependencies.buffers[input->second].is_kept)
      result.emplace(value, input->second);
  }
  return result;
}

bool may_fail(const loop::Program& program, const Group& group) {
  return group.is_extern || std::ranges::any_of(group.steps, [&](StepId step) {
           const auto* computation = std::get_if<loop::Computation>(&program.steps[step]);
           return computation == nullptr ||
                  std::ranges::any_of(computation->body.insts, [](const loop::Inst& inst) {
                    return inst.op == loop::Op::BindIndex && inst.checked;
                  });
         });
}

class Finder {
 public:
  Finder(const loop::Program& program, const Dependencies& dependencies, IdVector<GroupId, Group>& groups)
      : program_(program),
        dependencies_(dependencies),
        groups_(groups),
        input_of_(candidates(program, dependencies)),
        group_of_(program.steps.size()),
        reads_(program.steps.size()),
        writes_(program.steps.size()),
        is_late_(groups.size(), false) {}

  DirectWrites run() {
    if (input_of_.empty()) return {{}, groups_.next_id()};
    index();
    for (const GroupId g : groups_.ids() | std::views::reverse) is_late_[g] = may_be_late(g);
    IdVector<GroupId, Group> first;
    std::vector<Group> late;
    for (const GroupId g : groups_.ids()) {
      if (!is_late_[g]) {
        first.add(std::move(groups_[g]));
        continue;
      }
      if (std::vector<StepId> early = early_members(g); !early.empty()) {
        std::erase_if(groups_[g].steps, [&](StepId step) { return std::ranges::binary_search(early, step); });
        Group& group = first[first.add(groups_[g])];
        group.steps = std::move(early);
      }
      late.push_back(std::move(groups_[g]));
    }
    DirectWrites result{std::move(input_of_), first.next_id()};
    groups_ = std::move(first);
    for (Group& group : late) groups_.add(std::move(group));
    return result;
  }

 private:
  const BufferUse& use_of(BufferId id) const { return dependencies_.buffers[id]; }
  const std::vector<BufferId>& reads(StepId step) const { return reads_[step]; }
  const std::vector<BufferId>& writes(StepId step) const { return writes_[step]; }
  GroupId group_of(StepId step) const { return group_of_[step]; }
  bool makes_contents(StepId step) const {
    return std::ranges::any_of(writes(step), [&](BufferId id) { return input_of_.contains(id); });
  }

  void index() {
    for (const GroupId g : groups_.ids())
      for (StepId step : groups_[g].steps) group_of_[step] = g;
    for (const BufferId id : dependencies_.buffers.ids()) {
      const BufferUse& use = use_of(id);
      for (StepId step : use.readers) reads_[step].push_back(id);
      for (StepId step : use.writers) writes_[step].push_back(id);
    }
  }

  // It makes contents of inputs, cannot fail, and nothing that is not late reads what it makes. Later groups
  // are decided before.
  bool may_be_late(GroupId g) const {
    const std::vector<StepId>& steps = groups_[g].steps;
    if (may_fail(program_, groups_[g]) ||
        std::ranges::none_of(steps, [&](StepId step) { return makes_contents(step); }))
      return false;
    return std::ranges::all_of(steps, [&](StepId step) {
      return std::ranges::all_of(writes(step), [&](BufferId id) {
        return use_of(id).writers.size() == 1 && std::ranges::all_of(use_of(id).readers, [&](StepId reader) {
                 return group_of(reader) == g || is_late_[group_of(reader)];
               });
      });
    });
  }

  // What a late group reads is held until the end. The members that it would be held for, where the others
  // need less: these may run where the group stood.
  std::vector<StepId> early_members(GroupId g) const {
    std::vector<StepId> early;
    std::unordered_set<StepId> late;
    std::unordered_set<BufferId> read_late;
    for (StepId step : groups_[g].steps) {
      const auto& before = dependencies_.before[step];
      const bool is_late =
          makes_contents(step) || std::ranges::any_of(before, [&](StepId needed) {
            return group_of(needed) == g ? late.contains(needed) : is_late_[group_of(needed)];
          });
      if (!is_late) {
        early.push_back(step);
        continue;
      }
      late.insert(step);
      read_late.insert(reads(step).begin(), reads(step).end());
    }
    double gain = 0;
    std::unordered_set<BufferId> seen;
    const auto add = [&](BufferId id, double sign) {
      const loop::Buffer& buffer = program_.buffers[id];
      if (buffer.kind == loop::BufferKind::Intermediate && !use_of(id).is_kept && seen.insert(id).second)
        gain += sign * estimated_bytes(buffer);
    };
    for (StepId step : early) {
      for (BufferId id : writes(step)) add(id, read_late.contains(id) ? -1 : 0);
      for (BufferId id : reads(step))
        if (!read_late.contains(id)) add(id, 1);
    }
    if (gain < kMemoryWorthAKernel) early.clear();
    return early;
  }

  const loop::Program& program_;
  const Dependencies& dependencies_;
  IdVector<GroupId, Group>& groups_;
  std::unordered_map<BufferId, BufferId> input_of_;
  IdVector<StepId, GroupId> group_of_;
  IdVector<StepId, std::vector<BufferId>> reads_;
  IdVector<StepId, std::vector<BufferId>> writes_;
  IdVector<GroupId, bool> is_late_;
};

}  // namespace

std::unordered_map<int32_t, BufferId> buffers_of_inputs(const loop::Program& program) {
  std::unordered_map<int32_t, BufferId> buffers;
  for (const BufferId id : program.buffers.ids())
    if (program.buffers[id].kind == loop::BufferKind::Input) buffers.emplace(program.buffers[id].source, id);
  return buffers;
}

bool can_be_input(const loop::Program& program, const loop::ProgramMutation& mutation, BufferId input) {
  const loop::Buffer& value = program.buffers[mutation.value.buffer];
  return is_whole(value, mutation.value) && fits(value, program.buffers[input]);
}

DirectWrites find_direct_writes(const loop::Program& program, const Dependencies& dependencies,
                                IdVector<GroupId, Group>& groups) {
  return Finder(program, dependencies, groups).run();
}

}  // namespace oxy::backend
