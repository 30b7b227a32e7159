#include "backend/cpu/split.h"

#include <algorithm>

namespace oxy::backend::cpu {

namespace {

constexpr double kWorthSplitting = 60000;  // nanoseconds
constexpr int64_t kSlicesPerThread = 4;

// A divisor of n of at least `least` that is a multiple of 64, the smallest such; 0 if there is none.
int64_t chunk_of(int64_t n, int64_t least) {
  for (int64_t pieces = n / std::max<int64_t>(least, 64); pieces > 1; --pieces)
    if (n % pieces == 0 && n / pieces % 64 == 0) return n / pieces;
  return 0;
}

}  // namespace

void keep_order(backend::LoopNest& nest) {
  const size_t lanes = nest.axis == backend::VectorAxis::Outer && nest.outer.size() > 1 ? 1 : 0;
  const auto separates = [](const backend::LoopVariable& loop, const Expr& offset) {
    const auto linear = sym::linear_in(offset, loop.variable.variable_id());
    return linear && !(linear->first == Expr(0));
  };
  for (const backend::Phase& phase : nest.phases)
    for (const backend::ElementStore& store : phase.stores)
      if (store.in_order)
        for (size_t k = 0; k + lanes < nest.outer.size(); ++k)
          if (!separates(nest.outer[k], store.offset)) nest.serial = true;
}

void split_for_threads(backend::LoopNest& nest, int threads) {
  if (threads < 2 || nest.serial || nest.tiled || nest.axis != backend::VectorAxis::Outer ||
      nest.outer.size() < 2)
    return;
  for (const backend::Phase& phase : nest.phases)
    if (std::ranges::any_of(phase.stores, &backend::ElementStore::in_order)) return;
  int64_t slices = backend::estimate(backend::launch_extent(nest));
  auto extent = nest.outer.back().extent.as_constant();
  if (!extent || slices >= kSlicesPerThread * threads) return;
  if (backend::nanoseconds_per_iteration(nest) * static_cast<double>(slices) < kWorthSplitting) return;
  int64_t pieces = kSlicesPerThread * threads / std::max<int64_t>(slices, 1);
  int64_t chunk = chunk_of(*extent, *extent / std::max<int64_t>(pieces, 2));
  if (chunk == 0) return;
  backend::LoopVariable lane = nest.outer.back();
  int64_t position = backend::variable_position(lane.variable);
  // The halves need ids of their own: positions of outer loops are below those of phases by a wide margin
  // only here.
  constexpr int64_t kSplitPositions = 100;
  backend::LoopVariable block{backend::nest_variable(kSplitPositions + position, *extent / chunk),
                              *extent / chunk};
  backend::LoopVariable within{backend::nest_variable(kSplitPositions + position + 1, chunk), chunk};
  backend::substitute(nest, lane.variable, block.variable * chunk + within.variable);
  nest.outer.back() = block;
  nest.outer.push_back(within);
}

}  // namespace oxy::backend::cpu
