#include "runtime/execution/frame.h"

#include <c10/core/InferenceMode.h>

#include <utility>

#include "base/error.h"
#include "runtime/extern/program_operators.h"

namespace oxy::runtime {

namespace {

using Borrow = c10::MaybeOwnedTraits<at::Tensor>;

// Asks for the memory where address_for_reading() finds the address.
void prefetch_address(const at::Tensor& tensor) {
  if (tensor.defined() && tensor.has_storage())
    __builtin_prefetch(tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl());
}

// Constants and most inputs are only read: a const pointer leaves copy-on-write storage shared.
void* address_for_reading(const at::Tensor& tensor) {
  if (!tensor.has_storage()) return nullptr;
  // const_data_ptr() is null for a tensor without elements. A kernel may read what it repeats before a loop
  // that has no iterations: torch.ones(3, 1).expand(3, 0).
  const c10::TensorImpl* const impl = tensor.unsafeGetTensorImpl();
  const auto* const memory = static_cast<const char*>(impl->unsafe_storage().data());
  if (memory == nullptr) return nullptr;
  return const_cast<char*>(memory + impl->storage_offset() * static_cast<int64_t>(impl->itemsize()));
}

}  // namespace

Frame::Frame(const PreparedPlan& plan, std::span<const at::Tensor> constants)
    : plan_(plan),
      constants_(constants),
      alignment_(plan.runtime->alignment()),
      arena_(c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(),
                                                   static_cast<size_t>(plan.arena_bytes),
                                                   c10::DataPtr(nullptr, plan.device()),
                                                   /*allocator=*/nullptr, /*resizable=*/false)),
      scratch_bytes_(plan.scratch_bytes),
      pointers_(plan.buffers.size(), nullptr),
      tensors_(plan.specs.size()) {
  make_queues();
  for (const c10::Device& device : plan.devices)
    slabs_.push_back(std::make_unique<SlabAllocator>(*plan.runtime, device.index()));
  // The tensors that stay are used by calls in and out of inference mode.
  const c10::InferenceMode normal_tensors(false);
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const BufferSlots& slots = plan.buffers[i];
    if (plan.storages[i] == plan::Storage::Arena) {
      const int64_t item = static_cast<int64_t>(c10::elementSize(slots.whole_spec.dtype));
      const int64_t offset = plan.arena_offsets[i];
      arena_buffers_.push_back(i);
      const auto make = [&](Slot slot) {
        const auto index = static_cast<size_t>(slot);
        tensors_[index] = tensor_over(arena_, plan.specs[index], offset / item);
      };
      if (slots.whole != kNoSlot) make(slots.whole);
      for (const Slot part : slots.parts) make(part);
    } else if (plan.storages[i] == plan::Storage::Constant) {
      const at::Tensor& constant = constants[static_cast<size_t>(plan.constants[i])];
      pointers_[i] = address_for_reading(constant);
      if (slots.whole != kNoSlot) tensors_[static_cast<size_t>(slots.whole)] = constant;
      make_parts(slots, constant);
      if (!slots.parts.empty()) constant_buffers_.push_back(i);
    }
  }
}

void Frame::make_queues() {
  queues_.clear();
  for (const c10::Device& device : plan_.devices)
    queues_.push_back(plan_.runtime->new_queue(plan_.scratch_bytes, device.index()));
}

int64_t Frame::held_bytes() const {
  int64_t bytes = 0;
  for (const auto& queue : queues_) bytes += queue->held_bytes();
  return bytes;
}

void Frame::refit() {
  const c10::InferenceMode normal_tensors(false);
  arena_.unsafeGetStorageImpl()->set_nbytes(static_cast<size_t>(plan_.arena_bytes));
  if (plan_.scratch_bytes > scratch_bytes_) {
    make_queues();
    scratch_bytes_ = plan_.scratch_bytes;
  }
  place_buffers();
  for (const size_t i : arena_buffers_) {
    const BufferSlots& slots = plan_.buffers[i];
    const int64_t first =
        plan_.arena_offsets[i] / static_cast<int64_t>(c10::elementSize(slots.whole_spec.dtype));
    const auto resize = [&](Slot slot) {
      const TensorSpec& spec = plan_.specs[static_cast<size_t>(slot)];
      tensors_[static_cast<size_t>(slot)].unsafeGetTensorImpl()->set_sizes_and_strides(
          spec.sizes, spec.strides, first + spec.offset);
    };
    if (slots.whole != kNoSlot) resize(slots.whole);
    for (const Slot part : slots.parts) resize(part);
  }
  for (const size_t i : constant_buffers_) {
    make_parts(plan_.buffers[i], constants_[static_cast<size_t>(plan_.constants[i])]);
  }
}

