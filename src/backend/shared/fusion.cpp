#include "backend/shared/fusion.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "backend/shared/buffer_bytes.h"
#include "backend/shared/loop_matching.h"
#include "backend/shared/nest_expressions.h"
#include "base/error.h"
#include "loop/devices.h"

namespace oxy::backend {

namespace {

using loop::Op;

constexpr double kMaxGroupWork = 260;
constexpr size_t kMaxCandidates = 12;
constexpr size_t kMaxReadersRemembered = 4;
constexpr size_t kMaxSmallRemembered = 8;
// Memory is read in pieces of so many bytes at least.
constexpr double kSectorBytes = 32;
constexpr double kMostAcrossRows = 0.4;
// What runs so many steps apart is not joined if that holds memory in between (kMemoryWorthAKernel).
constexpr int32_t kFarSteps = 64;

double inst_work(const loop::Inst& inst) {
  if (inst.op == Op::Constant) return 0.1;
  bool heavy = inst.op >= Op::Exp && inst.op <= Op::Erfc && inst.op != Op::Sqrt && inst.op != Op::Reciprocal;
  return heavy ? 5 : 1;
}

double iterations(const std::vector<Expr>& extents) {
  double n = 1;
  for (const Expr& e : extents) n *= static_cast<double>(estimate(e));
  return n;
}

// Whether `row`, over the producer's loops from `depth` on, takes every value of [0, n), n their iterations.
std::optional<Expr> dense_row(const Item& producer, const Expr& row, size_t depth) {
  std::vector<std::pair<Expr, Expr>> strides;  // stride, extent
  Expr count = 1;
  for (size_t k = depth; k < producer.loop_count; ++k) {
    auto stride = stride_of(row, nest_variable(static_cast<int64_t>(k), producer.extents[k]));
    if (!stride) return std::nullopt;
    strides.emplace_back(*stride, producer.extents[k]);
    count = count * producer.extents[k];
  }
  std::ranges::sort(strides,
                    [](const auto& a, const auto& b) { return estimate(a.first) < estimate(b.first); });
  Expr expected = 1;
  for (auto& [stride, extent] : strides) {
    if (!(stride == expected)) return std::nullopt;
    expected = expected * extent;
  }
  return count;
}

// Whether what the item accesses is contiguous along the loop along which `access` is, as far as it is known.
bool is_contiguous_like(const Item& item, const Expr& access) {
  const auto is_unit = [](const Expr& stride) { return stride == Expr(1) || stride == Expr(-1); };
  for (size_t k = 0; k < item.extents.size(); ++k) {
    const Expr variable = nest_variable(static_cast<int64_t>(k), item.extents[k]);
    const auto along = stride_of(access, variable);
    if (!along || !is_unit(*along)) continue;
    const auto is_like = [&](const Expr& offset) {
      const auto stride = stride_of(offset, variable);
      return !stride || is_unit(*stride) || *stride == Expr(0);
    };
    for (const loop::Inst& inst : item.insts)
      if (inst.op == Op::Load && !is_like(item.expressions[inst.index])) return false;
    if (!std::ranges::all_of(item.stores, is_like, &ItemStore::offset)) return false;
  }
  return true;
}

class Fuser {
 public:
  Fuser(const loop::Program& program, IdVector<StepId, Item>& items, const Dependencies& dependencies,
        const FusionOptions& options)
      : program_(program), items_(items), dependencies_(dependencies), options_(options) {
    for (const loop::Buffer& buffer : program.buffers) bytes_.add(estimated_bytes(buffer));
    for (const StepId step : items.ids()) {
      Group group;
      group.steps = {step};
      group.position = step.number();
      group.is_extern = std::holds_alternative<loop::ExternCall>(program.steps[step]);
      const Item& item = items[step];
      group.extents.assign(item.extents.begin(),
                           item.extents.begin() + static_cast<std::ptrdiff_t>(item.loop_count));
      for (const loop::Inst& inst : item.insts) group.work += inst_work(inst);
      group.work += 2 * static_cast<double>(item.stores.size());
      group_of_.add(groups_.add(std::move(group)));
      const auto* const computation = std::get_if<loop::Computation>(&program.steps[step]);
      devices_.add(computation ? device_of(program, *computation) : Device{});
    }
    recent_readers_.resize(program.buffers.size());
  }

