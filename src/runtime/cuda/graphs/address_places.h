// Where in the parameters of captured work the addresses of movable memories stand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/cuda/graphs/captured_graph.h"
#include "runtime/device/device_graph.h"

namespace oxy::runtime {

struct Place {
  size_t parameter = 0;
  size_t offset = 0;       // bytes
  size_t movable = 0;      // by movable memory
  uintptr_t distance = 0;  // bytes from the memory's first
};

struct MovableNode {
  size_t number = 0;  // among the nodes of the pass
  CapturedNode node;  // of the real pass
  std::vector<Place> places;
};

// Finds them by comparing two passes over the same work: one with decoys in the places of the movable
// memories, and one with the memories themselves. The passes differ in addresses alone, so a word that
// differs is the address of a movable memory, or of memory that was allocated on the way. Or it is noise:
// nobody has set the bytes between the members of a struct, and nobody reads them. Throws NotReplayable if
// the passes are not the same work, or if a word may be an address in another form than as a whole.
std::vector<MovableNode> find_places(const CapturedPass& decoy, const CapturedPass& real);

}  // namespace oxy::runtime
