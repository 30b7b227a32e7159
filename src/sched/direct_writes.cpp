#include "sched/direct_writes.h"

#include <algorithm>

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

}  // namespace

DirectWrites find_direct_writes(const loop::Program& program, const Dependencies& dependencies,
                                std::vector<Group>& groups) {
  DirectWrites result{candidates(program, dependencies), groups.size()};
  if (result.input_of.empty()) return result;
  std::vector<size_t> group_of(program.steps.size(), 0);
  for (size_t g = 0; g < groups.size(); ++g)
    for (int32_t step : groups[g].steps) group_of[static_cast<size_t>(step)] = g;
  std::vector<std::vector<BufferId>> writes(groups.size());
  for (size_t k = 0; k < dependencies.buffers.size(); ++k)
    for (int32_t step : dependencies.buffers[k].writers)
      writes[group_of[static_cast<size_t>(step)]].push_back(static_cast<BufferId>(k));
  std::vector<bool> is_late(groups.size());
  for (size_t g = groups.size(); g-- > 0;) {
    const bool writes_input =
        std::ranges::any_of(writes[g], [&](BufferId id) { return result.input_of.contains(id); });
    is_late[g] =
        writes_input && !may_fail(program, groups[g]) && std::ranges::all_of(writes[g], [&](BufferId id) {
          const BufferUse& use = dependencies.buffers[static_cast<size_t>(id)];
          return use.writers.size() == 1 && std::ranges::all_of(use.readers, [&](int32_t step) {
                   const size_t reader = group_of[static_cast<size_t>(step)];
                   return reader == g || is_late[reader];
                 });
        });
  }
  std::vector<Group> first, late;
  for (size_t g = 0; g < groups.size(); ++g) (is_late[g] ? late : first).push_back(std::move(groups[g]));
  result.first_group = first.size();
  groups = std::move(first);
  std::ranges::move(late, std::back_inserter(groups));
  return result;
}

}  // namespace oxy::sched