  IdVector<GroupId, Group> run() {
    if (options_.fuse)
      for (const StepId step : items_.ids()) take_in(step);
    IdVector<GroupId, Group> result;
    for (Group& group : groups_)
      if (!group.steps.empty()) result.add(std::move(group));
    std::ranges::sort(result, [](const Group& x, const Group& y) { return x.position < y.position; });
    return result;
  }

 private:
  void take_in(StepId step) {
    if (group(group_of_[step]).is_extern) return;
    for (StepId candidate : candidates(step)) {
      const GroupId a = group_of_[candidate], b = group_of_[step];
      if (a != b) try_merge(a, b);
    }
    for (const loop::Inst& inst : items_[step].insts)
      if (inst.op == Op::Load) remember_reader(inst.buffer, step);
    const Group& own = group(group_of_[step]);
    if (traffic(own) < launch_bytes(own)) remember_small(step);
  }

  void remember_small(StepId step) {
    if (recent_small_.size() == kMaxSmallRemembered) recent_small_.erase(recent_small_.begin());
    recent_small_.push_back(step);
  }

  void remember_reader(BufferId buffer, StepId step) {
    auto& readers = recent_readers_[buffer];
    if (!readers.empty() && readers.back() == step) return;
    if (readers.size() == kMaxReadersRemembered) readers.erase(readers.begin());
    readers.push_back(step);
  }

  // Steps whose groups might take in this one: producers, those that read the same buffers, and small ones
  // over the same loops, best first.
  std::vector<StepId> candidates(StepId step) {
    std::map<GroupId, double> gains;
    auto add = [&](StepId other, double gain) {
      const GroupId group = group_of_[other];
      if (group != group_of_[step] && !groups_[group].is_extern) gains[group] += gain;
    };
    const Item& item = items_[step];
    std::unordered_set<BufferId> seen;
    for (const loop::Inst& inst : item.insts) {
      if (inst.op != Op::Load || !seen.insert(inst.buffer).second) continue;
      const BufferUse& use = dependencies_.buffers[inst.buffer];
      double size = bytes_[inst.buffer];
      if (!use.writers.empty()) add(use.writers.back(), 2 * size + 1);
      for (StepId reader : recent_readers_[inst.buffer]) add(reader, size);
    }
    for (StepId small : recent_small_)
      if (items_[small].extents == item.extents) add(small, 0);
    std::vector<std::pair<double, GroupId>> ranked;
    for (auto& [group, gain] : gains) ranked.emplace_back(gain, group);
    std::ranges::sort(ranked, [](const auto& x, const auto& y) {
      return x.first != y.first ? x.first > y.first : x.second > y.second;
    });
    std::vector<StepId> result;
    for (auto& [gain, group] : ranked) {
      if (result.size() == kMaxCandidates) break;
      result.push_back(groups_[group].steps.front());
    }
    return result;
  }

  Group& group(GroupId id) { return groups_[id]; }
  int32_t position_of(StepId step) { return group(group_of_[step]).position; }
  bool in(StepId step, GroupId a, GroupId b) {
    const GroupId g = group_of_[step];
    return g == a || g == b;
  }

  // The position of the merged group, if no order of the others stands against it. `a` runs before `b`.
  std::optional<int32_t> merged_position(GroupId a, GroupId b) {
    auto can_sink = [&] {
      for (StepId step : group(a).steps)
        for (StepId user : dependencies_.after[step])
          if (!in(user, a, b) && position_of(user) < group(b).position) return false;
      return true;
    };
    auto can_rise = [&] {
      for (StepId step : group(b).steps)
        for (StepId needed : dependencies_.before[step])
          if (!in(needed, a, b) && position_of(needed) > group(a).position) return false;
      return true;
    };
    if (can_sink()) return group(b).position;
    if (can_rise()) return group(a).position;
    return std::nullopt;
  }

