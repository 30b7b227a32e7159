// Where in the parameters of captured work the state of PyTorch's generator stands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/cuda/graphs/captured_graph.h"
#include "runtime/device/generator_position.h"

namespace oxy::runtime {

// What the generator passes to operators in a capture.
struct CapturedGenerator {
  uintptr_t seed = 0, offset = 0;  // addresses
  uint64_t first = 0;              // where the first operator starts, from the number at `offset`
};

struct DrawPlace {
  size_t node = 0;
  size_t parameter = 0;
  size_t offset = 0;  // bytes
  size_t draw = 0;    // by draw
};

// Nodes [first, end) of a pass that one operator has enqueued, which draws.
struct DrawNodes {
  size_t first = 0;
  size_t end = 0;
};

// `draws`: in the order in which they were recorded. `counts`: by draw, how much it takes from the generator.
// Throws NotReplayable if a draw has no place, or if a node has the state in another form than is known here.
std::vector<DrawPlace> find_draws(const std::vector<CapturedNode>& nodes, std::span<const DrawNodes> draws,
                                  std::span<const uint64_t> counts, const CapturedGenerator& generator);

// Makes the operator start at `position`, as it does outside of a capture.
void set_draw(ParameterBytes& parameter, size_t offset, const GeneratorPosition& position);

// What the generator has passed to the only operator of a pass, which has one kernel. Nothing if it has
// passed something else than addresses.
std::optional<CapturedGenerator> generator_of(const std::vector<CapturedNode>& nodes);

}  // namespace oxy::runtime
