#include "runtime/cuda/graphs/draw_places.h"

#include <ATen/cuda/PhiloxCudaState.h>

#include <algorithm>
#include <cstring>

namespace oxy::runtime {

namespace {

constexpr size_t kWordBytes = sizeof(uint64_t);

// A state as operators get it in a capture (at::PhiloxCudaState): addresses, and the start from there.
struct CapturedState {
  uint64_t seed = 0, offset = 0;
  uint64_t start = 0;
};

std::optional<CapturedState> state_at(const ParameterBytes& bytes, size_t offset) {
  using State = at::PhiloxCudaState;
  if (bytes.size() < offset + sizeof(State)) return std::nullopt;
  const std::byte* const begin = bytes.data() + offset;
  if (begin[offsetof(State, captured_)] != std::byte{1}) return std::nullopt;
  CapturedState state;
  std::memcpy(&state.seed, begin + offsetof(State, seed_), kWordBytes);
  std::memcpy(&state.offset, begin + offsetof(State, offset_), kWordBytes);
  std::memcpy(&state.start, begin + offsetof(State, offset_intragraph_), kWordBytes);
  return state;
}

size_t count_words(const CapturedNode& node, const CapturedGenerator& generator) {
  size_t result = 0;
  for (const ParameterBytes& bytes : node.parameters)
    for (size_t offset = 0; offset + kWordBytes <= bytes.size(); offset += kWordBytes) {
      uint64_t word = 0;
      std::memcpy(&word, bytes.data() + offset, kWordBytes);
      result += static_cast<size_t>(word == generator.seed || word == generator.offset);
    }
  return result;
}

// The states that start at `start`.
std::vector<DrawPlace> places_in(const CapturedNode& node, const CapturedGenerator& generator,
                                 uint64_t start) {
  std::vector<DrawPlace> result;
  for (size_t p = 0; p < node.parameters.size(); ++p)
    for (size_t offset = 0; offset < node.parameters[p].size(); offset += kWordBytes) {
      const std::optional<CapturedState> state = state_at(node.parameters[p], offset);
      if (state && state->seed == generator.seed && state->offset == generator.offset &&
          state->start == start)
        result.push_back({.node = 0, .parameter = p, .offset = offset, .draw = 0});
    }
  return result;
}

}  // namespace

std::vector<DrawPlace> find_draws(const std::vector<CapturedNode>& nodes, std::span<const DrawNodes> draws,
                                  std::span<const uint64_t> counts, const CapturedGenerator& generator) {
  std::vector<DrawPlace> result;
  uint64_t start = generator.first;
  for (size_t d = 0; d < draws.size(); ++d) {
    const size_t before = result.size();
    for (size_t n = draws[d].first; n < draws[d].end; ++n)
      for (DrawPlace place : places_in(nodes[n], generator, start)) {
        place.node = n;
        place.draw = d;
        result.push_back(place);
      }
    if (result.size() == before && counts[d] != 0)
      throw NotReplayable{"it draws random numbers in an unknown way", draws[d].first};
    start += counts[d];
  }
  constexpr size_t kWordsOfState = 2;  // the addresses
  for (size_t n = 0; n < nodes.size(); ++n) {
    const auto found = static_cast<size_t>(
        std::ranges::count_if(result, [&](const DrawPlace& place) { return place.node == n; }));
    if (count_words(nodes[n], generator) != found * kWordsOfState)
      throw NotReplayable{"it draws random numbers in an unknown way", n};
  }
  return result;
}

void set_draw(ParameterBytes& parameter, size_t offset, const GeneratorPosition& position) {
  const at::PhiloxCudaState state(position.seed, position.offset);
  std::memcpy(parameter.data() + offset, &state, sizeof state);
}

std::optional<CapturedGenerator> generator_of(const std::vector<CapturedNode>& nodes) {
  for (const CapturedNode& node : nodes)
    for (const ParameterBytes& bytes : node.parameters) {
      if (bytes.size() != sizeof(at::PhiloxCudaState)) continue;
      const std::optional<CapturedState> state = state_at(bytes, 0);
      if (state && state->start == 0) return CapturedGenerator{state->seed, state->offset, 0};
    }
  return std::nullopt;
}

}  // namespace oxy::runtime
