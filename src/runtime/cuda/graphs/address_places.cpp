#include "runtime/cuda/graphs/address_places.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

namespace oxy::runtime {

namespace {

constexpr size_t kWordBytes = sizeof(uintptr_t);

uintptr_t word_at(const ParameterBytes& bytes, size_t offset) {
  uintptr_t result = 0;
  std::memcpy(&result, bytes.data() + offset, std::min(kWordBytes, bytes.size() - offset));
  return result;
}

bool is_same_work(const CapturedNode& a, const CapturedNode& b) {
  if (a.kind != b.kind || a.parameters.size() != b.parameters.size()) return false;
  for (size_t i = 0; i < a.parameters.size(); ++i)
    if (a.parameters[i].size() != b.parameters[i].size()) return false;
  switch (a.kind) {
    case NodeKind::Kernel:
      return a.kernel.function == b.kernel.function && a.kernel.kernel == b.kernel.kernel &&
             std::ranges::equal(a.kernel.grid, b.kernel.grid) &&
             std::ranges::equal(a.kernel.block, b.kernel.block) &&
             a.kernel.shared_bytes == b.kernel.shared_bytes;
    case NodeKind::Copy:
      return a.copy.width == b.copy.width && a.copy.height == b.copy.height && a.copy.depth == b.copy.depth;
    case NodeKind::Fill:
      return a.fill.width == b.fill.width && a.fill.height == b.fill.height && a.fill.value == b.fill.value;
    case NodeKind::Empty:
      return true;
  }
  return false;
}

void require_same_work(const CapturedPass& a, const CapturedPass& b) {
  if (a.nodes.size() != b.nodes.size() || a.memories.size() != b.memories.size() ||
      a.results.size() != b.results.size())
    throw NotReplayable{"it does not do the same each time", {}};
  for (size_t n = 0; n < a.nodes.size(); ++n)
    if (!is_same_work(a.nodes[n], b.nodes[n])) throw NotReplayable{"it does not do the same each time", n};
  const auto is_same = [](const LoggedAllocation& x, const LoggedAllocation& y) {
    return x.first_node == y.first_node && x.end_node == y.end_node;
  };
  if (!std::ranges::equal(a.allocations, b.allocations, is_same))
    throw NotReplayable{"it does not allocate the same each time", {}};
}

// A memory of a node, as it lies in the two passes.
struct Memory {
  uintptr_t real = 0, decoy = 0;
  uintptr_t last = 0;  // the distance of the last address that belongs to it
  std::optional<size_t> movable;

