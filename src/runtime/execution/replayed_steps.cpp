#include "runtime/execution/replayed_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "torch_api/error_text.h"

namespace oxy::runtime {

namespace {

constexpr size_t kFewLaunches = 3;  // a replay with new addresses costs about as much as two launches
// Spans that end for the memory that they free: so many at most, each with so many bytes at least.
constexpr int64_t kFreeingSpans = 12, kLeastFreedBytes = int64_t{32} << 20;

template <class Fn>
void for_each_used(const PreparedStep& step, Fn fn) {
  if (const auto* launch = std::get_if<PreparedLaunch>(&step)) std::ranges::for_each(launch->buffers, fn);
  if (const auto* call = std::get_if<PreparedCall>(&step)) std::ranges::for_each(call->buffers, fn);
}

bool is_work(const PreparedStep& step) {
  return std::holds_alternative<PreparedLaunch>(step) || std::holds_alternative<PreparedCall>(step);
}

bool ends_buffer(const PreparedStep& step) {
  return std::holds_alternative<PreparedFree>(step) || std::holds_alternative<PreparedRelease>(step);
}

bool is_worth(const PreparedPlan& plan, StepSpan span) {
  size_t launches = 0;
  for (size_t i = span.begin; i < span.end; ++i) {
    const auto* call = std::get_if<PreparedCall>(&plan.steps[i]);
    if (call != nullptr && call->draws != Draws::OnHost) return true;
    launches += static_cast<size_t>(std::holds_alternative<PreparedLaunch>(plan.steps[i]));
  }
  return launches >= kFewLaunches;
}

}  // namespace

std::vector<StepSpan> spans_to_replay(const PreparedPlan& plan, const UnreplayableSteps& unreplayable,
                                      std::span<const int64_t> freed_bytes) {
  const int64_t share = std::max(
      kLeastFreedBytes, std::accumulate(freed_bytes.begin(), freed_bytes.end(), int64_t{0}) / kFreeingSpans);
  std::vector<StepSpan> result;
  StepSpan span;  // ends behind the last launch or call, and behind what is freed there
  bool is_open = false;
  int64_t freed = 0;  // by steps of the span
  const auto close = [&] {
    if (is_open && is_worth(plan, span)) result.push_back(span);
    is_open = false;
    freed = 0;
  };
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    if (!freed_bytes.empty()) freed += freed_bytes[i];
    if (!is_work(plan.steps[i])) {
      if (is_open && span.end == i && ends_buffer(plan.steps[i])) span.end = i + 1;
      continue;
    }
    if (freed >= share) close();
    const auto* call = std::get_if<PreparedCall>(&plan.steps[i]);
    if ((call != nullptr && !call->is_replayable) || unreplayable.contains(i)) {
      close();
      continue;
    }
    if (!is_open) span.begin = i;
    is_open = true;
    span.end = i + 1;
  }
  close();
  return result;
}

ReplayedSteps::ReplayedSteps(const PreparedPlan& plan, std::shared_ptr<DeviceGraphMaker> maker)
    : plan_(plan),
      memory_(replay_memory(plan)),
      maker_(std::move(maker)),
      arena_(maker_->arena(memory_.arena_bytes)) {}

// Operators stay where they are, and launches between two of them run side by side where their memory allows
// it: operators have memory that the plan does not know of, and a graph with many ways through it takes the
// host long. Memory that is allocated on the way may lie where something else has lain, and counts as one.
std::vector<std::vector<plan::Access>> ReplayedSteps::accesses_of(StepSpan steps) const {
  constexpr int32_t kArena = -1, kAllocated = -2, kOperators = -3;
  std::vector<std::vector<plan::Access>> result(steps.end - steps.begin);
  for (size_t i = steps.begin; i < steps.end; ++i) {
    if (!is_work(plan_.steps[i])) continue;
    std::vector<plan::Access>& accesses = result[i - steps.begin];
    const auto* launch = std::get_if<PreparedLaunch>(&plan_.steps[i]);
    accesses.push_back({kOperators, 0, 1, launch == nullptr});
    if (launch == nullptr) continue;
    for (const plan::BufferId id : launch->buffers) {
      const bool is_written = std::ranges::find(launch->written, id) != launch->written.end();
      const plan::Storage storage = plan_.storages[id.index()];
      if (storage == plan::Storage::Extern) {
        accesses.push_back({kAllocated, 0, 1, true});
      } else if (storage == plan::Storage::Arena || storage == plan::Storage::Temporary) {
        const int64_t begin = memory_.places[id.index()].value_or(plan_.arena_offsets[id.index()]);
        const int64_t bytes = bytes_of(plan_.buffers[id.index()].whole_spec);
        accesses.push_back({kArena, begin, begin + bytes, is_written});
      } else {
        accesses.push_back({id.number(), 0, 1, is_written});
      }
    }
  }
  return result;
}

