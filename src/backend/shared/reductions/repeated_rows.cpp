#include "backend/shared/reductions/repeated_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <ranges>
#include <utility>

#include "backend/shared/buffer_uses.h"
#include "backend/shared/reductions/computation_loads.h"
#include "loop/devices.h"

namespace oxy::backend {

namespace {

using loop::Computation;
using loop::LoopVariable;
using loop::ReductionKind;

constexpr int64_t kRowVariables = int64_t{1} << 47;  // loop variables of copies

bool depends_on(const Expr& e, const std::vector<LoopVariable>& loops) {
  const std::vector<Expr> variables = sym::variables(e);
  return std::ranges::any_of(loops, [&](const LoopVariable& l) {
    return !(l.extent == Expr(1)) && std::ranges::find(variables, l.variable) != variables.end();
  });
}

class Finder {
 public:
  Finder(const loop::Program& program, const SplitCosts& costs)
      : program_(program), costs_(costs), uses_(uses_of(program)) {}

  struct Rows {
    std::set<StepId> members;
    std::set<StepId> readers;
  };

  // What is made of the row that `first` reduces; nothing if something else than products needs it.
  std::optional<Rows> rows_from(StepId first) const {
    const Computation* c = computation(first);
    if (c == nullptr || !reduces_one_row(*c)) return std::nullopt;
    Rows rows{.members = {first}, .readers = {}};
    std::vector<StepId> added = {first};
    while (!added.empty()) {
      const StepId step = added.back();
      added.pop_back();
      const auto add = [&](StepId other) {
        if (rows.members.insert(other).second) added.push_back(other);
      };
      const Computation& member = *computation(step);
      bool fits = true;
      for_each_load(member, [&](BufferId id, const auto&) {
        const ProgramUse& use = uses_[id];
        fits = fits && use.writers.size() <= 1 &&
               (use.writers.empty() || program_.buffers[id].kind == loop::BufferKind::Intermediate);
        if (!fits || use.writers.empty()) return;
        const Computation* writer = computation(use.writers[0]);
        if (writer != nullptr && reduces_one_row(*writer)) add(use.writers[0]);
      });
      for (const loop::Store& store : member.stores) {
        if (!fits || store.mode != loop::StoreMode::Set || store.buffer == loop::kNoBuffer)
          return std::nullopt;
        const ProgramUse& use = uses_[store.buffer];
        if (use.results > 0 || use.writers.size() != 1) return std::nullopt;
        for (const StepId reader : use.readers) {
          const Computation* reading = computation(reader);
          if (reading == nullptr) return std::nullopt;
          if (reads_for_many(*reading, store.buffer))
            rows.readers.insert(reader);
          else if (is_one_row(*reading))
            add(reader);
          else
            return std::nullopt;
        }
      }
      if (!fits) return std::nullopt;
    }
    return rows.readers.empty() || !are_cheap(rows) ? std::nullopt : std::optional(rows);
  }

 private:
  const Computation* computation(StepId step) const {
    return std::get_if<Computation>(&program_.steps[step]);
  }

  bool is_short(const std::vector<LoopVariable>& loops) const {
    const auto count = iterations(loops);
    return count && *count <= costs_.repeated_row;
  }

  bool reduces_one_row(const Computation& c) const {
    return c.kind != ReductionKind::None && !loop::is_scan(c.kind) && iterations(c.loops) == 1 &&
           is_short(c.reduction) && has_plain_positions(c);
  }

  bool is_one_row(const Computation& c) const {
    if (c.kind != ReductionKind::None) return reduces_one_row(c);
    return is_short(c.loops) && has_plain_positions(c);
  }

  static bool has_plain_positions(const Computation& c) {
    return std::ranges::none_of(c.body.insts,
                                [](const loop::Inst& inst) { return inst.op == loop::Op::BindIndex; });
  }

  // Whether the computation reduces a row for each of many results, and reads the same of the buffer for all.
  bool reads_for_many(const Computation& c, BufferId buffer) const {
    const auto results = iterations(c.loops);
    if (c.kind == ReductionKind::None || loop::is_scan(c.kind) || !results || *results < costs_.few_rows ||
        !is_short(c.reduction))
      return false;
    bool is_same = true;
    for_each_load(c, [&](BufferId id, const std::vector<Expr>& index) {
      const auto moves = [&](const Expr& e) { return depends_on(e, c.loops); };
      if (id == buffer) is_same = is_same && std::ranges::none_of(index, moves);
    });
    return is_same;
  }

  // All programs together read the row from caches, while memory delivers what the products read besides.
  bool are_cheap(const Rows& rows) const {
    int64_t bytes = 0;
    for (const StepId step : rows.members) {
      const Computation& c = *computation(step);
      for_each_load(c, [&](BufferId id, const auto&) {
        const bool is_made = !uses_[id].writers.empty() && rows.members.contains(uses_[id].writers[0]);
        const int64_t count = *iterations(c.loops) * *iterations(c.reduction);
        if (!is_made) bytes += count * static_cast<int64_t>(item_size(program_.buffers[id].dtype));
      });
    }
    return std::ranges::all_of(rows.readers, [&](StepId reader) {
      return *iterations(computation(reader)->loops) * bytes <= costs_.repeated_bytes;
    });
  }

  const loop::Program& program_;
  const SplitCosts& costs_;
  IdVector<BufferId, ProgramUse> uses_;
};

// The program's steps with copies of rows before their readers.
class Repeater {
 public:
  explicit Repeater(loop::Program& program) : program_(program) {}

