#include "sched/direct_writes.h"

#include <algorithm>
#include <functional>
#include <unordered_set>

namespace oxy::sched {
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

double bytes(const loop::Program& program, BufferId id) {
  const loop::Buffer& buffer = program.buffers[static_cast<size_t>(id)];
  if (!buffer.strides) return 0;
  return static_cast<double>(codegen::estimate(span_elements(buffer))) *
         static_cast<double>(item_size(buffer.dtype));
}

// Memory for which a kernel of its own pays.
constexpr double kHeldBytes = 256 * 1024;

// What a late group reads is held until the end. The members that it would be held for, where the others need
// less: these may run where the group stood.
std::vector<int32_t> early_members(const loop::Program& program, const Dependencies& dependencies,
                                   const Group& group, const std::vector<std::vector<BufferId>>& reads,
                                   const std::vector<std::vector<BufferId>>& writes,
                                   const DirectWrites& direct,
                                   const std::function<bool(int32_t)>& is_in_other_late_group) {
  std::vector<int32_t> early;
  std::unordered_set<int32_t> late;
  std::unordered_set<BufferId> read_late;
  for (int32_t step : group.steps) {
    const bool is_late =
        std::ranges::any_of(writes[static_cast<size_t>(step)],
                            [&](BufferId id) { return direct.input_of.contains(id); }) ||
        std::ranges::any_of(dependencies.before[static_cast<size_t>(step)], [&](int32_t needed) {
          return late.contains(needed) || is_in_other_late_group(needed);
        });
    if (!is_late) {
      early.push_back(step);
      continue;
    }
    late.insert(step);
    for (BufferId id : reads[static_cast<size_t>(step)]) read_late.insert(id);
  }
  double gain = 0;
  std::unordered_set<BufferId> seen;
  const auto is_ours = [&](BufferId id) {
    return program.buffers[static_cast<size_t>(id)].kind == loop::BufferKind::Intermediate &&
           !dependencies.buffers[static_cast<size_t>(id)].is_kept && seen.insert(id).second;
  };
  for (int32_t step : early) {
    for (BufferId id : writes[static_cast<size_t>(step)])
      if (is_ours(id) && read_late.contains(id)) gain -= bytes(program, id);
    for (BufferId id : reads[static_cast<size_t>(step)])
      if (is_ours(id) && !read_late.contains(id)) gain += bytes(program, id);
  }
  if (gain < kHeldBytes) early.clear();
  return early;
}

}  // namespace

DirectWrites find_direct_writes(const loop::Program& program, const Dependencies& dependencies,
                                std::vector<Group>& groups) {
  DirectWrites result{candidates(program, dependencies), groups.size()};
  if (result.input_of.empty()) return result;
  std::vector<size_t> group_of(program.steps.size(), 0);
  for (size_t g = 0; g < groups.size(); ++g)
    for (int32_t step : groups[g].steps) group_of[static_cast<size_t>(step)] = g;
  std::vector<std::vector<BufferId>> reads(program.steps.size()), writes(program.steps.size());
  for (size_t k = 0; k < dependencies.buffers.size(); ++k) {
    const BufferUse& use = dependencies.buffers[k];
    for (int32_t step : use.readers) reads[static_cast<size_t>(step)].push_back(static_cast<BufferId>(k));
    for (int32_t step : use.writers) writes[static_cast<size_t>(step)].push_back(static_cast<BufferId>(k));
  }
  const auto any_write = [&](const Group& group, auto&& condition) {
    return std::ranges::any_of(group.steps, [&](int32_t step) {
      return std::ranges::any_of(writes[static_cast<size_t>(step)], condition);
    });
  };
  std::vector<bool> is_late(groups.size());
  for (size_t g = groups.size(); g-- > 0;) {
    const bool writes_input = any_write(groups[g], [&](BufferId id) { return result.input_of.contains(id); });
    is_late[g] = writes_input && !may_fail(program, groups[g]) && !any_write(groups[g], [&](BufferId id) {
                   const BufferUse& use = dependencies.buffers[static_cast<size_t>(id)];
                   return use.writers.size() != 1 || std::ranges::any_of(use.readers, [&](int32_t step) {
                            const size_t reader = group_of[static_cast<size_t>(step)];
                            return reader != g && !is_late[reader];
                          });
                 });
  }
  std::vector<Group> first, late;
  for (size_t g = 0; g < groups.size(); ++g) {
    if (!is_late[g]) {
      first.push_back(std::move(groups[g]));
      continue;
    }
    Group group = std::move(groups[g]);
    std::vector<int32_t> early =
        early_members(program, dependencies, group, reads, writes, result, [&](int32_t step) {
          const size_t other = group_of[static_cast<size_t>(step)];
          return other != g && is_late[other];
        });
    if (!early.empty()) {
      std::erase_if(group.steps, [&](int32_t step) { return std::ranges::binary_search(early, step); });
      first.push_back(group);
      first.back().steps = std::move(early);
    }
    late.push_back(std::move(group));
  }
  result.first_group = first.size();
  groups = std::move(first);
  std::ranges::move(late, std::back_inserter(groups));
  return result;
}

}  // namespace oxy::sched