ReplayedSteps::Span ReplayedSteps::describe(StepSpan steps) const {
  Span span;
  span.steps = steps;
  std::set<plan::BufferId> used, freed;
  for (size_t i = steps.begin; i < steps.end; ++i) {
    for_each_used(plan_.steps[i], [&](plan::BufferId id) { used.insert(id); });
    if (const auto* free = std::get_if<PreparedFree>(&plan_.steps[i])) freed.insert(free->buffer);
  }
  std::set<plan::BufferId> made;  // by the recorded work itself
  for (size_t i = steps.begin; i < steps.end; ++i) {
    const PreparedStep& step = plan_.steps[i];
    if (const auto* call = std::get_if<PreparedCall>(&step)) {
      if (call->draws != Draws::No) span.draws.push_back({i, 0});
      for (const plan::BufferId id : call->returned) {
        if (call->draws == Draws::OnHost) continue;
        made.insert(id);
        if (!freed.contains(id)) span.results.push_back(id);
      }
    } else if (const auto* allocation = std::get_if<PreparedAllocation>(&step)) {
      if (freed.contains(allocation->buffer))
        made.insert(allocation->buffer);
      else
        span.allocations.push_back(i);
    } else if (const auto* free = std::get_if<PreparedFree>(&step)) {
      if (!made.contains(free->buffer)) span.ends.push_back(i);
    } else if (std::holds_alternative<PreparedRelease>(step)) {
      span.ends.push_back(i);
    }
  }
  for (const plan::BufferId id : used) {
    const plan::Storage storage = plan_.storages[id.index()];
    if (storage != plan::Storage::Arena && storage != plan::Storage::Constant && !made.contains(id))
      span.given.push_back(id);
  }
  return span;
}

void ReplayedSteps::allocate(const Span& span, Frame& frame) const {
  for (const size_t i : span.allocations) frame.allocate(std::get<PreparedAllocation>(plan_.steps[i]));
}

void ReplayedSteps::end_buffers(const Span& span, Frame& frame, std::vector<at::Tensor>* owned) const {
  for (const size_t i : span.ends) {
    if (const auto* release = std::get_if<PreparedRelease>(&plan_.steps[i]))
      run_release(*release, frame, owned);
    else
      frame.drop(std::get<PreparedFree>(plan_.steps[i]).buffer);
  }
}

at::Tensor ReplayedSteps::new_result(plan::BufferId buffer) const {
  return plan_.runtime->empty(plan_.buffers[buffer.index()].whole_spec, plan_.device_of(buffer).index());
}

void ReplayedSteps::place_temporary(const PreparedAllocation& allocation, Frame& frame) const {
  if (const std::optional<int64_t> place = memory_.places[allocation.buffer.index()])
    frame.place(allocation.buffer, static_cast<char*>(arena_->memory.get()) + *place);
  else
    frame.allocate(allocation);
}

// What a graph of the span stands for.
void ReplayedSteps::enqueue(const Span& span, Frame& frame, const Observer& observer) {
  for (size_t i = span.steps.begin; i < span.steps.end; ++i) {
    if (observer.at_step) observer.at_step(i);
    const PreparedStep& step = plan_.steps[i];
    if (const auto* kernel = std::get_if<PreparedLaunch>(&step)) {
      run_launch(*kernel, frame);
    } else if (const auto* call = std::get_if<PreparedCall>(&step)) {
      if (observer.draw && call->draws != Draws::No)
        observer.draw(i);
      else
        run_call(*call, frame);
      for (size_t r = 0; observer.made && r < span.results.size(); ++r)
        if (std::ranges::find(call->returned, span.results[r]) != call->returned.end()) observer.made(r);
    } else if (const auto* allocation = std::get_if<PreparedAllocation>(&step)) {
      if (std::ranges::find(span.allocations, i) == span.allocations.end())
        place_temporary(*allocation, frame);
    } else if (const auto* free = std::get_if<PreparedFree>(&step)) {
      if (std::ranges::find(span.ends, i) == span.ends.end()) frame.drop(free->buffer);
    }
  }
}