  struct Edge {
    const Item* producer;
    const Item* consumer;
    BufferId buffer;
    Expr store;
    Expr load;
  };

  // What b's members read of a's results; nothing if a buffer stands between that is never fused across.
  std::optional<std::vector<Edge>> edges(const Group& a, const Group& b) {
    std::unordered_map<BufferId, std::pair<const Item*, const ItemStore*>> stored;
    std::unordered_set<BufferId> touched, read;
    for (StepId step : a.steps) {
      const Item& item = items_[step];
      for (const ItemStore& store : item.stores) {
        stored[store.buffer] = {&item, &store};
        touched.insert(store.buffer);
      }
      for (const loop::Inst& inst : item.insts)
        if (inst.op == Op::Load) read.insert(inst.buffer);
    }
    touched.insert(read.begin(), read.end());
    std::vector<Edge> found;
    auto irregular = [&](BufferId id) {
      return dependencies_.buffers[id].is_irregular && touched.contains(id);
    };
    const auto writes_another_part = [&](BufferId id) {
      return options_.costs.fuses_parts && program_.buffers[id].is_of_parts && !read.contains(id);
    };
    for (StepId step : b.steps) {
      const Item& item = items_[step];
      for (const ItemStore& store : item.stores)
        if (irregular(store.buffer) && !writes_another_part(store.buffer)) return std::nullopt;
      for (const loop::Inst& inst : item.insts) {
        if (inst.op != Op::Load) continue;
        if (irregular(inst.buffer)) return std::nullopt;
        auto it = stored.find(inst.buffer);
        if (it == stored.end()) continue;
        found.push_back(
            {it->second.first, &item, inst.buffer, it->second.second->offset, item.expressions[inst.index]});
      }
    }
    return found;
  }

  double traffic(const Group& g) {
    double total = 0;
    for_each_access(g, [&](BufferId id, bool) { total += bytes_of(id); });
    return total;
  }

  double saved_bytes(const Group& a, const Group& b) {
    std::unordered_set<BufferId> of_a;
    for (StepId step : a.steps) {
      const Item& item = items_[step];
      for (const loop::Inst& inst : item.insts)
        if (inst.op == Op::Load) of_a.insert(inst.buffer);
      for (const ItemStore& store : item.stores) of_a.insert(store.buffer);
    }
    double saved = 0;
    for (StepId step : b.steps)
      for (const loop::Inst& inst : items_[step].insts)
        if (inst.op == Op::Load && of_a.erase(inst.buffer)) saved += bytes_[inst.buffer];
    return saved;
  }

  // Below how many bytes the group runs with others over the same loops.
  double launch_bytes(const Group& g) const {
    const bool keeps_all = std::ranges::all_of(g.steps, [&](StepId step) {
      return std::ranges::all_of(items_[step].stores, [&](const ItemStore& store) {
        return dependencies_.buffers[store.buffer].is_kept;
      });
    });
    return keeps_all ? std::max(options_.costs.launch_bytes, options_.costs.result_launch_bytes)
                     : options_.costs.launch_bytes;
  }

  // Whether an access takes pieces of rows, iterations of the first `depth` loops, that are shorter than a
  // sector. The last of these loops may run along memory instead.
  bool is_across_rows(const Item& item, BufferId buffer, const Expr& offset, size_t depth) const {
    bool moves = false;
    for (size_t k = depth > 0 ? depth - 1 : 0; k < item.loop_count; ++k) {
      const auto stride = stride_of(offset, nest_variable(static_cast<int64_t>(k), item.extents[k]));
      const double run = static_cast<double>(estimate(item.extents[k])) *
                         static_cast<double>(item_size(program_.buffers[buffer].dtype));
      const bool is_along = stride && (*stride == Expr(1) || *stride == Expr(-1));
      if (!stride || (is_along && run >= kSectorBytes)) return false;
      moves = moves || (k >= depth && !(*stride == Expr(0)));
    }
    return moves;
  }

