// The buffers that a step of a plan reads or writes.
#pragma once

#include <set>

#include "plan/plan.h"

namespace oxy::plan {

// Calls fn(BufferId) for each, one that is named twice twice.
template <class Fn>
void for_each_buffer(const Step& step, Fn fn) {
  if (const auto* launch = std::get_if<Launch>(&step))
    for (const BufferId id : launch->buffers) fn(id);
  if (const auto* call = std::get_if<Call>(&step)) {
    for (const CallArgument& argument : call->args) {
      if (const auto* view = std::get_if<View>(&argument)) fn(view->buffer);
      if (const auto* views = std::get_if<std::vector<std::optional<View>>>(&argument))
        for (const auto& view : *views)
          if (view) fn(view->buffer);
    }
    for (const BufferId id : call->outputs)
      if (id != kNoBuffer) fn(id);
  }
}

// The inputs whose elements a step or an output reads.
inline std::set<int32_t> inputs_read(const Plan& plan) {
  std::set<int32_t> inputs;
  const auto read = [&](BufferId id) {
    if (id != kNoBuffer && plan.buffers[id].storage == Storage::Input) inputs.insert(plan.buffers[id].slot);
  };
  for (const Step& step : plan.steps) for_each_buffer(step, read);
  for (const Output& output : plan.outputs)
    if (output.kind == graph::OutputKind::Value) read(output.view.buffer);
  return inputs;
}

}  // namespace oxy::plan