std::vector<MadeResult> ReplayedSteps::enqueue_at(std::span<const uintptr_t> addresses, Span& span,
                                                  Frame& frame, const std::function<void(size_t)>& at_step) {
  const size_t given = span.given.size();
  for (size_t i = 0; i < given; ++i) {
    const plan::BufferId id = span.given[i];
    const bool is_missing = plan_.storages[id.index()] == plan::Storage::Extern && !frame.whole(id).defined();
    if (is_missing || addresses[i] != frame.address(id))
      frame.place(id, reinterpret_cast<void*>(addresses[i]));
  }
  std::vector<MadeResult> results;
  // Nothing is performed, so the memory of a result is needed no longer than until its address is known.
  const auto made = [&](size_t r) {
    const plan::BufferId id = span.results[r];
    results.push_back({given + r, frame.address(id), maker_->enqueued()});
    frame.place(id, reinterpret_cast<void*>(addresses[given + r]));
  };
  const auto draw = [&](size_t step) {
    const PreparedCall& call = call_at(step);
    if (call.draws == Draws::OnHost) return;
    maker_->draw([&] { call.invoke(frame.tensors()); });
    for (const plan::BufferId id : call.returned) frame.adopt(id);
  };
  enqueue(span, frame, {at_step, made, draw});
  return results;
}

// What is true of a call is likely to be true of the others of its operator: each attempt to record costs
// time.
void ReplayedSteps::note_unreplayable(size_t step, const std::string& reason,
                                      UnreplayableSteps& unreplayable) const {
  const auto* call = std::get_if<PreparedCall>(&plan_.steps[step]);
  if (call == nullptr) {
    unreplayable[step] = reason;
  } else {
    for (size_t i = 0; i < plan_.steps.size(); ++i)
      if (const auto* other = std::get_if<PreparedCall>(&plan_.steps[i]); other && other->op == call->op)
        unreplayable.try_emplace(i, fmt::format("{}: {}", call->op->name, reason));
  }
  log(Channel::DeviceGraphs, "step {} of {} cannot be recorded: {}", step, plan_.steps.size(),
      unreplayable.at(step));
}

bool ReplayedSteps::record(Span& span, Frame& frame, std::vector<at::Tensor>* owned,
                           UnreplayableSteps& unreplayable) {
  allocate(span, frame);
  const Frame::Tables before = frame.tables();
  std::vector<at::Tensor> results;  // in memory that is not the graphs'
  for (const plan::BufferId id : span.results) results.push_back(new_result(id));
  maker_->warm_up([&] {
    frame.begin_launches();
    const auto made = [&](size_t r) {
      results[r].copy_(frame.whole(span.results[r]));
      frame.place(span.results[r], results[r]);
    };
    const auto draw = [&, next = span.draws.begin()](size_t step) mutable {
      const uint64_t before = generator_position(plan_.device()).offset;
      run_call(call_at(step), frame);
      next++->count = generator_position(plan_.device()).offset - before;
    };
    enqueue(span, frame, {.at_step = {}, .made = made, .draw = draw});
  });
  results.clear();
  const Frame::Tables after = frame.tables();
  std::vector<std::pair<size_t, size_t>> begins;  // steps with their first nodes, of the last pass
  const std::vector<std::vector<size_t>> order = plan::predecessors(accesses_of(span.steps));
  const auto at_step = [&](size_t step) {
    begins.emplace_back(step, maker_->enqueued());
    const size_t part = step - span.steps.begin;
    if (is_work(plan_.steps[step])) maker_->begin_part(part, order[part]);
  };
  std::vector<MovableMemory> memories;
  for (const auto* buffers : {&span.given, &span.results})
    for (const plan::BufferId id : *buffers) memories.push_back(memory_of(id, frame));
  std::vector<uint64_t> counts;
  for (const DrawingStep& drawing : span.draws)
    if (call_at(drawing.step).draws == Draws::OnDevice) counts.push_back(drawing.count);
  std::string reason;
  bool is_of_draws = false;
  try {
    span.graph = maker_->record(memories, counts, [&](std::span<const uintptr_t> addresses) {
      frame.restore(before);
      frame.begin_launches();
      begins.clear();
      return enqueue_at(addresses, span, frame, at_step);
    });
  } catch (const NotReplayable& error) {
    reason = error.reason;
    is_of_draws = error.is_of_draws;
    while (begins.size() > 1 && error.node && begins.back().second > *error.node) begins.pop_back();
  } catch (const std::exception& error) {  // what a step throws that may not be recorded
    reason = torch_api::error_text(error);
  }
  frame.restore(after);
  frame.begin_launches();
  end_buffers(span, frame, owned);
  if (reason.empty()) return true;
  for (const DrawingStep& drawing : span.draws)
    if (is_of_draws && call_at(drawing.step).draws == Draws::OnDevice)
      note_unreplayable(drawing.step, reason, unreplayable);
  if (is_of_draws) return false;
  note_unreplayable(begins.empty() ? span.steps.begin : begins.back().first, reason, unreplayable);
  return false;
}