  // Whether that is so of most bytes that the group's pointwise items move. Apart from a reduction they run
  // along memory, or in tiles.
  bool moves_across_rows(const Group& g, size_t depth) {
    double across = 0;
    std::unordered_set<BufferId> seen;
    const auto add = [&](const Item& item, BufferId buffer, const Expr& offset) {
      if (is_across_rows(item, buffer, offset, depth) && seen.insert(buffer).second) across += bytes_[buffer];
    };
    for (const StepId step : g.steps) {
      const Item& item = items_[step];
      if (item.is_reduction() || item.loop_count <= depth) continue;
      for (const ItemStore& store : item.stores) add(item, store.buffer, store.offset);
      for (const loop::Inst& inst : item.insts)
        if (inst.op == Op::Load) add(item, inst.buffer, item.expressions[inst.index]);
    }
    return across > kMostAcrossRows * traffic(g);
  }

  int loads_across(const Group& g) const {
    int across = 0;
    for (const StepId step : g.steps) across += backend::loads_across(items_[step]);
    return across;
  }

  // Whether one reduces rows and the other columns. A square tensor has the same loops for both, but in one
  // kernel the loads of one of them would go from row to row.
  bool reduce_across_each_other(const Group& a, const Group& b) const {
    return loads_across(a) * loads_across(b) < 0;
  }

  bool is_profitable(const Group& a, const Group& b, size_t depth, const std::vector<Edge>& flow) {
    double traffic_a = traffic(a);
    double traffic_b = traffic(b);
    double total = traffic_a + traffic_b;
    std::vector<Expr> shared(a.extents.begin(), a.extents.begin() + static_cast<std::ptrdiff_t>(depth));
    double units = iterations(shared);
    bool same_loops = depth == a.extents.size() && depth == b.extents.size();
    if (same_loops && total > options_.costs.launch_bytes && reduce_across_each_other(a, b)) return false;
    if (depth == 0 && !same_loops && total > options_.costs.serial_bytes) return false;
    if (!same_loops && total > options_.costs.parallel_bytes && units < 2.0 * options_.parallelism &&
        total > units * options_.costs.iteration_bytes)
      return false;
    if (same_loops && flow.empty() && total < std::min(launch_bytes(a), launch_bytes(b)) && same_spaces(a, b))
      return true;
    double saved = saved_bytes(a, b);
    if (saved <= 0 && total > 0) return false;
    if (flow.empty() && saved < 0.25 * std::min(traffic_a, traffic_b)) return false;
    if (flow.empty() && !same_spaces(a, b)) return false;
    if (!same_loops) {
      if (options_.costs.needs_shared_loops && moves_across_rows(b, depth)) return false;
      double row = 0;
      for (const Edge& edge : flow)
        if (edge.store != edge.load || edge.producer->is_reduction() == false)
          row += bytes_[edge.buffer] / std::max(units, 1.0);
      if (row > static_cast<double>(options_.costs.cache_bytes)) return false;
    }
    return true;
  }

  // How much more memory is in use between a and b, which runs much later, if a waits for b: what a reads is
  // held, what it makes for b is not.
  double held_by_waiting(GroupId a, GroupId b) {
    double held = 0;
    for_each_access(group(a), [&](BufferId id, bool is_stored) {
      if (!is_held_before(b, a, id)) held += is_stored ? -bytes_of(id) : bytes_of(id);
    });
    return held;
  }

  // The same if b runs with a: its results are held, unless they vanish into the kernel, what it reads is
  // not.
  double held_by_coming_early(GroupId a, GroupId b) {
    double held = 0;
    for_each_access(group(b), [&](BufferId id, bool is_stored) {
      const BufferUse& use = use_of(id);
      const bool vanishes =
          !use.is_kept && std::ranges::all_of(use.readers, [&](StepId reader) { return in(reader, a, b); });
      if (is_stored && !vanishes) held += bytes_of(id);
      if (!is_stored && !is_held_before(b, a, id)) held -= bytes_of(id);
    });
    return held;
  }

