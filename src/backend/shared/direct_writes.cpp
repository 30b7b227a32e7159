#include "backend/shared/direct_writes.h"

#include <algorithm>
#include <unordered_set>

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
  std::unordered_map<int32_t, BufferId> buffer_of_input;
  for (size_t k = 0; k < program.buffers.size(); ++k)
    if (program.buffers[k].kind == loop::BufferKind::Input)
      buffer_of_input.emplace(program.buffers[k].source, static_cast<BufferId>(k));
  std::unordered_map<BufferId, int> uses;  // after the last step
  for (const loop::ProgramOutput& output : program.outputs) ++uses[output.view.buffer];
  for (const loop::ProgramMutation& mutation : program.mutations) ++uses[mutation.value.buffer];
  std::unordered_map<BufferId, BufferId> result;
  for (const loop::ProgramMutation& mutation : program.mutations) {
    const auto input = buffer_of_input.find(mutation.input);
    if (input == buffer_of_input.end() || mutation.value.buffer == loop::kNoBuffer) continue;
    const auto value = static_cast<size_t>(mutation.value.buffer);
    if (uses[mutation.value.buffer] == 1 && is_whole(program.buffers[value], mutation.value) &&
        fits(program.buffers[value], program.buffers[static_cast<size_t>(input->second)]) &&
        dependencies.buffers[value].writers.size() == 1 &&
        !dependencies.buffers[static_cast<size_t>(input->second)].is_kept)
      result.emplace(mutation.value.buffer, input->second);
  }
  return result;
}

bool may_fail(const loop::Program& program, const Group& group) {
  return group.is_extern || std::ranges::any_of(group.steps, [&](int32_t step) {
           const auto* computation =
               std::get_if<loop::Computation>(&program.steps[static_cast<size_t>(step)]);
           return computation == nullptr ||
                  std::ranges::any_of(computation->body.insts, [](const loop::Inst& inst) {
                    return inst.op == loop::Op::BindIndex && inst.checked;
                  });
         });
}

class Finder {
 public:
  Finder(const loop::Program& program, const Dependencies& dependencies, std::vector<Group>& groups)
      : program_(program),
        dependencies_(dependencies),
        groups_(groups),
        input_of_(candidates(program, dependencies)),
        group_of_(program.steps.size(), 0),
        reads_(program.steps.size()),
        writes_(program.steps.size()),
        is_late_(groups.size(), false) {}

  DirectWrites run() {
    if (input_of_.empty()) return {{}, groups_.size()};
    index();
    for (size_t g = groups_.size(); g-- > 0;) is_late_[g] = may_be_late(g);
    std::vector<Group> first, late;
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (!is_late_[g]) {
        first.push_back(std::move(groups_[g]));
        continue;
      }
      if (std::vector<int32_t> early = early_members(g); !early.empty()) {
        std::erase_if(groups_[g].steps,
                      [&](int32_t step) { return std::ranges::binary_search(early, step); });
        first.push_back(groups_[g]);
        first.back().steps = std::move(early);
      }
      late.push_back(std::move(groups_[g]));
    }
    DirectWrites result{std::move(input_of_), first.size()};
    groups_ = std::move(first);
    std::ranges::move(late, std::back_inserter(groups_));
    return result;
  }

 private:
  const BufferUse& use_of(BufferId id) const { return dependencies_.buffers[static_cast<size_t>(id)]; }
  const std::vector<BufferId>& reads(int32_t step) const { return reads_[static_cast<size_t>(step)]; }
  const std::vector<BufferId>& writes(int32_t step) const { return writes_[static_cast<size_t>(step)]; }
  size_t group_of(int32_t step) const { return group_of_[static_cast<size_t>(step)]; }
  bool makes_contents(int32_t step) const {
    return std::ranges::any_of(writes(step), [&](BufferId id) { return input_of_.contains(id); });
  }

  void index() {
    for (size_t g = 0; g < groups_.size(); ++g)
      for (int32_t step : groups_[g].steps) group_of_[static_cast<size_t>(step)] = g;
    for (size_t k = 0; k < dependencies_.buffers.size(); ++k) {
      const BufferUse& use = dependencies_.buffers[k];
      for (int32_t step : use.readers) reads_[static_cast<size_t>(step)].push_back(static_cast<BufferId>(k));
      for (int32_t step : use.writers) writes_[static_cast<size_t>(step)].push_back(static_cast<BufferId>(k));
    }
  }

  // It makes contents of inputs, cannot fail, and nothing that is not late reads what it makes. Later groups
  // are decided before.
  bool may_be_late(size_t g) const {
    const std::vector<int32_t>& steps = groups_[g].steps;
    if (may_fail(program_, groups_[g]) ||
        std::ranges::none_of(steps, [&](int32_t step) { return makes_contents(step); }))
      return false;
    return std::ranges::all_of(steps, [&](int32_t step) {
      return std::ranges::all_of(writes(step), [&](BufferId id) {
        return use_of(id).writers.size() == 1 && std::ranges::all_of(use_of(id).readers, [&](int32_t reader) {
                 return group_of(reader) == g || is_late_[group_of(reader)];
               });
      });
    });
  }

  // What a late group reads is held until the end. The members that it would be held for, where the others
  // need less: these may run where the group stood.
  std::vector<int32_t> early_members(size_t g) const {
    std::vector<int32_t> early;
    std::unordered_set<int32_t> late;
    std::unordered_set<BufferId> read_late;
    for (int32_t step : groups_[g].steps) {
      const auto& before = dependencies_.before[static_cast<size_t>(step)];
      const bool is_late =
          makes_contents(step) || std::ranges::any_of(before, [&](int32_t needed) {
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
      const loop::Buffer& buffer = program_.buffers[static_cast<size_t>(id)];
      if (buffer.kind == loop::BufferKind::Intermediate && !use_of(id).is_kept && seen.insert(id).second)
        gain += sign * estimated_bytes(buffer);
    };
    for (int32_t step : early) {
      for (BufferId id : writes(step)) add(id, read_late.contains(id) ? -1 : 0);
      for (BufferId id : reads(step))
        if (!read_late.contains(id)) add(id, 1);
    }
    if (gain < kMemoryWorthAKernel) early.clear();
    return early;
  }

  const loop::Program& program_;
  const Dependencies& dependencies_;
  std::vector<Group>& groups_;
  std::unordered_map<BufferId, BufferId> input_of_;
  std::vector<size_t> group_of_;               // by step
  std::vector<std::vector<BufferId>> reads_;   // by step
  std::vector<std::vector<BufferId>> writes_;  // by step
  std::vector<bool> is_late_;                  // by group
};

}  // namespace

DirectWrites find_direct_writes(const loop::Program& program, const Dependencies& dependencies,
                                std::vector<Group>& groups) {
  return Finder(program, dependencies, groups).run();
}

}  // namespace oxy::backend
