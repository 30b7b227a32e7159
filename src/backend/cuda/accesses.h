// What the phases of a nest load and store, as far as it decides how a kernel is launched, and what a device
// of the kind that kernels are shaped for has.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/nests/loop_nest.h"

namespace oxy::backend::cuda {

inline constexpr int64_t kMultiprocessors = 132;              // of an H100; no result depends on it
inline constexpr int64_t kThreads = 2048 * kMultiprocessors;  // that the device runs at once
inline constexpr int64_t kThreadsAWarp = 32;
inline constexpr int64_t kElementsAThread = 8;  // of a row
inline constexpr int64_t kLeastElementsAThread = 4;
inline constexpr int64_t kMostElementsAThread = 16;
inline constexpr int64_t kLine = 128;       // bytes of a line of memory
inline constexpr int64_t kSector = 32;      // bytes of the least that is read of it
inline constexpr int64_t kFewColumns = 16;  // the fewest of a program: a sector of half precision
inline constexpr int kManyOperands = 5;

struct Access {
  const Expr& offset;
  int64_t bytes;  // of an element
};

// Calls fn(Access) for what the phase loads from and stores to memory.
template <class Fn>
void for_each_access(const LoopNest& nest, const Phase& phase, Fn fn) {
  const auto access = [&](ArrayId id, const Expr& offset) {
    const Array& array = nest.arrays[id];
    if (array.kind == ArrayKind::Parameter) fn(Access{offset, bytes(array.dtype)});
  };
  for (const NestInst& inst : phase.insts)
    if (inst.op == loop::Op::Load) access(inst.buffer, phase.expressions[inst.index]);
  for (const ElementStore& store : phase.stores) access(store.array, store.offset);
}

// Iterations of all the loops.
Expr extent_of(const std::vector<LoopVariable>& loops);

// Warps for so many elements, with kElementsAThread each: a power of 2, at most `most`.
int warps_for(int64_t elements, int64_t most);

// Whether neighbours in the loop are neighbours in memory.
bool is_unit(const Expr& offset, const LoopVariable& l);

// Whether the loop does not move the access.
bool is_unmoved(const Expr& offset, const LoopVariable& l);

// Bytes of the smallest element that the nest accesses; at most 8.
int64_t smallest_element(const LoopNest& nest);

// Bytes that each iteration of the outer loops loads and stores alone: what is broadcast along one of them
// comes from a cache, and of loads under conditions one is taken. At least 1.
int64_t moved_bytes(const LoopNest& nest);

// Loads from and stores to memory.
int operand_count(const LoopNest& nest);
// Those of them that are broadcast along none of the outer loops.
int moved_count(const LoopNest& nest);
int64_t load_count(const LoopNest& nest);

}  // namespace oxy::backend::cuda
