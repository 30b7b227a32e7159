#include "runtime/cpu/arena_pool.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <vector>

#include "runtime/cpu/memory.h"

namespace oxy::runtime {

namespace {

// Smaller ones are not worth their page faults (0.1 to 0.2 ms a MiB).
constexpr int64_t kUnusedWorthFreeing = int64_t{16} << 20;

class ArenaPool : public ArenaSource {
 public:
  Arena take(int64_t bytes, c10::DeviceIndex /*index*/) override {
    Arena too_small;
    {
      const std::scoped_lock lock(mutex_);
      const auto fit = std::ranges::lower_bound(idle_, bytes, {}, &Arena::bytes);
      if (fit != idle_.end()) {
        Arena arena = std::move(*fit);
        idle_.erase(fit);
        return arena;
      }
      if (!idle_.empty()) {
        too_small = std::move(idle_.back());
        idle_.pop_back();
      }
    }
    too_small.memory.clear();  // before the new one is there
    return {allocate_on_cpu(bytes), bytes};
  }

  void release(Arena arena) noexcept override {
    const std::scoped_lock lock(mutex_);
    if (arena.bytes > largest_need()) return;
    try {
      idle_.insert(std::ranges::lower_bound(idle_, arena.bytes, {}, &Arena::bytes), std::move(arena));
    } catch (const std::bad_alloc&) {  // then it is not kept
    }
  }

  std::shared_ptr<void> announce(int64_t bytes) override {
    if (bytes == 0) return nullptr;
    {
      const std::scoped_lock lock(mutex_);
      needs_.insert(bytes);
    }
    return {this, [bytes](ArenaPool* pool) { pool->withdraw(bytes); }};
  }

  void drop_idle_above(int64_t bytes) override {
    std::vector<Arena> dropped;  // freed without the lock
    const std::scoped_lock lock(mutex_);
    move_idle_above(bytes + kUnusedWorthFreeing, dropped);
  }

 private:
  int64_t largest_need() const { return needs_.empty() ? 0 : *needs_.rbegin(); }

  void withdraw(int64_t bytes) {
    std::vector<Arena> dropped;  // freed without the lock
    const std::scoped_lock lock(mutex_);
    needs_.erase(needs_.find(bytes));
    move_idle_above(largest_need(), dropped);
  }

  void move_idle_above(int64_t bytes, std::vector<Arena>& dropped) {
    while (!idle_.empty() && idle_.back().bytes > bytes) {
      dropped.push_back(std::move(idle_.back()));
      idle_.pop_back();
    }
  }

  std::mutex mutex_;
  std::multiset<int64_t> needs_;
  std::vector<Arena> idle_;  // by size
};

}  // namespace

ArenaSource& arena_pool() {
  static auto* once = new ArenaPool;
  return *once;
}

}  // namespace oxy::runtime
