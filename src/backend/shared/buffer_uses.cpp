#include "backend/shared/buffer_uses.h"

#include "backend/shared/dependencies.h"

namespace oxy::backend {

using loop::BufferId;
using loop::Computation;
using loop::kNoBuffer;
using loop::StepId;

IdVector<BufferId, ProgramUse> uses_of(const loop::Program& program) {
  IdVector<BufferId, ProgramUse> uses(program.buffers.size());
  const auto read = [&](BufferId id, StepId step) {
    if (id != kNoBuffer && (uses[id].readers.empty() || uses[id].readers.back() != step))
      uses[id].readers.push_back(step);
  };
  const auto write = [&](BufferId id, StepId step) {
    if (id != kNoBuffer) uses[id].writers.push_back(step);
  };
  for (const StepId step : program.steps.ids()) {
    if (const auto* computation = std::get_if<Computation>(&program.steps[step])) {
      for (const loop::Inst& inst : computation->body.insts)
        if (inst.op == loop::Op::Load) read(inst.buffer, step);
      for (const loop::Store& store : computation->stores) write(store.buffer, step);
    } else {
      const auto& call = std::get<loop::ExternCall>(program.steps[step]);
      for_each_view(call, [&](const loop::BufferView& view) { read(view.buffer, step); });
      for (const BufferId id : call.outputs) write(id, step);
    }
  }
  for (const loop::ProgramOutput& output : program.outputs)
    if (output.view.buffer != kNoBuffer) ++uses[output.view.buffer].results;
  for (const loop::ProgramMutation& mutation : program.mutations)
    if (mutation.value.buffer != kNoBuffer) ++uses[mutation.value.buffer].results;
  return uses;
}

}  // namespace oxy::backend
