#include "runtime/execution/prepare.h"

#include <fmt/format.h>

#include <algorithm>

#include "aten/opaque.h"
#include "aten/operators.h"
#include "base/error.h"
#include "plan/step_buffers.h"
#include "runtime/values/convert.h"
#include "runtime/values/host.h"

namespace oxy::runtime {

namespace {

std::vector<int64_t> values(const std::vector<Expr>& expressions) {
  std::vector<int64_t> result;
  result.reserve(expressions.size());
  for (const Expr& expr : expressions) result.push_back(expr.constant());
  return result;
}

// Where the numbers of a slot stand in the plan.
struct SlotSource {
  const std::vector<Expr>* sizes;
  const std::vector<Expr>* strides;
  const Expr* offset;  // null: 0
};

class Preparer {
 public:
  Preparer(const plan::Plan& plan, const SymbolicPlan& symbolic, const backend::KernelLibrary* kernels,
           size_t constant_count)
      : plan_(plan), symbolic_(symbolic), kernels_(kernels), constant_count_(constant_count) {}

  Preparation prepare(size_t visible_outputs) {
    find_devices_of_buffers();
    add_buffers();
    find_lives();
    find_inner_outputs(visible_outputs);
    for (size_t n = 0; n < plan_.steps.size(); ++n) {
      for (const plan::BufferId id : begins_[n])
        result_.steps.emplace_back(PreparedAllocation{id, stays_inside_[id.index()]});
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
    prepare_calls();
    derive(result_);
    collect_numbers();
    return {std::move(owned_), std::move(numbers_)};
  }

 private:
  // A plan without buffers moves nothing, and runs anywhere. Beside tensors of another device there may be
  // some on the host, which operators read and return.
  void find_devices_of_buffers() {
    std::vector<c10::Device>& devices = result_.devices;
    const auto add_device = [&](const plan::Buffer& buffer) {
      const c10::Device device = device_to_torch(buffer.device);
      if (device.type() == kHost || std::ranges::find(devices, device) != devices.end()) return;
      if (!devices.empty() && devices.front().type() != device.type())
        throw Unsupported(fmt::format("tensors on {} and {}", devices.front().str(), device.str()),
                          "a plan runs on devices of one kind and the host");
      devices.push_back(device);
    };
    for (const plan::Buffer& buffer : plan_.buffers)
      if (buffer.storage == plan::Storage::Arena && !is_empty(buffer)) add_device(buffer);
    for (const plan::Buffer& buffer : plan_.buffers) add_device(buffer);
    if (devices.empty()) devices.emplace_back(kHost);
    for (const plan::Buffer& buffer : plan_.buffers) {
      const auto place = std::ranges::find(devices, device_to_torch(buffer.device));
      check(place != devices.end() || buffer.storage == plan::Storage::Input ||
                buffer.storage == plan::Storage::Constant || buffer.storage == plan::Storage::Extern ||
                is_empty(buffer),
            fmt::format("buffer {} is on the host in a plan for {}", buffer.name, devices.front().str()));
      result_.places.push_back(place == devices.end() ? 0 : static_cast<size_t>(place - devices.begin()));
    }
    result_.runtime = &device_runtime(devices.front().type());
  }

  // Nothing lives there: it has vanished into a kernel, or another buffer is its memory.
  static bool is_empty(const plan::Buffer& buffer) {
    return buffer.sizes.size() == 1 && buffer.sizes[0] == Expr(0);
  }

  bool is_on_device(plan::BufferId id) const {
    return device_to_torch(plan_.buffers[id].device) == result_.device();
  }

  // Outputs that only the library sees. They live on together.
  void find_inner_outputs(size_t visible_outputs) {
    stays_inside_.resize(plan_.buffers.size());
    for (size_t i = 0; i < stays_inside_.size(); ++i)
      stays_inside_[i] = result_.storages[i] == plan::Storage::Output;
    const auto show = [&](const plan::Output& output) {
      if (output.kind == graph::OutputKind::Value) stays_inside_[output.view.buffer.index()] = false;
    };
    for (size_t i = 0; i < plan_.outputs.size() && i < visible_outputs; ++i) {
      show(plan_.outputs[i]);
      if (plan_.outputs[i].kind == graph::OutputKind::OutputAlias)
        show(plan_.outputs[static_cast<size_t>(plan_.outputs[i].alias)]);
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

  Slot new_slot(TensorSpec spec, SlotSource source) {
    result_.specs.push_back(std::move(spec));
    sources_.push_back(source);
    return static_cast<Slot>(result_.specs.size() - 1);
  }

  Slot whole_slot(plan::BufferId id) {
    BufferSlots& slots = result_.buffers.at(id.index());
    const plan::Buffer& buffer = plan_.buffers[id];
    if (slots.whole == kNoSlot)
      slots.whole = new_slot(slots.whole_spec, {&buffer.sizes, &buffer.strides, nullptr});
    return slots.whole;
  }

  bool is_fixed_zero(const Expr& offset) const { return symbolic_.is_fixed(offset) && offset == Expr(0); }

  // Views share a slot where they are alike for all sizes.
  Slot slot_of(const plan::View& view) {
    BufferSlots& slots = result_.buffers.at(view.buffer.index());
    const plan::Buffer& buffer = plan_.buffers[view.buffer];
    if (is_fixed_zero(view.offset) && symbolic_.are_alike(view.sizes, buffer.sizes) &&
        symbolic_.are_alike(view.strides, buffer.strides))
      return whole_slot(view.buffer);
    for (const Slot part : slots.parts) {
      const SlotSource& other = sources_[static_cast<size_t>(part)];
      if (symbolic_.are_alike(view.offset, *other.offset) && symbolic_.are_alike(view.sizes, *other.sizes) &&
          symbolic_.are_alike(view.strides, *other.strides))
        return part;
    }
    if (storage(view.buffer) == plan::Storage::Extern) whole_slot(view.buffer);
    TensorSpec spec{slots.whole_spec.dtype, values(view.sizes), values(view.strides), view.offset.constant()};
    const Slot slot = new_slot(std::move(spec), {&view.sizes, &view.strides, &view.offset});
    slots.parts.push_back(slot);
    return slot;
  }

  void add(const plan::Launch& launch) {
    check(kernels_ != nullptr, "a plan with kernels was given no kernel library");
    PreparedLaunch step;
    const backend::KernelFunction function = kernels_->function(launch.kernel.index());
    step.buffers = launch.buffers;
    step.written = launch.written;
    step.origin = launch.origin;
    if (!launch.buffers.empty()) step.place = result_.places[launch.buffers[0].index()];
    step.sizes = values(launch.sizes);
    if (const auto* slices = std::get_if<plan::Slices>(&launch.shape)) {
      const PreparedSlices shape{std::get<backend::SliceFunction>(function), slices->extent.constant(),
                                 slices->grain, slices->scratch_bytes.constant()};
      check(shape.function != nullptr, "a kernel is missing from its library");
      step.shape = shape;
    } else {
      PreparedGrid shape{std::get<backend::GridFunction>(function)};
      check(shape.function.handle != nullptr, "a kernel is missing from its library");
      const plan::Grid& grid = std::get<plan::Grid>(launch.shape);
      for (size_t d = 0; d < shape.size.size(); ++d) shape.size[d] = grid.size[d].constant();
      step.shape = shape;
    }
    launches_.emplace_back(result_.steps.size(), &launch);
    result_.steps.emplace_back(std::move(step));
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
    const bool draws = draws_numbers(*call.op, call.args);
    step.is_replayable = !is_opaque(*call.op);
    if (draws) step.draws = call.op == op::philox_states() ? Draws::OnHost : Draws::OnDevice;
    plan::for_each_buffer(call, [&](plan::BufferId id) {
      step.buffers.push_back(id);
      step.is_replayable = step.is_replayable && is_on_device(id);
    });
    if (draws) add_random_device(call);
    for (const plan::BufferId id : call.outputs) {
      if (id == plan::kNoBuffer) {
        site.results.push_back({});
        continue;
      }
      const bool is_extern = storage(id) == plan::Storage::Extern;
      site.results.push_back({whole_slot(id), !is_extern});
      if (is_extern) step.returned.push_back(id);
    }
    calls_.push_back({.step = result_.steps.size(), .site = std::move(site)});
    result_.steps.emplace_back(std::move(step));
  }

  void add_random_device(const plan::Call& call) {
    const auto result =
        std::ranges::find_if(call.outputs, [](plan::BufferId id) { return id != plan::kNoBuffer; });
    const c10::Device device =
        result == call.outputs.end() ? result_.device() : device_to_torch(plan_.buffers[*result].device);
    std::vector<c10::Device>& known = result_.random_devices;
    if (std::ranges::find(known, device) == known.end()) known.push_back(device);
  }

  bool is_fixed(const std::vector<Expr>& list) const {
    return std::ranges::all_of(list, [this](const Expr& place) { return symbolic_.is_fixed(place); });
  }

  bool is_fixed(Slot slot) const {
    if (slot == kNoSlot) return true;
    const SlotSource& source = sources_[static_cast<size_t>(slot)];
    return is_fixed(*source.sizes) && is_fixed(*source.strides) &&
           (source.offset == nullptr || symbolic_.is_fixed(*source.offset));
  }

  bool has_numbers_that_differ(const plan::CallArgument& argument) const {
    if (const auto* number = std::get_if<Expr>(&argument)) return !symbolic_.is_fixed(*number);
    const auto* list = std::get_if<std::vector<Expr>>(&argument);
    return list != nullptr && !is_fixed(*list);
  }

  // When all slots are known, so that addresses of specs stay.
  void prepare_calls() {
    for (SizedCall& call : calls_) {
      const CallSite& site = call.site;
      call.has_numbers = std::ranges::any_of(
          site.call.args, [this](const plan::CallArgument& a) { return has_numbers_that_differ(a); });
      std::get<PreparedCall>(result_.steps[call.step]).invoke = choose_way(*result_.runtime, call);
      const auto is_other = [this](Slot slot) { return !is_fixed(slot); };
      const bool has_tensors_that_differ = std::ranges::any_of(site.argument_slots,
                                                               [&](const std::vector<Slot>& slots) {
                                                                 return std::ranges::any_of(slots, is_other);
                                                               }) ||
                                           std::ranges::any_of(site.results, is_other, &ResultSlot::slot);
      if (call.has_numbers || (has_tensors_that_differ && result_.runtime->chooses_by_sizes(*site.call.op)))
        numbers_.calls.push_back(std::move(call));
    }
  }

  void note(int64_t& target, const Expr& source) {
    if (!symbolic_.is_fixed(source)) numbers_.places.push_back({&target, symbolic_.expression_at(source)});
  }
  void note(std::vector<int64_t>& targets, const std::vector<Expr>& sources) {
    for (size_t i = 0; i < targets.size(); ++i) note(targets[i], sources[i]);
  }
  void note(TensorSpec& spec, const SlotSource& source) {
    note(spec.sizes, *source.sizes);
    note(spec.strides, *source.strides);
    if (source.offset != nullptr) note(spec.offset, *source.offset);
  }

  void collect_numbers() {
    for (size_t i = 0; i < result_.specs.size(); ++i) note(result_.specs[i], sources_[i]);
    for (const plan::BufferId id : plan_.buffers.ids()) {
      const plan::Buffer& buffer = plan_.buffers[id];
      note(result_.buffers[id.index()].whole_spec, {&buffer.sizes, &buffer.strides, nullptr});
      if (buffer.storage == plan::Storage::Arena)
        note(result_.arena_offsets[id.index()], buffer.arena_offset);
    }
    for (const auto& [step, launch] : launches_) {
      auto& prepared = std::get<PreparedLaunch>(result_.steps[step]);
      note(prepared.sizes, launch->sizes);
      if (auto* slices = std::get_if<PreparedSlices>(&prepared.shape)) {
        const auto& shape = std::get<plan::Slices>(launch->shape);
        note(slices->extent, shape.extent);
        note(slices->scratch_bytes, shape.scratch_bytes);
      } else {
        const auto& grid = std::get<plan::Grid>(launch->shape);
        auto& size = std::get<PreparedGrid>(prepared.shape).size;
        for (size_t d = 0; d < size.size(); ++d) note(size[d], grid.size[d]);
      }
    }
    for (size_t i = 0; i < plan_.outputs.size(); ++i) {
      const plan::View& view = plan_.outputs[i].view;
      if (plan_.outputs[i].kind != graph::OutputKind::Value)
        note(result_.outputs[i].spec, {&view.sizes, &view.strides, &view.offset});
    }
    note(result_.arena_bytes, plan_.arena_bytes);
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
  const SymbolicPlan& symbolic_;
  const backend::KernelLibrary* kernels_;
  size_t constant_count_;
  std::vector<std::vector<plan::BufferId>> begins_, ends_;        // by step: outputs, inputs
  std::vector<bool> stays_inside_;                                // by buffer
  std::vector<SlotSource> sources_;                               // by slot
  std::vector<std::pair<size_t, const plan::Launch*>> launches_;  // and their steps
  std::vector<SizedCall> calls_;
  std::unique_ptr<PreparedPlan> owned_ = std::make_unique<PreparedPlan>();
  PreparedPlan& result_ = *owned_;
  PlanNumbers numbers_;
};

}  // namespace

Preparation prepare(SymbolicPlan& symbolic, const backend::KernelLibrary* kernels, size_t constant_count,
                    size_t visible_outputs) {
  return Preparer(symbolic.with_numbers(), symbolic, kernels, constant_count).prepare(visible_outputs);
}

}  // namespace oxy::runtime
