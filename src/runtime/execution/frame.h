// One running call of a prepared plan: its arena, its table of tensors, its pointers.
#pragma once

#include <ATen/core/Tensor.h>

#include <forward_list>
#include <memory>
#include <span>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/device/slab.h"
#include "runtime/execution/prepared_plan.h"

namespace oxy::runtime {

// Made once and used by one call at a time. The queues of launches, and the tensors over the arena and over
// constants, stay between calls; what belongs to one call is dropped by end_call(), and the arena's memory
// given back.
class Frame {
 public:
  // `plan` outlives the frame.
  Frame(const PreparedPlan& plan, std::span<const at::Tensor> constants);

  // The plan has other numbers than when the frame was made, or made fit last. Between calls.
  void refit();

  // Points the input buffers at these tensors, which it borrows: each lives until drop() of its buffer or
  // end_call(). (Another owner of a tensor that Python alone owns costs the GIL, twice.) `lent`: the arena to
  // use; null: the frame takes one. WhenAsked: steps use nothing but addresses of inputs, as long as nobody
  // calls make_parts_of_inputs().
  enum class PartsOfInputs : uint8_t { Now, WhenAsked };
  void begin_call(std::span<const at::Tensor> inputs, const Arena* lent = nullptr,
                  PartsOfInputs parts = PartsOfInputs::Now);
  // Makes the windows on inputs, unless they are there.
  void make_parts_of_inputs();
  // Gives an output buffer its memory.
  void allocate(const PreparedAllocation& allocation);
  void end_call();

  // A buffer whose whole tensor an extern call defined just now: finds its memory, makes its other windows.
  void adopt(plan::BufferId buffer);
  void drop(plan::BufferId buffer);

  // The memory and the tensors of a call's buffers, as they are at one of its steps.
  struct Tables {
    std::vector<void*> pointers;      // by buffer
    std::vector<at::Tensor> tensors;  // by slot
  };
  // From the first of these calls to end_call() the frame owns its inputs.
  Tables tables();
  void restore(const Tables& tables);
  // A buffer other than an arena's or a constant lies in this memory from here on.
  void place(plan::BufferId buffer, at::Tensor whole);
  void place(plan::BufferId buffer, void* address);  // memory of its device that somebody else owns
  const at::Tensor& whole(plan::BufferId buffer) const {
    return tensors_[static_cast<size_t>(plan_.buffers[buffer.index()].whole)];
  }
  uintptr_t address(plan::BufferId buffer) const {
    return reinterpret_cast<uintptr_t>(pointers_[buffer.index()]);
  }
  // False if copies stand in for inputs that are not aligned as kernels want them: kernels use these, and
  // calls the inputs themselves.
  bool uses_inputs_as_given() const { return copies_.empty(); }

  at::Tensor* tensors() { return tensors_.data(); }
  // Runs a kernel on the buffers as they are now.
  void launch(const PreparedLaunch& launch);
  // Launches go to the current streams of the devices from here on.
  void begin_launches() {
    for (const auto& queue : queues_) queue->begin_call();
  }
  // No launch follows. Throws LeftToEager if a kernel of this call met one.
  void end_launches() {
    for (const auto& queue : queues_) queue->end_call();
  }
  // Kept between calls, beside the arena.
  int64_t held_bytes() const;

 private:
  void make_queues();
  void place_buffers();
  void take_memory(const Arena* lent);
  void own_inputs();
  void drop_input(at::Tensor& whole) const;
  bool is_aligned(const void* address) const;
  // A copy that lives until end_call(). A kernel that writes to the input cannot use one: the call is left to
  // eager, by LeftToEager.
  const at::Tensor& aligned_copy(const at::Tensor& input, bool is_written);
  void make_parts(const BufferSlots& slots, const at::Tensor& whole);

  const PreparedPlan& plan_;
  std::span<const at::Tensor> constants_;
  uintptr_t alignment_;
  Arena memory_;        // of the running call
  c10::Storage arena_;  // over it, or over what the last call had
  std::vector<size_t> arena_buffers_;
  std::vector<size_t> constant_buffers_;               // of which there are windows
  int64_t scratch_bytes_;                              // that the queues were made for
  std::vector<std::unique_ptr<LaunchQueue>> queues_;   // by device
  std::vector<void*> launched_;                        // the pointers of one launch
  std::vector<std::unique_ptr<SlabAllocator>> slabs_;  // of the running call, by device
  std::vector<void*> pointers_;                        // by buffer
  std::vector<at::Tensor> tensors_;                    // by slot
  std::forward_list<at::Tensor> copies_;               // of inputs of the running call that are not aligned
  bool owns_inputs_ = false;                           // they are not borrowed
  std::span<const at::Tensor> inputs_;                 // of the running call
  bool lacks_parts_of_inputs_ = false;
};

}  // namespace oxy::runtime