  // Whether memory is in use until shortly before b at least, whatever becomes of a and b.
  bool is_held_before(GroupId b, GroupId a, BufferId id) {
    const BufferUse& use = use_of(id);
    return program_.buffers[id].kind != loop::BufferKind::Intermediate || use.is_kept ||
           std::ranges::any_of(use.readers, [&](StepId reader) {
             return !in(reader, a, b) && position_of(reader) >= group(b).position - kFarSteps;
           });
  }

  // fn(buffer, is_stored) once a buffer; what is stored comes first.
  template <class Fn>
  void for_each_access(const Group& g, Fn fn) {
    std::unordered_set<BufferId> seen;
    for (StepId step : g.steps) {
      const Item& item = items_[step];
      for (const ItemStore& store : item.stores)
        if (seen.insert(store.buffer).second) fn(store.buffer, true);
      for (const loop::Inst& inst : item.insts)
        if (inst.op == Op::Load && seen.insert(inst.buffer).second) fn(inst.buffer, false);
    }
  }

  const BufferUse& use_of(BufferId id) const { return dependencies_.buffers[id]; }
  double bytes_of(BufferId id) const { return bytes_[id]; }

  // The loops around the group's reductions.
  size_t reduction_depth(const Group& g) const {
    size_t depth = 0;
    for (const StepId step : g.steps) {
      const Item& item = items_[step];
      if (item.is_reduction()) depth = std::max(depth, item.loop_count);
    }
    return depth;
  }

  // All members have the same loops and reduction loops (or none).
  bool same_spaces(const Group& a, const Group& b) {
    const Item& x = items_[a.steps.front()];
    const Item& y = items_[b.steps.front()];
    return x.extents == y.extents;
  }

  // How many loops the groups share as one kernel at `position`, if that is legal and pays.
  std::optional<size_t> merged_depth(GroupId a, GroupId b, int32_t position, const std::vector<Edge>& flow) {
    const Group& x = group(a);
    const Group& y = group(b);
    size_t common = 0;
    while (common < x.extents.size() && common < y.extents.size() && x.extents[common] == y.extents[common])
      ++common;
    std::optional<size_t> depth;
    const size_t least =
        options_.costs.needs_shared_loops ? std::max(reduction_depth(x), reduction_depth(y)) : 0;
    for (size_t d = common + 1; d-- > least && !depth;) {
      bool legal = std::ranges::all_of(
          flow, [&](const Edge& edge) { return reads_own_row(*edge.producer, edge.store, edge.load, d); });
      if (legal) depth = d;
    }
    if (!depth || !is_profitable(x, y, *depth, flow)) return std::nullopt;
    if (y.position - x.position > kFarSteps) {
      const double held = position == y.position ? held_by_waiting(a, b) : held_by_coming_early(a, b);
      if (held > kMemoryWorthAKernel) return std::nullopt;
    }
    return depth;
  }

  // The items of the group, all pointwise over the same loops, written over those of `reducing`, which
  // accesses at `accessed` what they access at `access`. Empty if it runs through that in another way.
  std::vector<Item> over_other_loops(const Group& pointwise, const Expr& access, const Item& reducing,
                                     const Expr& accessed) {
    std::vector<Item> items;
    for (const StepId step : pointwise.steps) {
      const Item& item = items_[step];
      if (item.is_reduction() || item.extents != pointwise.extents) return {};
      std::optional<Item> moved = over_loops_of(reducing, accessed, item, access);
      if (!moved) return {};
      items.push_back(std::move(*moved));
    }
    return items;
  }

  // A group with its items over other loops; none if there are no such items.
  struct Moved {
    GroupId group;
    std::vector<Item> items;
  };