  // By reader: the members of the rows that it reads, in order.
  RepeatedRows repeat(const std::map<StepId, std::map<StepId, std::set<StepId>>>& members_of) {
    IdVector<StepId, loop::Step> steps;
    steps.reserve(program_.steps.size());
    RepeatedRows repeated;
    for (const StepId step : program_.steps.ids()) {
      const auto found = members_of.find(step);
      if (found == members_of.end()) {
        steps.add(program_.steps[step]);
        continue;
      }
      Computation reader = std::get<Computation>(program_.steps[step]);
      std::map<BufferId, BufferId> copies;
      for (const auto& [first, members] : found->second)
        for (const StepId member : members) {
          Computation copy = with_own_variables(std::get<Computation>(program_.steps[member]));
          for (loop::Store& store : copy.stores) {
            const BufferId buffer = copy_of(store.buffer, reader.loops);
            copies.emplace(store.buffer, buffer);
            repeated[first].push_back(buffer);
            store.buffer = buffer;
            store.index = with_loops(std::move(store.index), reader.loops);
          }
          read_copies(copy, copies, reader.loops);
          copy.loops.insert(copy.loops.begin(), reader.loops.begin(), reader.loops.end());
          steps.add(std::move(copy));
        }
      read_copies(reader, copies, reader.loops);
      steps.add(std::move(reader));
    }
    program_.steps = std::move(steps);
    return repeated;
  }

 private:
  // The computation over loop variables that no other one has.
  static Computation with_own_variables(Computation c) {
    std::map<int64_t, Expr> renamed;
    for (auto* loops : {&c.loops, &c.reduction})
      for (LoopVariable& l : *loops) {
        if (l.variable.kind() != sym::Kind::Variable) continue;
        const auto id = kRowVariables + static_cast<int64_t>(renamed.size());
        const Expr variable = Expr::variable(l.variable.variable_name(), id, l.variable.range());
        renamed.emplace(std::exchange(l.variable, variable).variable_id(), variable);
      }
    const auto rename = [&](Expr& e) {
      e = sym::substitute(e, [&](int64_t id) {
        const auto found = renamed.find(id);
        return found == renamed.end() ? std::nullopt : std::optional(found->second);
      });
    };
    for (auto& index : c.body.indices) std::ranges::for_each(index, rename);
    for (loop::Store& store : c.stores) std::ranges::for_each(store.index, rename);
    if (c.counted) rename(*c.counted);
    return c;
  }

  static std::vector<Expr> with_loops(std::vector<Expr> index, const std::vector<LoopVariable>& loops) {
    std::vector<Expr> variables;
    for (const LoopVariable& l : loops) variables.push_back(l.variable);
    index.insert(index.begin(), variables.begin(), variables.end());
    return index;
  }

  BufferId copy_of(BufferId id, const std::vector<LoopVariable>& loops) {
    const loop::Buffer& original = program_.buffers[id];
    loop::Buffer copy{.name = fmt::format("row{}", program_.buffers.next_id()),
                      .dtype = original.dtype,
                      .sizes = original.sizes,
                      .device = original.device};
    std::vector<Expr> extents;
    for (const LoopVariable& l : loops) extents.push_back(l.extent);
    copy.sizes.insert(copy.sizes.begin(), extents.begin(), extents.end());
    return program_.buffers.add(std::move(copy));
  }

  // Lets the computation read the copies where it reads what they are copies of.
  static void read_copies(Computation& c, const std::map<BufferId, BufferId>& copies,
                          const std::vector<LoopVariable>& loops) {
    for (loop::Inst& inst : c.body.insts) {
      if (inst.op != loop::Op::Load) continue;
      const auto copy = copies.find(inst.buffer);
      if (copy == copies.end()) continue;
      inst.buffer = copy->second;
      inst.index = c.body.indices.add(with_loops(c.body.indices[inst.index], loops));
    }
  }

  loop::Program& program_;
};

}  // namespace

RepeatedRows repeat_rows(loop::Program& program, const SplitCosts& costs, const std::set<StepId>& apart) {
  if (costs.repeated_row == 0) return {};
  const Finder finder(program, costs);
  std::map<StepId, std::map<StepId, std::set<StepId>>> members_of;  // by reader, by first step
  std::set<StepId> repeated;
  for (const StepId step : program.steps.ids()) {
    if (repeated.contains(step)) continue;
    auto rows = finder.rows_from(step);
    const auto is_apart = [&](StepId member) { return apart.contains(member); };
    if (!rows || std::ranges::any_of(rows->members, is_apart)) continue;
    repeated.insert(rows->members.begin(), rows->members.end());
    for (const StepId reader : rows->readers) members_of[reader].emplace(step, rows->members);
  }
  return members_of.empty() ? RepeatedRows{} : Repeater(program).repeat(members_of);
}

std::set<StepId> rows_between_kernels(const RepeatedRows& rows, const Dependencies& dependencies,
                                      const IdVector<GroupId, Group>& groups) {
  std::set<StepId> found;
  if (rows.empty()) return found;
  std::map<StepId, GroupId> group_of;
  for (const GroupId g : groups.ids())
    for (const StepId step : groups[g].steps) group_of.emplace(step, g);
  for (const auto& [first, buffers] : rows)
    for (const BufferId buffer : buffers) {
      const BufferUse& use = dependencies.buffers[buffer];
      const auto is_elsewhere = [&](StepId reader) {
        return group_of.at(reader) != group_of.at(use.writers.at(0));
      };
      if (std::ranges::any_of(use.readers, is_elsewhere)) found.insert(first);
    }
  return found;
}

}  // namespace oxy::backend