void Frame::place_buffers() {
  char* const base = static_cast<char*>(arena_.unsafeGetStorageImpl()->mutable_data());
  for (const size_t i : arena_buffers_) pointers_[i] = base + plan_.arena_offsets[i];
}

void Frame::make_parts(const BufferSlots& slots, const at::Tensor& whole) {
  for (const Slot part : slots.parts) {
    const auto index = static_cast<size_t>(part);
    tensors_[index] = view_of(whole, plan_.specs[index]);
  }
}

void Frame::take_memory(const Arena* lent) {
  if (plan_.arena_bytes == 0) return;
  if (lent == nullptr) memory_ = plan_.runtime->arenas().take(plan_.arena_bytes, plan_.device().index());
  char* const base = static_cast<char*>((lent ? lent->memory : memory_.memory).get());
  if (arena_.data() == base) return;
  arena_.unsafeGetStorageImpl()->set_data_ptr_noswap({base, plan_.device()});
  place_buffers();
}

bool Frame::is_aligned(const void* address) const {
  return alignment_ == 1 || reinterpret_cast<uintptr_t>(address) % alignment_ == 0;
}

const at::Tensor& Frame::aligned_copy(const at::Tensor& input, bool is_written) {
  if (is_written) throw LeftToEager();
  return copies_.emplace_front(copy_as_it_lies(input));
}

void Frame::begin_call(std::span<const at::Tensor> inputs, const Arena* lent, PartsOfInputs parts) {
  take_memory(lent);
  inputs_ = inputs;
  lacks_parts_of_inputs_ = parts == PartsOfInputs::WhenAsked;
  begin_launches();
  constexpr size_t kAhead = 8;
  for (size_t i = 0; i < plan_.inputs.size(); ++i) {
    if (i + kAhead < plan_.inputs.size())
      prefetch_address(inputs[static_cast<size_t>(plan_.inputs[i + kAhead].input)]);
    const PreparedInput& input = plan_.inputs[i];
    const size_t index = input.buffer.index();
    const at::Tensor& given = inputs[static_cast<size_t>(input.input)];
    void* const address = address_for_reading(given);
    // Calls take the tensor as it is, and may read of its storage what the tensor does not show.
    if (!is_aligned(address))
      pointers_[index] = address_for_reading(aligned_copy(given, input.is_written));
    else
      pointers_[index] = input.is_written ? given.mutable_data_ptr() : address;
    const BufferSlots& slots = plan_.buffers[index];
    if (slots.whole != kNoSlot) Borrow::assignBorrow(tensors_[static_cast<size_t>(slots.whole)], given);
    if (!slots.parts.empty() && !lacks_parts_of_inputs_) make_parts(slots, given);
  }
  for (const plan::BufferId id : plan_.allocated) allocate(PreparedAllocation{id});
}

void Frame::make_parts_of_inputs() {
  if (!std::exchange(lacks_parts_of_inputs_, false)) return;
  for (const PreparedInput& input : plan_.inputs) {
    const BufferSlots& slots = plan_.buffers[input.buffer.index()];
    const at::Tensor& tensor = inputs_[static_cast<size_t>(input.input)];
    const bool lacks = !slots.parts.empty() && !tensors_[static_cast<size_t>(slots.parts.front())].defined();
    if (lacks && tensor.defined()) make_parts(slots, tensor);  // else it has been given away and dropped
  }
}

