// Which steps have to follow which, because of the memory that they share. Steps that need not may run side
// by side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace oxy::plan {

// A step reads or writes bytes [begin, end) of a memory. Different memories share nothing.
struct Access {
  int32_t memory = 0;
  int64_t begin = 0;
  int64_t end = 0;
  bool is_written = false;
};

// By step: the earlier steps that have to end before it begins, ascending. Those that one of them follows
// anyway are left out. A step follows another if one of them writes what the other accesses.
std::vector<std::vector<size_t>> predecessors(std::span<const std::vector<Access>> steps);

}  // namespace oxy::plan
