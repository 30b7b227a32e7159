// A fused group on its way to a kernel, as a loop nest.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/nests/loop_nest.h"

namespace oxy::backend {

struct NestDraft : KernelDraft {
  // `program` outlives the draft.
  NestDraft(const loop::Program& program, LoopNest nest) : program(program), nest(std::move(nest)) {}

  bool has_work() const override { return !nest.phases.empty(); }
  void for_each_buffer(const std::function<void(BufferId, bool)>& fn) const override;
  std::vector<std::pair<BufferId, BufferId>> write_in_place(
      const Test& dies, const Test& is_new,
      const std::function<bool(BufferId, BufferId)>& same_size) override;
  std::string print() const override;

  const loop::Program& program;
  LoopNest nest;
};

}  // namespace oxy::backend
