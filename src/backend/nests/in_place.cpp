#include "backend/nests/in_place.h"

#include <optional>

namespace oxy::backend {

namespace {

using backend::Array;
using backend::LoopNest;
using backend::Phase;

// The one phase that stores to the array by elements, and where; nothing if its stores are of another kind.
struct StorePlace {
  size_t phase = 0;
  Expr offset;
};

std::optional<StorePlace> store_place(const LoopNest& nest, ArrayId array) {
  std::optional<StorePlace> place;
  for (size_t p = 0; p < nest.phases.size(); ++p) {
    const Phase& phase = nest.phases[p];
    for (const backend::ElementStore& store : phase.stores) {
      if (store.array != array) continue;
      if (place || store.mode != loop::StoreMode::Set) return std::nullopt;
      place = StorePlace{p, store.offset};
    }
    for (const backend::Reduction& reduction : phase.reductions)
      for (const backend::ResultStore& store : reduction.stores)
        if (store.array == array) return std::nullopt;
  }
  return place;
}

bool reads_ahead(const LoopNest& nest, ArrayId array, const StorePlace& place) {
  for (size_t p = 0; p < nest.phases.size(); ++p)
    for (const NestInst& inst : nest.phases[p].insts) {
      if (inst.op != loop::Op::Load || inst.buffer != array) continue;
      const Expr& offset = nest.phases[p].expressions[inst.index];
      if (p > place.phase || !(offset == place.offset)) return false;
    }
  return true;
}

}  // namespace

std::vector<std::pair<BufferId, BufferId>> write_in_place(
    LoopNest& nest, const std::function<bool(BufferId)>& dies, const std::function<bool(BufferId)>& is_new,
    const std::function<bool(BufferId, BufferId)>& same_size) {
  std::vector<std::pair<BufferId, BufferId>> pairs;
  for (const ArrayId o : nest.arrays.ids()) {
    Array& output = nest.arrays[o];
    if (output.kind != ArrayKind::Parameter || !output.is_written || output.is_read || !is_new(output.buffer))
      continue;
    auto place = store_place(nest, o);
    if (!place) continue;
    for (const ArrayId i : nest.arrays.ids()) {
      Array& input = nest.arrays[i];
      if (input.kind != ArrayKind::Parameter || !input.is_read || input.is_written ||
          input.dtype != output.dtype || !dies(input.buffer) || !same_size(input.buffer, output.buffer) ||
          !reads_ahead(nest, i, *place))
        continue;
      for (backend::ElementStore& store : nest.phases[place->phase].stores)
        if (store.array == o) store.array = i;
      pairs.emplace_back(input.buffer, output.buffer);
      input.buffer = output.buffer;
      input.is_written = true;
      output.kind = ArrayKind::Dead;
      output.is_written = false;
      break;
    }
  }
  return pairs;
}

}  // namespace oxy::backend
