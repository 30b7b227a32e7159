// The steps of a frame with spans of them recorded (runtime/device/device_graph.h): a call replays each span
// instead of enqueuing its launches and extern calls one by one.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plan/step_order.h"
#include "runtime/device/device_graph.h"
#include "runtime/execution/frame.h"
#include "runtime/execution/prepared_plan.h"
#include "runtime/execution/replay_memory.h"
#include "runtime/execution/steps.h"

namespace oxy::runtime {

// By index: the steps that cannot be recorded, with the reasons.
using UnreplayableSteps = std::map<size_t, std::string>;

// The largest spans that are worth a graph: those that have several launches, or an extern call. Inputs that
// are given away are dropped behind the span that reads them last, and outputs get their memory before it. So
// a span ends where it has freed a share of all that the call frees: `freed_bytes`, by step, or empty.
std::vector<StepSpan> spans_to_replay(const PreparedPlan& plan, const UnreplayableSteps& unreplayable,
                                      std::span<const int64_t> freed_bytes = {});

class ReplayedSteps {
 public:
  // `plan` outlives it. The arena of its calls is the maker's.
  ReplayedSteps(const PreparedPlan& plan, std::shared_ptr<DeviceGraphMaker> maker);

  DeviceGraphMaker& maker() const { return *maker_; }
  const Arena& arena() const { return *arena_; }
  size_t span_count() const { return spans_.size(); }
  // Precondition: record() has succeeded. No kernel is launched and no operator called beside the graphs.
  bool is_all() const { return is_all_; }
  // Steps that are not recorded use windows on inputs: Frame::PartsOfInputs::Now.
  bool needs_parts_of_inputs() const { return needs_parts_of_inputs_; }

  // The steps of one call, whose frame has begun with arena(). The caller has locked the maker.
  // record() performs them one by one, and makes graphs of them. False: a step was met that cannot be
  // recorded, and is in `unreplayable` now; then nothing is recorded.
  bool record(Frame& frame, std::vector<at::Tensor>* owned, UnreplayableSteps& unreplayable);
  // Precondition: record() has succeeded.
  void run(Frame& frame, std::vector<at::Tensor>* owned);

 private:
  struct DrawingStep {
    size_t step = 0;
    uint64_t count = 0;  // that it takes from the generator
  };
  struct Span {
    StepSpan steps;
    std::unique_ptr<DeviceGraph> graph;
    // Buffers that begin and do not end in the span get memory of their own at each call: those of
    // `allocations`, by step, before it, and those of `results`, which operators return, in their place.
    std::vector<size_t> allocations;
    std::vector<plan::BufferId> results;
    std::vector<plan::BufferId> given;  // what exists before its first step, and is used
    std::vector<size_t> ends;           // steps that end buffers from before the span
    // Calls that draw, in their order. Those on the host are not recorded: a replay makes their numbers
    // first, and their results are among `given`.
    std::vector<DrawingStep> draws;
  };

  Span describe(StepSpan steps) const;
  std::vector<std::vector<plan::Access>> accesses_of(StepSpan steps) const;
  // False: a step is in `unreplayable` now, and the span has been performed all the same.
  bool record(Span& span, Frame& frame, std::vector<at::Tensor>* owned, UnreplayableSteps& unreplayable);
  // Told of what is enqueued.
  struct Observer {
    std::function<void(size_t step)> at_step;  // which comes next
    std::function<void(size_t result)> made;   // by Span::results; its operator has allocated it
    std::function<void(size_t step)> draw;     // performs a call that draws; empty: run_call()
  };
  std::vector<MadeResult> enqueue_at(std::span<const uintptr_t> addresses, Span& span, Frame& frame,
                                     const std::function<void(size_t)>& at_step);
  void note_unreplayable(size_t step, const std::string& reason, UnreplayableSteps& unreplayable) const;
  void enqueue(const Span& span, Frame& frame, const Observer& observer = {});
  at::Tensor new_result(plan::BufferId buffer) const;
  void place_temporary(const PreparedAllocation& allocation, Frame& frame) const;
  static bool is_in(const std::vector<Span>& spans, size_t step);
  bool uses_parts_of_inputs_outside(const std::vector<Span>& spans) const;
  void allocate(const Span& span, Frame& frame) const;
  void find_addresses(const Span& span, const Frame& frame);
  // Draws for the span: numbers that the host makes are where they are read.
  void draw(const Span& span, Frame& frame);
  const PreparedCall& call_at(size_t step) const { return std::get<PreparedCall>(plan_.steps[step]); }
  // By step: what is free behind it, as nobody but the call holds it.
  std::vector<int64_t> freed_bytes(const std::vector<at::Tensor>* owned) const;
  void end_buffers(const Span& span, Frame& frame, std::vector<at::Tensor>* owned) const;
  MovableMemory memory_of(plan::BufferId buffer, const Frame& frame) const {
    return {frame.address(buffer), bytes_of(plan_.buffers[buffer.index()].whole_spec)};
  }

  const PreparedPlan& plan_;
  ReplayMemory memory_;
  std::shared_ptr<DeviceGraphMaker> maker_;
  std::shared_ptr<const Arena> arena_;
  std::vector<Span> spans_;
  bool is_all_ = false;
  bool needs_parts_of_inputs_ = true;
  std::vector<uintptr_t> addresses_;          // of one replay
  std::vector<GeneratorPosition> positions_;  // of one replay: where operators on the device start to draw
};

}  // namespace oxy::runtime
