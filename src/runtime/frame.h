// One running call of a prepared plan: its arena, its table of tensors, its pointers.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

#include "runtime/arena_pool.h"
#include "runtime/prepared_plan.h"
#include "runtime/slab.h"

namespace oxy::runtime {

// Made once and used by one call at a time. Scratch memory, and the tensors over the arena and over
// constants, stay between calls; what belongs to one call is dropped by end_call(), and the arena's memory
// given back.
class Frame {
 public:
  // `plan` outlives the frame.
  Frame(const PreparedPlan& plan, std::span<const at::Tensor> constants);

  // Takes an arena and points the input buffers at these tensors, which it borrows: each lives until drop()
  // of its buffer or end_call(). (Another owner of a tensor that Python alone owns costs the GIL, twice.)
  void begin_call(std::span<const at::Tensor> inputs);
  // Gives an output buffer its memory.
  void allocate(const PreparedAllocation& allocation);
  void end_call();

  // A buffer whose whole tensor an extern call defined just now: finds its memory, makes its other windows.
  void adopt(plan::BufferId buffer);
  void drop(plan::BufferId buffer);

  at::Tensor* tensors() { return tensors_.data(); }
  void* const* pointers() const { return pointers_.data(); }
  // 64-byte aligned; plan.scratch_bytes for each of `threads`.
  char* scratch(int threads);
  int64_t scratch_bytes() const;

 private:
  void take_memory();
  void make_parts(const BufferSlots& slots, const at::Tensor& whole);

  const PreparedPlan& plan_;
  Arena memory_;        // of the running call
  c10::Storage arena_;  // over it, or over what the last call had
  std::vector<size_t> arena_buffers_;
  c10::Storage scratch_;
  int scratch_threads_ = 0;
  SlabAllocator slab_;               // of the running call
  std::vector<void*> pointers_;      // by buffer
  std::vector<at::Tensor> tensors_;  // by slot
};

}  // namespace oxy::runtime