  // `a` over the loops of a reduction of `b` that reads it, or `b` over those of a scan of `a` if it reads
  // that or what is made of it.
  Moved over_loops_of_reduction(GroupId a, GroupId b, const std::vector<Edge>& flow) {
    const auto reader = std::ranges::find_if(flow, [](const Edge& e) { return e.consumer->is_reduction(); });
    if (reader != flow.end())
      return {a, over_other_loops(group(a), reader->store, *reader->consumer, reader->load)};
    if (std::ranges::none_of(group(a).steps, [&](StepId step) { return items_[step].is_scan(); })) return {};
    const auto read = std::ranges::find_if(
        flow, [](const Edge& e) { return e.producer->is_scan() || !e.producer->is_reduction(); });
    if (read == flow.end()) return {};
    auto items = over_other_loops(group(b), read->load, *read->producer, read->store);
    // What is written in columns where the scan writes rows is a kernel of its own, which turns tiles.
    if (!std::ranges::all_of(items, [&](const Item& i) { return is_contiguous_like(i, read->store); }))
      return {};
    return {b, std::move(items)};
  }

  void try_merge(GroupId first, GroupId second) {
    GroupId a = first, b = second;
    if (devices_[a] != devices_[b]) return;
    if (group(a).position > group(b).position) std::swap(a, b);
    Group& x = group(a);
    if (x.work + group(b).work > kMaxGroupWork) return;
    const auto position = merged_position(a, b);
    if (!position) return;
    const auto flow = edges(x, group(b));
    if (!flow) return;
    if (const auto depth = merged_depth(a, b, *position, *flow)) return merge(a, b, *position, *depth);
    if (!options_.costs.needs_shared_loops) return;
    Moved moved = over_loops_of_reduction(a, b, *flow);
    if (moved.items.empty()) return;
    Group& pointwise = group(moved.group);
    std::vector<Expr> extents = moved.items.front().extents;
    const auto exchange = [&] {
      for (size_t k = 0; k < moved.items.size(); ++k) std::swap(items_[pointwise.steps[k]], moved.items[k]);
      std::swap(pointwise.extents, extents);
    };
    exchange();
    if (const auto depth = merged_depth(a, b, *position, *edges(x, group(b))))
      merge(a, b, *position, *depth);
    else
      exchange();
  }

  void merge(GroupId a, GroupId b, int32_t position, size_t depth) {
    Group& x = group(a);
    Group& y = group(b);
    x.extents.resize(depth);
    x.steps.insert(x.steps.end(), y.steps.begin(), y.steps.end());
    std::ranges::sort(x.steps);
    x.position = position;
    x.work += y.work;
    for (StepId step : y.steps) group_of_[step] = a;
    y.steps.clear();
  }

  const loop::Program& program_;
  IdVector<StepId, Item>& items_;
  const Dependencies& dependencies_;
  const FusionOptions& options_;
  IdVector<BufferId, double> bytes_;
  IdVector<GroupId, Group> groups_;
  IdVector<GroupId, Device> devices_;  // where they run; the host for extern calls
  IdVector<StepId, GroupId> group_of_;
  IdVector<BufferId, std::vector<StepId>> recent_readers_;
  std::vector<StepId> recent_small_;
};

}  // namespace

bool reads_own_row(const Item& producer, const Expr& store, const Expr& load, size_t depth) {
  if (producer.is_scan()) return store == load;
  if (store == load && !producer.is_reduction()) return true;
  if (depth == 0) return true;
  if (!(without_inner(store, depth) == without_inner(load, depth))) return false;
  Expr stored_row = without_outer(store, depth);
  Expr loaded_row = without_outer(load, depth);
  // Both must be sums of a part in the shared loops and one in their own.
  if (!(without_inner(store, depth) + stored_row == store) ||
      !(without_inner(load, depth) + loaded_row == load))
    return false;
  auto count = dense_row(producer, stored_row, depth);
  return count && loaded_row.range().low >= 0 && sym::known_less(loaded_row, *count);
}

IdVector<GroupId, Group> fuse(const loop::Program& program, IdVector<StepId, Item>& items,
                              const Dependencies& dependencies, const FusionOptions& options) {
  return Fuser(program, items, dependencies, options).run();
}

}  // namespace oxy::backend
