#include "runtime/arena_pool.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <vector>

#include "runtime/tensors.h"

namespace oxy::runtime {

namespace {

struct Pool {
  std::mutex mutex;
  std::multiset<int64_t> needs;
  std::vector<Arena> idle;  // by size

  int64_t largest_need() const { return needs.empty() ? 0 : *needs.rbegin(); }
};

// Smaller ones are not worth their page faults (0.1 to 0.2 ms a MiB).
constexpr int64_t kUnusedWorthFreeing = int64_t{16} << 20;

Pool& pool() {
  static auto* once = new Pool;  // never destroyed: threads may run plans while the process ends
  return *once;
}

}  // namespace

ArenaNeed::ArenaNeed(int64_t bytes) : bytes_(bytes) {
  if (bytes_ == 0) return;
  const std::scoped_lock lock(pool().mutex);
  pool().needs.insert(bytes_);
}

ArenaNeed::~ArenaNeed() {
  if (bytes_ == 0) return;
  std::vector<Arena> dropped;  // freed without the lock
  const std::scoped_lock lock(pool().mutex);
  pool().needs.erase(pool().needs.find(bytes_));
  auto& idle = pool().idle;
  while (!idle.empty() && idle.back().bytes > pool().largest_need()) {
    dropped.push_back(std::move(idle.back()));
    idle.pop_back();
  }
}

Arena take_arena(int64_t bytes) {
  Arena too_small;
  {
    const std::scoped_lock lock(pool().mutex);
    auto& idle = pool().idle;
    const auto fit = std::ranges::lower_bound(idle, bytes, {}, &Arena::bytes);
    if (fit != idle.end()) {
      Arena arena = std::move(*fit);
      idle.erase(fit);
      return arena;
    }
    if (!idle.empty()) {
      too_small = std::move(idle.back());
      idle.pop_back();
    }
  }
  too_small.memory.clear();  // before the new one is there
  return {allocate_memory(bytes), bytes};
}

void release_arena(Arena arena) noexcept {
  const std::scoped_lock lock(pool().mutex);
  if (arena.bytes > pool().largest_need()) return;
  auto& idle = pool().idle;
  try {
    idle.insert(std::ranges::lower_bound(idle, arena.bytes, {}, &Arena::bytes), std::move(arena));
  } catch (const std::bad_alloc&) {  // then it is not kept
  }
}

void drop_idle_arenas_above(int64_t bytes) {
  std::vector<Arena> dropped;  // freed without the lock
  const std::scoped_lock lock(pool().mutex);
  auto& idle = pool().idle;
  while (!idle.empty() && idle.back().bytes > bytes + kUnusedWorthFreeing) {
    dropped.push_back(std::move(idle.back()));
    idle.pop_back();
  }
}

}  // namespace oxy::runtime
