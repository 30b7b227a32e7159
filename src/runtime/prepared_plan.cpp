#include "runtime/prepared_plan.h"

#include <algorithm>

#include "base/error.h"
#include "runtime/convert.h"

namespace oxy::runtime {

namespace {

std::vector<int64_t> values(const std::vector<Expr>& expressions) {
  std::vector<int64_t> result;
  result.reserve(expressions.size());
  for (const Expr& expr : expressions) result.push_back(expr.constant());
  return result;
}

class Preparation {
 public:
  Preparation(const plan::Plan& plan, const jit::KernelLibrary* kernels, size_t constant_count)
      : plan_(plan), kernels_(kernels), constant_count_(constant_count) {}

  PreparedPlan prepare() {
    add_buffers();
    for (const plan::Step& step : plan_.steps) std::visit([&](const auto& s) { add(s); }, step);
    for (const plan::Output& output : plan_.outputs) add(output);
    for (const plan::Mutation& mutation : plan_.mutations) {
      const bool reads_input = storage(mutation.value.buffer) == plan::Storage::Input;
      result_.mutations.push_back({mutation.input, slot_of(mutation.value), reads_input});
    }
    collect_transient();
    return std::move(result_);
  }

 private:
  plan::Storage storage(plan::BufferId id) const { return result_.storages.at(static_cast<size_t>(id)); }

  void add_buffers() {
    for (size_t i = 0; i < plan_.buffers.size(); ++i) {
      const plan::Buffer& buffer = plan_.buffers[i];
      if (buffer.device.kind != Device::Kind::Cpu)
        throw Unsupported("device " + str(buffer.device), "the runtime executes plans on the CPU");
      const auto id = static_cast<plan::BufferId>(i);
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
      if (buffer.storage == plan::Storage::Input) result_.inputs.push_back({id, buffer.slot});
      if (buffer.storage == plan::Storage::Output) {
        result_.allocated.push_back(id);
        whole_slot(id);
      }
    }
    result_.arena_bytes = plan_.arena_bytes.constant();
  }

  Slot new_slot(TensorSpec spec) {
    result_.specs.push_back(std::move(spec));
    return static_cast<Slot>(result_.specs.size() - 1);
  }

  Slot whole_slot(plan::BufferId id) {
    BufferSlots& slots = result_.buffers.at(static_cast<size_t>(id));
    if (slots.whole == kNoSlot) slots.whole = new_slot(slots.whole_spec);
    return slots.whole;
  }

  Slot slot_of(const plan::View& view) {
    BufferSlots& slots = result_.buffers.at(static_cast<size_t>(view.buffer));
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
    step.function = kernels_->function(static_cast<size_t>(launch.kernel));
    check(step.function != nullptr, "a kernel is missing from its library");
    step.buffers = launch.buffers;
    step.sizes = values(launch.sizes);
    step.extent = launch.extent.constant();
    step.grain = launch.grain;
    step.scratch_bytes = (launch.scratch_bytes + 63) / 64 * 64;
    result_.scratch_bytes = std::max(result_.scratch_bytes, step.scratch_bytes);
    if (step.extent > 0) result_.steps.emplace_back(std::move(step));
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
    step.is_random = call.op->is_random;
    result_.draws_random_numbers |= step.is_random;
    for (const plan::BufferId id : call.outputs) {
      if (id == plan::kNoBuffer) {
        site.results.push_back({});
        continue;
      }
      const bool is_extern = storage(id) == plan::Storage::Extern;
      site.results.push_back({whole_slot(id), !is_extern});
      if (is_extern) step.returned.push_back(id);
    }
    step.invoke = prepare_call(site);
    result_.steps.emplace_back(std::move(step));
  }

  void add(const plan::Free& step) { result_.steps.emplace_back(PreparedFree{step.buffer}); }

  void add(const plan::Output& output) {
    PreparedOutput prepared;
    prepared.kind = output.kind;
    prepared.alias = output.alias;
    if (output.kind == graph::OutputKind::Value) {
      const plan::Storage place = storage(output.view.buffer);
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
      if (slots.whole != kNoSlot) result_.transient.push_back(slots.whole);
      result_.transient.insert(result_.transient.end(), slots.parts.begin(), slots.parts.end());
    }
  }

  const plan::Plan& plan_;
  const jit::KernelLibrary* kernels_;
  size_t constant_count_;
  PreparedPlan result_;
};

}  // namespace

PreparedPlan prepare(const plan::Plan& plan, const jit::KernelLibrary* kernels, size_t constant_count) {
  return Preparation(plan, kernels, constant_count).prepare();
}

}  // namespace oxy::runtime