void Frame::allocate(const PreparedAllocation& allocation) {
  const size_t index = allocation.buffer.index();
  const BufferSlots& slots = plan_.buffers[index];
  at::Tensor& whole = tensors_[static_cast<size_t>(slots.whole)];
  const TensorSpec& spec = slots.whole_spec;
  const size_t place = plan_.places[index];
  whole = allocation.slab_bytes > 0
              ? tensor_over(slabs_[place]->allocate(bytes_of(spec), allocation.slab_bytes), spec)
              : plan_.runtime->empty(spec, plan_.devices[place].index());
  pointers_[index] = whole.unsafeGetTensorImpl()->mutable_data();
  if (!slots.parts.empty()) make_parts(slots, whole);
}

void Frame::end_call() {
  for (const auto& slab : slabs_) slab->reset();
  if (memory_.bytes > 0) plan_.runtime->arenas().release(std::exchange(memory_, {}));
  for (const PreparedInput& input : plan_.inputs) {
    const Slot whole = plan_.buffers[input.buffer.index()].whole;
    if (whole != kNoSlot) drop_input(tensors_[static_cast<size_t>(whole)]);
  }
  owns_inputs_ = false;
  for (const Slot slot : plan_.transient) tensors_[static_cast<size_t>(slot)].reset();
  copies_.clear();
}

void Frame::adopt(plan::BufferId buffer) {
  const size_t index = buffer.index();
  const BufferSlots& slots = plan_.buffers[index];
  const at::Tensor& whole = tensors_[static_cast<size_t>(slots.whole)];
  check(whole.defined(), "an extern call left a result undefined");
  pointers_[index] = whole.mutable_data_ptr();
  if (!slots.parts.empty()) make_parts(slots, whole);
}

void Frame::drop(plan::BufferId buffer) {
  const size_t index = buffer.index();
  const BufferSlots& slots = plan_.buffers[index];
  if (slots.whole != kNoSlot) {
    at::Tensor& whole = tensors_[static_cast<size_t>(slots.whole)];
    if (plan_.storages[index] == plan::Storage::Input) drop_input(whole);
    whole.reset();
  }
  for (const Slot part : slots.parts) tensors_[static_cast<size_t>(part)].reset();
}

void Frame::drop_input(at::Tensor& whole) const {
  if (owns_inputs_)
    whole.reset();
  else
    Borrow::destroyBorrow(whole);
}

void Frame::own_inputs() {
  if (std::exchange(owns_inputs_, true)) return;
  for (const PreparedInput& input : plan_.inputs) {
    const Slot whole = plan_.buffers[input.buffer.index()].whole;
    if (whole == kNoSlot) continue;
    at::Tensor& borrowed = tensors_[static_cast<size_t>(whole)];
    at::Tensor owned = borrowed;
    Borrow::destroyBorrow(borrowed);
    borrowed = std::move(owned);
  }
}

Frame::Tables Frame::tables() {
  own_inputs();
  return {pointers_, tensors_};
}

void Frame::restore(const Tables& tables) {
  own_inputs();
  pointers_ = tables.pointers;
  tensors_ = tables.tensors;
}

void Frame::place(plan::BufferId buffer, at::Tensor whole) {
  const size_t index = buffer.index();
  if (plan_.storages[index] == plan::Storage::Input) own_inputs();
  const BufferSlots& slots = plan_.buffers[index];
  pointers_[index] = whole.mutable_data_ptr();
  if (!slots.parts.empty()) make_parts(slots, whole);
  if (slots.whole != kNoSlot) tensors_[static_cast<size_t>(slots.whole)] = std::move(whole);
}

void Frame::place(plan::BufferId buffer, void* address) {
  const TensorSpec& spec = plan_.buffers[buffer.index()].whole_spec;
  c10::Storage memory(c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), static_cast<size_t>(bytes_of(spec)),
      c10::DataPtr(address, plan_.device_of(buffer)), /*allocator=*/nullptr, /*resizable=*/false));
  place(buffer, tensor_over(std::move(memory), spec));
}

void Frame::launch(const PreparedLaunch& launch) {
  launched_.resize(launch.buffers.size());
  for (size_t i = 0; i < launch.buffers.size(); ++i) launched_[i] = pointers_[launch.buffers[i].index()];
  queues_[launch.place]->launch(launch, launched_.data());
}

}  // namespace oxy::runtime
