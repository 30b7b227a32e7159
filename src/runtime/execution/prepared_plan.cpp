#include "runtime/execution/prepared_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "aten/opaque.h"
#include "base/error.h"
#include "plan/step_buffers.h"
#include "runtime/extern/general.h"
#include "runtime/values/convert.h"
#include "runtime/values/host.h"

namespace oxy::runtime {

namespace {

constexpr int64_t kMostSlabBytes = int64_t{256} << 10;  // of an output that shares a block

std::vector<int64_t> values(const std::vector<Expr>& expressions) {
  std::vector<int64_t> result;
  result.reserve(expressions.size());
  for (const Expr& expr : expressions) result.push_back(expr.constant());
  return result;
}

class Preparation {
 public:
  Preparation(const plan::Plan& plan, const backend::KernelLibrary* kernels, size_t constant_count)
      : plan_(plan), kernels_(kernels), constant_count_(constant_count) {}

  PreparedPlan prepare(size_t visible_outputs) {
    find_device_of_buffers();
    add_buffers();
    find_lives();
    for (size_t n = 0; n < plan_.steps.size(); ++n) {
      for (const plan::BufferId id : begins_[n]) result_.steps.emplace_back(PreparedAllocation{id});
      std::visit([&](const auto& s) { add(s); }, plan_.steps[n]);
      for (const plan::BufferId id : ends_[n])
        result_.steps.emplace_back(PreparedRelease{id, plan_.buffers[id].slot});
    }
    for (const plan::Output& output : plan_.outputs) add(output);
    for (const plan::Mutation& mutation : plan_.mutations) {
      const bool reads_input = storage(mutation.value.buffer) == plan::Storage::Input;
      const bool is_done = reads_input && plan_.buffers[mutation.value.buffer].slot == mutation.input;
      if (is_done) {
        for (PreparedInput& input : result_.inputs)
          if (input.input == mutation.input) input.is_written = true;
        result_.mutations.push_back({mutation.input, kNoSlot, false, true, mutation.is_seen});
      } else {
        result_.mutations.push_back(
            {mutation.input, slot_of(mutation.value), reads_input, false, mutation.is_seen});
      }
    }
    collect_transient();
    share_slabs(visible_outputs);
    return std::move(result_);
  }

 private:
  // A plan without buffers moves nothing, and runs anywhere.
  void find_device_of_buffers() {
    result_.device = c10::Device(kHost);
    if (!plan_.buffers.empty()) result_.device = device_to_torch(plan_.buffers.front().device);
    for (const plan::Buffer& buffer : plan_.buffers)
      if (device_to_torch(buffer.device) != result_.device)
        throw Unsupported(fmt::format("tensors on {} and {}", result_.device.str(), str(buffer.device)),
                          "a plan runs on one device");
    result_.runtime = &device_runtime(result_.device.type());
  }

  void share_slabs(size_t visible_outputs) {
    std::vector<bool> is_private(plan_.buffers.size());
    for (size_t i = 0; i < is_private.size(); ++i)
      is_private[i] = result_.storages[i] == plan::Storage::Output;  // they live on together
    const auto show = [&](const plan::Output& output) {
      if (output.kind == graph::OutputKind::Value) is_private[output.view.buffer.index()] = false;
    };
    for (size_t i = 0; i < plan_.outputs.size() && i < visible_outputs; ++i) {
      show(plan_.outputs[i]);
      if (plan_.outputs[i].kind == graph::OutputKind::OutputAlias)
        show(plan_.outputs[static_cast<size_t>(plan_.outputs[i].alias)]);
    }
    int64_t left = 0;
    for (size_t n = result_.steps.size(); n-- > 0;) {
      auto* allocation = std::get_if<PreparedAllocation>(&result_.steps[n]);
      if (allocation == nullptr || !is_private[allocation->buffer.index()]) continue;
      const int64_t bytes = bytes_of(result_.buffers[allocation->buffer.index()].whole_spec);
      if (bytes == 0 || bytes >= kMostSlabBytes) continue;
      left += (bytes + 63) / 64 * 64;
      allocation->slab_bytes = left;
    }
  }

  plan::Storage storage(plan::BufferId id) const { return result_.storages.at(id.index()); }
  bool is_allocated(plan::BufferId id) const {
    return storage(id) == plan::Storage::Output || storage(id) == plan::Storage::Temporary;
  }