bool ReplayedSteps::is_in(const std::vector<Span>& spans, size_t step) {
  return std::ranges::any_of(
      spans, [&](const Span& span) { return step >= span.steps.begin && step < span.steps.end; });
}

bool ReplayedSteps::uses_parts_of_inputs_outside(const std::vector<Span>& spans) const {
  const auto is_part_of_input = [&](plan::BufferId id) {
    return plan_.storages[id.index()] == plan::Storage::Input && !plan_.buffers[id.index()].parts.empty();
  };
  for (size_t i = 0; i < plan_.steps.size(); ++i)
    if (const auto* call = std::get_if<PreparedCall>(&plan_.steps[i]))
      if (!is_in(spans, i) && std::ranges::any_of(call->buffers, is_part_of_input)) return true;
  const auto is_read = [&](const PreparedOutput& output) {
    return output.kind == graph::OutputKind::Value && is_part_of_input(output.buffer);
  };
  return !plan_.mutations.empty() || std::ranges::any_of(plan_.outputs, is_read);
}

std::vector<int64_t> ReplayedSteps::freed_bytes(const std::vector<at::Tensor>* owned) const {
  std::vector<int64_t> result(plan_.steps.size());
  for (size_t i = 0; owned != nullptr && i < plan_.steps.size(); ++i) {
    const auto* release = std::get_if<PreparedRelease>(&plan_.steps[i]);
    if (release == nullptr) continue;
    const at::Tensor& input = (*owned)[static_cast<size_t>(release->input)];
    if (input.defined() && input.has_storage() && input.storage().use_count() == 1)
      result[i] = static_cast<int64_t>(input.storage().nbytes());
  }
  return result;
}

bool ReplayedSteps::record(Frame& frame, std::vector<at::Tensor>* owned, UnreplayableSteps& unreplayable) {
  const std::shared_ptr<void> memory = maker_->recording_memory();
  std::vector<Span> spans;
  size_t next = 0;  // the first step that was not performed
  bool is_recorded = true;
  for (const StepSpan& steps : spans_to_replay(plan_, unreplayable, freed_bytes(owned))) {
    run_steps(plan_, {next, steps.begin}, frame, owned);
    next = steps.end;
    is_recorded = record(spans.emplace_back(describe(steps)), frame, owned, unreplayable);
    if (!is_recorded) break;
  }
  run_steps(plan_, {next, plan_.steps.size()}, frame, owned);
  if (!is_recorded) return false;
  needs_parts_of_inputs_ = uses_parts_of_inputs_outside(spans);
  is_all_ = true;
  for (size_t i = 0; i < plan_.steps.size(); ++i)
    is_all_ = is_all_ && (!is_work(plan_.steps[i]) || is_in(spans, i));
  spans_ = std::move(spans);
  log(Channel::DeviceGraphs, "{} CUDA graphs of {} steps", spans_.size(), plan_.steps.size());
  return true;
}

void ReplayedSteps::find_addresses(const Span& span, const Frame& frame) {
  addresses_.clear();
  for (const plan::BufferId id : span.given) addresses_.push_back(frame.address(id));
  for (const plan::BufferId id : span.results) addresses_.push_back(frame.address(id));
}

void ReplayedSteps::draw(const Span& span, Frame& frame) {
  positions_.clear();
  for (const DrawingStep& drawing : span.draws) {
    const PreparedCall& call = call_at(drawing.step);
    if (call.draws == Draws::OnHost)
      run_call(call, frame);
    else
      positions_.push_back(advance_generator(plan_.device(), drawing.count));
  }
  if (!span.draws.empty()) find_addresses(span, frame);
}

void ReplayedSteps::run(Frame& frame, std::vector<at::Tensor>* owned) {
  size_t next = 0;
  for (const Span& span : spans_) {
    run_steps(plan_, {next, span.steps.begin}, frame, owned);
    next = span.steps.end;
    allocate(span, frame);
    for (const plan::BufferId id : span.results) frame.place(id, new_result(id));
    find_addresses(span, frame);
    if (span.graph->fits(addresses_)) {
      draw(span, frame);
      span.graph->replay(addresses_, positions_);
    } else {
      frame.make_parts_of_inputs();
      enqueue(span, frame);
    }
    end_buffers(span, frame, owned);
  }
  run_steps(plan_, {next, plan_.steps.size()}, frame, owned);
}

}  // namespace oxy::runtime