  // Whether the words are the same address of it.
  bool has(uintptr_t real_word, uintptr_t decoy_word) const {
    return real_word - real <= last && real_word - real == decoy_word - decoy;
  }
  uintptr_t shift() const { return real - decoy; }
};

// A word of a node's parameters that differs between the passes, and is no address.
struct Difference {
  uintptr_t real = 0, decoy = 0;
};

bool is_distance(const Difference& word, const std::vector<Memory>& of_node) {
  return std::ranges::any_of(of_node, [&](const Memory& a) {
    return std::ranges::any_of(of_node, [&](const Memory& b) {
      return a.shift() != b.shift() && word.real - word.decoy == a.shift() - b.shift();
    });
  });
}

// Whether half of the word is half of an address of the memory, without so many of the address's last bits.
bool has_half(const Difference& word, const Memory& memory, int bits) {
  const auto is_it = [&](int from) {
    const auto real = static_cast<uint32_t>(word.real >> from);
    const auto decoy = static_cast<uint32_t>(word.decoy >> from);
    const uint32_t distance = real - static_cast<uint32_t>(memory.real >> bits);
    return real != decoy && distance <= memory.last >> bits &&
           distance == decoy - static_cast<uint32_t>(memory.decoy >> bits);
  };
  return is_it(0) || is_it(32);
}

// Some encodings leave out last bits of an address, which are zero.
bool has_shifted_half(const Difference& word, const Memory& memory) {
  constexpr int kMostBits = 20;
  for (int bits = 1; bits <= kMostBits; ++bits)
    if (has_half(word, memory, bits)) return true;
  return false;
}

// By allocation: the movable memory to which a replay writes instead.
using MovableOf = std::vector<std::optional<size_t>>;

MovableOf movable_of_allocations(const CapturedPass& pass) {
  MovableOf result(pass.allocations.size());
  for (const MadeResult& made : pass.results)
    for (size_t i = 0; i < pass.allocations.size(); ++i)
      if (made.end_node > 0 && pass.allocations[i].contains(made.address) &&
          pass.allocations[i].is_alive_at(made.end_node - 1))
        result[i] = made.memory;
  return result;
}

// Reads the parameters of one node: which memory each word that differs is an address of.
class NodeReader {
 public:
  NodeReader(const CapturedPass& decoy, const CapturedPass& real, const MovableOf& movable_of, size_t node)
      : node_(node) {
    for (size_t i = 0; i < real.allocations.size(); ++i) {
      const LoggedAllocation &here = real.allocations[i], &there = decoy.allocations[i];
      if (!here.is_alive_at(node)) continue;
      memories_.push_back(
          {here.address, there.address, static_cast<uintptr_t>(here.bytes) - 1, movable_of[i]});
    }
    for (size_t m = 0; m < real.memories.size(); ++m)
      memories_.push_back({real.memories[m].address, decoy.memories[m].address,
                           static_cast<uintptr_t>(real.memories[m].bytes), m});
  }

  std::vector<Place> read(const CapturedNode& here, const CapturedNode& there) {
    std::vector<Place> places;
    for (size_t p = 0; p < here.parameters.size(); ++p)
      for (size_t offset = 0; offset < here.parameters[p].size(); offset += kWordBytes) {
        const uintptr_t real = word_at(here.parameters[p], offset),
                        decoy = word_at(there.parameters[p], offset);
        if (real == decoy) continue;
        const auto memory =
            std::ranges::find_if(memories_, [&](const Memory& m) { return m.has(real, decoy); });
        if (memory == memories_.end()) {
          differences_.push_back({real, decoy});
          continue;
        }
        of_node_.push_back(*memory);
        if (memory->movable) places.push_back({p, offset, *memory->movable, real - memory->real});
      }
    std::ranges::for_each(differences_, [&](const Difference& word) { require_noise(word); });
    return places;
  }

 private:
  void require_noise(const Difference& word) const {
    // Half of an address that the node has as a whole, too, is left over from passing it on.
    const bool is_left_over =
        std::ranges::any_of(of_node_, [&](const Memory& known) { return has_half(word, known, 0); });
    const bool may_be_address =
        is_distance(word, of_node_) || std::ranges::any_of(memories_, [&](const Memory& memory) {
          return has_shifted_half(word, memory) || (!is_left_over && has_half(word, memory, 0));
        });
    if (may_be_address)
      throw NotReplayable{
          fmt::format("a parameter is not understood ({:#x}, {:#x} on trial)", word.real, word.decoy), node_};
  }

  size_t node_;
  std::vector<Memory> memories_;
  std::vector<Memory> of_node_;  // with an address among the parameters, one for each
  std::vector<Difference> differences_;
};

}  // namespace

std::vector<MovableNode> find_places(const CapturedPass& decoy, const CapturedPass& real) {
  require_same_work(decoy, real);
  const MovableOf movable_of = movable_of_allocations(real);
  std::vector<MovableNode> result;
  for (size_t n = 0; n < real.nodes.size(); ++n) {
    std::vector<Place> places = NodeReader(decoy, real, movable_of, n).read(real.nodes[n], decoy.nodes[n]);
    if (!places.empty()) result.push_back({n, real.nodes[n], std::move(places)});
  }
  return result;
}

}  // namespace oxy::runtime