  void add_buffers() {
    for (const plan::BufferId id : plan_.buffers.ids()) {
      const plan::Buffer& buffer = plan_.buffers[id];
      BufferSlots slots;
      slots.whole_spec = {dtype_to_torch(buffer.dtype), values(buffer.sizes), values(buffer.strides), 0};
      result_.buffers.push_back(std::move(slots));
      result_.storages.push_back(buffer.storage);
      result_.arena_offsets.push_back(buffer.storage == plan::Storage::Arena ? buffer.arena_offset.constant()
                                                                             : 0);
      const bool is_constant = buffer.storage == plan::Storage::Constant;
      result_.constants.push_back(is_constant ? buffer.slot : -1);
      if (is_constant)
        check(static_cast<size_t>(buffer.slot) < constant_count_,
              "a plan names a constant that was not given");
      if (is_allocated(id)) whole_slot(id);
    }
    result_.arena_bytes = plan_.arena_bytes.constant();
  }

  // Outputs and temporaries begin to live at the first step that touches them, inputs end after the last one.
  void find_lives() {
    const size_t count = plan_.buffers.size();
    std::vector<int64_t> first(count, -1), last(count, -1);
    for (size_t n = 0; n < plan_.steps.size(); ++n) {
      plan::for_each_buffer(plan_.steps[n], [&](plan::BufferId id) {
        const size_t index = id.index();
        if (first[index] < 0) first[index] = static_cast<int64_t>(n);
        last[index] = static_cast<int64_t>(n);
      });
    }
    std::vector<bool> stays(count, false);
    std::vector<bool> input_stays(static_cast<size_t>(plan_.input_count), false);
    for (const plan::Output& output : plan_.outputs) {
      if (output.kind == graph::OutputKind::Value) stays[output.view.buffer.index()] = true;
      if (output.kind == graph::OutputKind::InputAlias) input_stays[static_cast<size_t>(output.alias)] = true;
    }
    for (const plan::Mutation& mutation : plan_.mutations) {
      stays[mutation.value.buffer.index()] = true;
      input_stays[static_cast<size_t>(mutation.input)] = true;
    }
    const auto is_used = [&](size_t i) { return last[i] >= 0 || stays[i]; };
    begins_.resize(plan_.steps.size());
    ends_.resize(plan_.steps.size());
    for (const plan::BufferId id : plan_.buffers.ids()) {
      const plan::Buffer& buffer = plan_.buffers[id];
      const size_t i = id.index();
      if (is_allocated(id)) {
        if (first[i] < 0)
          result_.allocated.push_back(id);
        else
          begins_[static_cast<size_t>(first[i])].push_back(id);
      }
      if (buffer.storage == plan::Storage::Input && is_used(i)) result_.inputs.push_back({id, buffer.slot});
      if (buffer.storage == plan::Storage::Input && last[i] >= 0 && !stays[i] &&
          !input_stays[static_cast<size_t>(buffer.slot)])
        ends_[static_cast<size_t>(last[i])].push_back(id);
    }
  }

  Slot new_slot(TensorSpec spec) {
    result_.specs.push_back(std::move(spec));
    return static_cast<Slot>(result_.specs.size() - 1);
  }

  Slot whole_slot(plan::BufferId id) {
    BufferSlots& slots = result_.buffers.at(id.index());
    if (slots.whole == kNoSlot) slots.whole = new_slot(slots.whole_spec);
    return slots.whole;
  }

  Slot slot_of(const plan::View& view) {
    BufferSlots& slots = result_.buffers.at(view.buffer.index());
    TensorSpec spec{slots.whole_spec.dtype, values(view.sizes), values(view.strides), view.offset.constant()};
    const auto same = [](const TensorSpec& a, const TensorSpec& b) {
      return a.offset == b.offset && a.sizes == b.sizes && a.strides == b.strides;
    };
    if (same(spec, slots.whole_spec)) return whole_slot(view.buffer);
    for (const Slot part : slots.parts)
      if (same(spec, result_.specs[static_cast<size_t>(part)])) return part;
    if (storage(view.buffer) == plan::Storage::Extern) whole_slot(view.buffer);
    const Slot slot = new_slot(std::move(spec));
    slots.parts.push_back(slot);
    return slot;
  }

  void add(const plan::Launch& launch) {
    check(kernels_ != nullptr, "a plan with kernels was given no kernel library");
    PreparedLaunch step;
    const backend::KernelFunction function = kernels_->function(launch.kernel.index());
    step.buffers = launch.buffers;
    step.sizes = values(launch.sizes);
    bool has_work = false;
    if (const auto* slices = std::get_if<plan::Slices>(&launch.shape)) {
      const PreparedSlices shape{std::get<backend::SliceFunction>(function), slices->extent.constant(),
                                 slices->grain, (slices->scratch_bytes.constant() + 63) / 64 * 64};
      check(shape.function != nullptr, "a kernel is missing from its library");
      result_.scratch_bytes = std::max(result_.scratch_bytes, shape.scratch_bytes);
      has_work = shape.extent > 0;
      step.shape = shape;
    } else {
      PreparedGrid shape{std::get<backend::GridFunction>(function)};
      check(shape.function.handle != nullptr, "a kernel is missing from its library");
      const plan::Grid& grid = std::get<plan::Grid>(launch.shape);
      for (size_t d = 0; d < shape.size.size(); ++d) shape.size[d] = grid.size[d].constant();
      has_work = std::ranges::all_of(shape.size, [](int64_t programs) { return programs > 0; });
      step.shape = shape;
    }
    if (has_work) result_.steps.emplace_back(std::move(step));
  }

  void add(const plan::Call& call) {
    CallSite site{call, result_.specs, {}, {}};
    for (const plan::CallArgument& argument : call.args) {
      std::vector<Slot> slots;
      if (const auto* view = std::get_if<plan::View>(&argument)) slots.push_back(slot_of(*view));
      if (const auto* views = std::get_if<std::vector<std::optional<plan::View>>>(&argument))
        for (const auto& view : *views) slots.push_back(view ? slot_of(*view) : kNoSlot);
      site.argument_slots.push_back(std::move(slots));
    }
    PreparedCall step;
    step.op = call.op;
    step.may_be_recorded = !call.op->is_random && !is_opaque(*call.op);
    plan::for_each_buffer(call, [&](plan::BufferId id) { step.buffers.push_back(id); });
    result_.draws_random_numbers |= call.op->is_random;
    for (const plan::BufferId id : call.outputs) {
      if (id == plan::kNoBuffer) {
        site.results.push_back({});
        continue;
      }
      const bool is_extern = storage(id) == plan::Storage::Extern;
      site.results.push_back({whole_slot(id), !is_extern});
      if (is_extern) step.returned.push_back(id);
    }
    step.invoke = result_.runtime->prepare_call(site);
    if (!step.invoke) step.invoke = prepare_general(site);
    result_.steps.emplace_back(std::move(step));
  }

  void add(const plan::Free& step) { result_.steps.emplace_back(PreparedFree{step.buffer}); }

  void add(const plan::Output& output) {
    PreparedOutput prepared;
    prepared.kind = output.kind;
    prepared.alias = output.alias;
    if (output.kind == graph::OutputKind::Value) {
      const plan::Storage place = storage(output.view.buffer);
      prepared.buffer = output.view.buffer;
      prepared.slot = slot_of(output.view);
      prepared.copy = place != plan::Storage::Output && place != plan::Storage::Extern;
    } else {
      prepared.spec = {dtype_to_torch(output.dtype), values(output.view.sizes), values(output.view.strides),
                       output.view.offset.constant()};
    }
    result_.outputs.push_back(std::move(prepared));
  }

  void collect_transient() {
    for (size_t i = 0; i < result_.buffers.size(); ++i) {
      const plan::Storage place = result_.storages[i];
      if (place == plan::Storage::Arena || place == plan::Storage::Constant) continue;
      const BufferSlots& slots = result_.buffers[i];
      if (slots.whole != kNoSlot && place != plan::Storage::Input) result_.transient.push_back(slots.whole);
      result_.transient.insert(result_.transient.end(), slots.parts.begin(), slots.parts.end());
    }
  }

  const plan::Plan& plan_;
  const backend::KernelLibrary* kernels_;
  size_t constant_count_;
  std::vector<std::vector<plan::BufferId>> begins_, ends_;  // by step: outputs, inputs
  PreparedPlan result_;
};

}  // namespace

PreparedPlan prepare(const plan::Plan& plan, const backend::KernelLibrary* kernels, size_t constant_count,
                     size_t visible_outputs) {
  return Preparation(plan, kernels, constant_count).prepare(visible_outputs);
}

}  // namespace oxy::runtime
