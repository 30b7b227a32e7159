#include "backend/shared/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <ranges>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "aten/opaque.h"
#include "aten/operators.h"
#include "backend/shared/buffer_bytes.h"
#include "backend/shared/dependencies.h"
#include "backend/shared/direct_writes.h"
#include "backend/shared/fusion.h"
#include "backend/shared/memory.h"
#include "backend/shared/reductions/repeated_rows.h"
#include "backend/shared/reductions/row_sums.h"
#include "backend/shared/reductions/tuned_splits.h"
#include "backend/shared/scattered_inputs.h"
#include "base/error.h"
#include "loop/devices.h"

namespace oxy::backend {

namespace {

using loop::kNoBuffer;

constexpr GroupId kNoGroup;
constexpr size_t kMostLines = 4;  // of a launch, that an error names
constexpr GroupId kEnd(std::numeric_limits<int32_t>::max());

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

// Drops the computations and pure calls that nobody needs.
void remove_dead_steps(loop::Program& program) {
  IdVector<BufferId, bool> needed(program.buffers.size());
  auto need = [&](const loop::BufferView& view) {
    if (view.buffer != kNoBuffer) needed[view.buffer] = true;
  };
  for (const loop::ProgramOutput& output : program.outputs) need(output.view);
  for (const loop::ProgramMutation& mutation : program.mutations) need(mutation.value);
  IdVector<StepId, loop::Step> kept;
  for (const StepId step : program.steps.ids() | std::views::reverse) {
    bool alive = false;
    if (auto* c = std::get_if<loop::Computation>(&program.steps[step])) {
      for (const loop::Store& store : c->stores)
        alive = alive || (store.buffer != kNoBuffer && needed[store.buffer]);
      for (const loop::Inst& inst : c->body.insts)
        alive = alive || (inst.op == loop::Op::BindIndex && inst.checked);  // it may raise
      if (alive)
        for (const loop::Inst& inst : c->body.insts)
          if (inst.op == loop::Op::Load) needed[inst.buffer] = true;
    } else {
      auto& call = std::get<loop::ExternCall>(program.steps[step]);
      // Without outputs that anybody reads it was kept for what it does, or for the error that it may raise.
      alive =
          call.may_raise || std::ranges::all_of(call.outputs, [](BufferId id) { return id == kNoBuffer; }) ||
          (call.op && (draws_numbers(*call.op, call.args) || call.op->is_mutating() || is_opaque(*call.op)));
      for (BufferId id : call.outputs) alive = alive || (id != kNoBuffer && needed[id]);
      if (alive) for_each_view(call, need);
    }
    if (alive) kept.add(std::move(program.steps[step]));
  }
  std::ranges::reverse(kept);
  program.steps = std::move(kept);
}

plan::View to_view(const loop::BufferView& view) {
  return {in_plan(view.buffer), view.sizes, view.strides, view.offset};
}

bool returns_aliases(const OperatorSchema& op) {
  return op.is_mutating() ||
         std::ranges::any_of(op.returns, [](const ReturnInfo& r) { return r.alias_set >= 0; });
}

class Scheduler {
 public:
  Scheduler(loop::Program program, const Backend& backend, const ScheduleOptions& options, Splits splits)
      : program_(std::move(program)),
        backend_(backend),
        options_(options),
        arena_device_(loop::main_device(program_)),
        splits_(std::move(splits)) {}

  // Everything up to the drafts of kernels.
  void draft() {
    remove_dead_steps(program_);
    if (!backend_.reports_indices()) scatter_into_inputs(program_);
    IdVector<StepId, Item> items;
    make_groups(items);
    if (options_.fuse) direct_ = find_direct_writes(program_, dependencies_, groups_);
    group_of_.resize(program_.steps.size());
    for (const GroupId g : groups_.ids())
      for (StepId step : groups_[g].steps) group_of_[step] = g;
    mark_fixed();
    make_drafts(items);
  }
  Drafts drafts() const { return {drafts_.begin(), drafts_.end()}; }
  const Splits& splits() const { return splits_; }

  // After draft().
  plan::Plan finish() {
    find_lifetimes();
    if (options_.fuse) reuse_in_place();
    make_buffers();
    PrintedKernels printed = backend_.print(drafts_, options_);
    plan_.kernels = std::move(printed.kernels);
    for (const GroupId g : groups_.ids()) {
      if (groups_[g].is_extern)
        add_call(call_of(groups_[g]));
      else if (auto& launch = printed.launches[g.index()])
        add_launch(g, std::move(*launch));
      add_frees(g);
    }
    add_ends();
    plan_.positive = std::move(program_.positive);
    return std::move(plan_);
  }

 private:
  // What the schedule decides for a buffer of the program.
  struct Placement {
    GroupId first;  // that uses it; none if no group does
    GroupId last;   // kEnd: it is used after the last group
    plan::Storage storage = plan::Storage::Arena;
    std::optional<Expr> arena_offset;
    BufferId shares;  // the buffer whose memory it takes over, or itself
    // The input that it overwrites, the output or temporary whose memory it uses from the beginning, the
    // extern call's result whose memory it takes over, or itself.
    BufferId became;
  };

  // Sums of columns are fused with what reduces the rows, or made on their own. Rows are made anew by kernels
  // that need nothing else for that, or once.
  void make_groups(IdVector<StepId, Item>& items) {
    const FusionOptions fusion{options_.parallelism, options_.fuse, backend_.fusion_costs()};
    const SplitCosts costs = backend_.split_costs();
    std::optional<loop::Program> lowered;
    if (costs.row_programs > 0 || costs.repeated_row > 0) lowered = program_;
    std::set<StepId> made_once;  // of the steps as they were lowered
    std::set<StepId> apart;      // of the steps with repeated rows
    for (;;) {
      const RepeatedRows rows = options_.fuse ? repeat_rows(program_, costs, made_once) : RepeatedRows();
      if (!rows.empty()) remove_dead_steps(program_);
      splits_.made.clear();
      items = normalise(program_, costs, splits_, apart);
      dependencies_ = find_dependencies(program_, items);
      groups_ = fuse(program_, items, dependencies_, fusion);
      const std::set<StepId> between = rows_between_kernels(rows, dependencies_, groups_);
      const std::set<StepId> alone = sums_without_rows(items, groups_, costs);
      if (between.empty() && alone.empty()) return;
      made_once.insert(between.begin(), between.end());
      if (between.empty())
        apart.insert(alone.begin(), alone.end());
      else
        apart.clear();
      program_ = *lowered;
    }
  }

  void mark_fixed() {
    for (const BufferId id : program_.buffers.ids())
      program_.buffers[id].is_fixed = program_.buffers[id].kind != loop::BufferKind::Intermediate &&
                                      dependencies_.buffers[id].writers.empty();
    std::set<int32_t> mutated;
    for (const loop::ProgramMutation& mutation : program_.mutations) mutated.insert(mutation.input);
    for (loop::Buffer& buffer : program_.buffers)
      if (buffer.kind == loop::BufferKind::Input && mutated.contains(buffer.source)) buffer.is_fixed = false;
    for (const loop::Step& step : program_.steps)
      if (const auto* call = std::get_if<loop::ExternCall>(&step);
          call != nullptr && (!call->op || call->op->is_mutating() || is_opaque(*call->op)))
        for_each_view(*call, [&](const loop::BufferView& view) {
          if (view.buffer != kNoBuffer) program_.buffers[view.buffer].is_fixed = false;
        });
  }

  const loop::ExternCall& call_of(const Group& group) const {
    return std::get<loop::ExternCall>(program_.steps[group.steps[0]]);
  }

  void make_drafts(const IdVector<StepId, Item>& items) {
    drafts_.resize(groups_.size());
    for (const GroupId g : groups_.ids()) {
      if (groups_[g].is_extern) continue;
      const auto is_needed = [&](BufferId id) {
        const BufferUse& use = dependencies_.buffers[id];
        if (use.is_kept || use.writers.size() > 1) return true;
        return std::ranges::any_of(use.readers, [&](StepId step) { return group_of_[step] != g; });
      };
      drafts_[g] = backend_.draft(program_, items, groups_[g], is_needed, options_);
      if (options_.log) *options_.log += fmt::format("step {}: {}", g, drafts_[g]->print());
    }
  }

  template <class Fn>
  void for_each_buffer(GroupId g, Fn fn) {  // fn(buffer, is_written)
    if (groups_[g].is_extern) {
      const loop::ExternCall& call = call_of(groups_[g]);
      for_each_view(call, [&](const loop::BufferView& view) { fn(view.buffer, false); });
      for (BufferId id : call.outputs)
        if (id != kNoBuffer) fn(id, true);
      return;
    }
    drafts_[g]->for_each_buffer(fn);
  }

  void find_lifetimes() {
    placements_.resize(program_.buffers.size());
    for (const GroupId g : groups_.ids())
      for_each_buffer(g, [&](BufferId id, bool) {
        Placement& placement = placements_[id];
        if (placement.first == kNoGroup) placement.first = g;
        placement.last = std::max(placement.last, g);
      });
    for (const BufferId id : placements_.ids()) {
      Placement& placement = placements_[id];
      if (dependencies_.buffers[id].is_kept) placement.last = kEnd;
      placement.shares = placement.became = id;
      if (program_.buffers[id].kind == loop::BufferKind::Input) placement.storage = plan::Storage::Input;
      if (program_.buffers[id].kind == loop::BufferKind::Constant)
        placement.storage = plan::Storage::Constant;
    }
    for (const loop::ProgramOutput& output : program_.outputs)
      if (output.view.buffer != kNoBuffer && output.kind == graph::OutputKind::Value) {
        plan::Storage& storage = placements_[output.view.buffer].storage;
        if (storage == plan::Storage::Arena) storage = plan::Storage::Output;
      }
    place_outside_of_arena();
    mark_extern_owned();
  }

  // The result of a view that is called shows the memory of its argument for as long as somebody holds it. So
  // that memory is no part of the arena, and nothing takes it over. An operator that counts elements from the
  // beginning of its argument's storage gets one that begins with the argument.
  void place_outside_of_arena() {
    for (const loop::Step& step : program_.steps) {
      const auto* call = std::get_if<loop::ExternCall>(&step);
      if (!call || !call->op) continue;
      const bool shows = call->op->is_view();
      if (!shows && call->op != op::as_strided_scatter()) continue;
      for_each_view(*call, [&](const loop::BufferView& view) {
        if (view.buffer == kNoBuffer) return;
        Placement& placement = placements_[view.buffer];
        if (shows) placement.last = kEnd;
        if (placement.storage == plan::Storage::Arena) placement.storage = plan::Storage::Output;
      });
    }
  }

  // Results of calls that cannot fill given memory, or whose sizes are known only afterwards, stay with the
  // call.
  void mark_extern_owned() {
    std::unordered_set<int64_t> known;
    auto learn = [&](const Expr& e) {
      for (const Expr& v : sym::variables(e)) known.insert(v.variable_id());
    };
    for (const loop::Buffer& buffer : program_.buffers) {
      if (buffer.kind == loop::BufferKind::Intermediate) continue;
      for (const Expr& e : buffer.sizes) learn(e);
      for (const Expr& e : *buffer.strides) learn(e);
      learn(buffer.offset);
    }
    for (const loop::Step& step : program_.steps) {
      auto* call = std::get_if<loop::ExternCall>(&step);
      if (!call) continue;
      for (BufferId id : call->outputs) {
        if (id == kNoBuffer) continue;
        made_by_call_.insert(id);
        bool is_known = true;
        for (const Expr& e : program_.buffers[id].sizes)
          for (const Expr& v : sym::variables(e)) is_known = is_known && known.contains(v.variable_id());
        if (!call->writes_in_place || !is_known) placements_[id].storage = plan::Storage::Extern;
        if (returns_aliases(*call->op)) shown_elsewhere_.insert(id);
      }
    }
  }

  void reuse_in_place() {
    for (const GroupId g : groups_.ids()) {
      if (groups_[g].is_extern) continue;
      auto dies = [&](BufferId id) {
        const Placement& placement = placements_[id];
        const bool is_ours = placement.storage == plan::Storage::Arena ||
                             (placement.storage == plan::Storage::Input && g >= direct_.first_group) ||
                             (placement.storage == plan::Storage::Extern && !shown_elsewhere_.contains(id));
        return is_ours && placement.last == g;
      };
      auto is_new = [&](BufferId id) {
        const plan::Storage storage = storage_of(id);
        return (storage == plan::Storage::Arena || storage == plan::Storage::Output) &&
               placements_[id].first == g;
      };
      auto same_size = [&](BufferId input, BufferId output) {
        const auto overwritten = direct_.input_of.find(output);
        const bool is_direct = overwritten != direct_.input_of.end() && g >= direct_.first_group;
        if (is_direct || storage_of(input) == plan::Storage::Input)
          return is_direct && overwritten->second == input;
        if (storage_of(input) == plan::Storage::Extern) return same_layout(input, output);
        if (storage_of(output) == plan::Storage::Output) return can_become(input, output);
        if (is_elsewhere(input)) return same_layout(input, output);
        return span_elements(program_.buffers[input]) == span_elements(program_.buffers[output]);
      };
      for (auto [input, output] : drafts_[g]->write_in_place(dies, is_new, same_size)) {
        if (storage_of(input) == plan::Storage::Input)
          overwrite(input, output);
        else if (storage_of(input) == plan::Storage::Extern)
          take_over(input, output);
        else if (storage_of(output) == plan::Storage::Output)
          become(input, output);
        else
          placements_[output].shares = placements_[input].shares;
      }
    }
    for (auto [value, input] : direct_.input_of) {
      const GroupId made = placements_[value].first;
      if (made >= direct_.first_group && placements_[input].last < made &&
          storage_of(value) == plan::Storage::Arena)
        overwrite(input, value);
    }
  }

  plan::Storage storage_of(BufferId id) const { return placements_[id].storage; }

  void overwrite(BufferId input, BufferId value) {
    placements_[value].became = input;
    placements_[value].storage = plan::Storage::Input;
  }

  // Whether the memory of an intermediate, and of all that share it, may be an output's from the beginning.
  bool can_become(BufferId intermediate, BufferId output) const {
    return std::ranges::all_of(placements_.ids(), [&](BufferId id) {
      return placements_[id].shares != placements_[intermediate].shares || same_layout(id, output);
    });
  }

  bool same_layout(BufferId a, BufferId b) const {
    const loop::Buffer &x = program_.buffers[a], &y = program_.buffers[b];
    return x.dtype == y.dtype && x.sizes == y.sizes && x.strides == y.strides;
  }

  // The memory of what an extern call returned lives on as `output`.
  void take_over(BufferId returned, BufferId output) {
    const BufferId owner = place_of(returned);
    placements_[output].became = owner;
    placements_[output].storage = plan::Storage::Extern;
    placements_[owner].last = placements_[output].last;
  }

  void become(BufferId intermediate, BufferId output) {
    const BufferId root = placements_[intermediate].shares;
    for (Placement& placement : placements_) {
      if (placement.shares != root) continue;
      placement.storage = plan::Storage::Output;
      placement.became = output;
    }
  }

  BufferId place_of(BufferId id) const { return id == kNoBuffer ? id : placements_[id].became; }

  plan::View placed(loop::BufferView view) const {
    view.buffer = place_of(view.buffer);
    return to_view(view);
  }

  Expr buffer_bytes(BufferId id) const {
    const loop::Buffer& buffer = program_.buffers[id];
    return span_elements(buffer) * static_cast<int64_t>(item_size(buffer.dtype));
  }

  // Beside the device of the arena.
  bool is_elsewhere(BufferId id) const {
    const Device device = program_.buffers[id].device;
    return !is_on_host(device) && device != arena_device_;
  }

  // Memory that is no part of the arena, as long as somebody holds it.
  std::vector<Interval> other_memory() const {
    std::vector<Interval> others;
    for (const BufferId id : program_.buffers.ids()) {
      const Placement& placement = placements_[id];
      if (placement.storage == plan::Storage::Arena || placement.became != id || is_elsewhere(id)) continue;
      Interval interval{buffer_bytes(id), placement.first.number(), placement.last.number()};
      const bool is_input = placement.storage == plan::Storage::Input;
      const auto source = static_cast<size_t>(program_.buffers[id].source);
      const bool is_released =
          is_input && source < options_.released_inputs.size() && options_.released_inputs[source];
      if (is_input || placement.storage == plan::Storage::Constant) interval.first = 0;
      if ((is_input && !is_released) || placement.storage == plan::Storage::Constant)
        interval.last = kEnd.number();
      others.push_back(std::move(interval));
    }
    return others;
  }

  // The arena is one device's: intermediates of others have memory of their own while they are needed.
  void place_intermediates_elsewhere() {
    std::unordered_map<BufferId, Placement*> roots;  // by the buffer whose memory is shared
    for (const BufferId id : program_.buffers.ids()) {
      Placement& placement = placements_[id];
      if (placement.storage != plan::Storage::Arena || placement.first == kNoGroup || !is_elsewhere(id))
        continue;
      Placement& root = placements_[placement.shares];
      roots.emplace(placement.shares, &root);
      root.last = std::max(root.last, placement.last);
      placement.became = placement.shares;
    }
    for (const BufferId id : program_.buffers.ids())
      if (const auto root = roots.find(placements_[id].shares); root != roots.end())
        placements_[id].storage =
            root->second->last == kEnd ? plan::Storage::Output : plan::Storage::Temporary;
  }

  void place_intermediates() {
    place_intermediates_elsewhere();
    std::vector<Block> blocks;
    std::vector<BufferId> roots;                    // by block
    std::unordered_map<BufferId, size_t> block_of;  // by the buffer whose memory is shared
    for (const BufferId id : program_.buffers.ids()) {
      const Placement& placement = placements_[id];
      if (placement.storage != plan::Storage::Arena || placement.first == kNoGroup) continue;
      const int32_t first = placement.first.number(), last = placement.last.number();
      const bool is_kept = placement.last == kEnd;
      auto [it, is_new] = block_of.try_emplace(placement.shares, blocks.size());
      if (is_new) blocks.push_back({{buffer_bytes(id), first, last}, !is_kept});
      if (is_new) roots.push_back(placement.shares);
      Block& block = blocks[it->second];
      block.interval.first = std::min(block.interval.first, first);
      block.interval.last = std::max(block.interval.last, last);
      // A call fills a tensor of the buffer's layout; kernels take addresses.
      block.may_be_temporary = block.may_be_temporary && !is_kept &&
                               (same_layout(placement.shares, id) || !made_by_call_.contains(id));
    }
    MemoryPlan memory = plan_memory(blocks, other_memory(), static_cast<int32_t>(groups_.size()));
    plan_.arena_bytes = memory.arena_bytes;
    plan_.definitions = std::move(memory.definitions);
    for (Placement& placement : placements_) {
      const auto it = block_of.find(placement.shares);
      if (placement.storage != plan::Storage::Arena || placement.first == kNoGroup || it == block_of.end())
        continue;
      placement.arena_offset = memory.offsets[it->second];
      if (placement.arena_offset) continue;
      const BufferId root = roots[it->second];
      placement.storage = plan::Storage::Temporary;
      placements_[root].last = GroupId(blocks[it->second].interval.last);
      placement.became = root;
    }
  }

  void make_buffers() {
    place_intermediates();
    for (const BufferId id : program_.buffers.ids()) {
      const loop::Buffer& buffer = program_.buffers[id];
      const Placement& placement = placements_[id];
      plan::Buffer out{buffer.name, buffer.dtype,      buffer.device, buffer.sizes,
                       {},          placement.storage, buffer.source, 0};
      out.strides = buffer.strides ? *buffer.strides : contiguous_strides(buffer.sizes);
      if (placement.became != id)
        out.storage = plan::Storage::Arena, out.sizes = {0},
        out.strides = {1};  // another buffer is its memory
      if (placement.storage == plan::Storage::Arena) {
        if (placement.arena_offset)
          out.arena_offset = *placement.arena_offset;
        else
          out.sizes = {0}, out.strides = {1};  // it has vanished into a kernel
      }
      if (buffer.kind == loop::BufferKind::Input)
        plan_.input_count = std::max(plan_.input_count, buffer.source + 1);
      plan_.buffers.add(std::move(out));
    }
  }

  plan::CallArgument to_argument(const loop::ExternArgument& argument) const {
    return std::visit(
        Overloaded{[&](const loop::BufferView& view) -> plan::CallArgument { return placed(view); },
                   [&](const std::vector<std::optional<loop::BufferView>>& list) -> plan::CallArgument {
                     std::vector<std::optional<plan::View>> views;
                     for (const auto& view : list)
                       views.push_back(view ? std::optional(placed(*view)) : std::nullopt);
                     return views;
                   },
                   [](const auto& other) -> plan::CallArgument { return other; }},
        argument);
  }

  void add_call(const loop::ExternCall& call) {
    plan::Call out;
    out.op = call.op;
    for (const loop::ExternArgument& argument : call.args) out.args.push_back(to_argument(argument));
    for (const BufferId id : call.outputs) out.outputs.push_back(in_plan(place_of(id)));
    plan_.steps.emplace_back(std::move(out));
  }

  void add_launch(GroupId g, PrintedLaunch printed) {
    std::vector<plan::BufferId>& buffers = printed.launch.buffers;
    for (const BufferId id : printed.buffers) buffers.push_back(in_plan(place_of(id)));
    for_each_buffer(g, [&](BufferId id, bool is_written) {
      const plan::BufferId place = in_plan(place_of(id));
      std::vector<plan::BufferId>& written = printed.launch.written;
      // Values that pass between phases in registers are no buffers of the plan.
      if (is_written && std::ranges::find(buffers, place) != buffers.end() &&
          std::ranges::find(written, place) == written.end())
        written.push_back(place);
    });
    printed.launch.origin = origin_of(g, printed.launch.kernel);
    plan_.steps.emplace_back(std::move(printed.launch));
  }

  std::shared_ptr<const plan::LaunchOrigin> origin_of(GroupId g, plan::KernelId kernel) const {
    plan::LaunchOrigin origin{plan_.kernels.at(kernel).name, {}};
    for (const StepId step : groups_[g].steps) {
      const graph::LocationId location = std::get<loop::Computation>(program_.steps[step]).location;
      if (!program_.locations.contains(location)) continue;
      const std::string& line = program_.locations[location];
      if (origin.lines.size() < kMostLines && std::ranges::find(origin.lines, line) == origin.lines.end())
        origin.lines.push_back(line);
    }
    return std::make_shared<const plan::LaunchOrigin>(std::move(origin));
  }

  void add_frees(GroupId g) {
    std::unordered_set<BufferId> seen;
    for_each_buffer(g, [&](BufferId id, bool) {
      const BufferId owner = place_of(id);
      const Placement& placement = placements_[owner];
      const bool is_owned =
          placement.storage == plan::Storage::Extern || placement.storage == plan::Storage::Temporary;
      if (is_owned && placement.last == g && seen.insert(owner).second)
        plan_.steps.emplace_back(plan::Free{in_plan(owner)});
    });
  }

  void add_ends() {
    for (const loop::ProgramOutput& output : program_.outputs)
      plan_.outputs.push_back({placed(output.view), output.dtype, output.kind, output.alias});
    for (const loop::ProgramMutation& mutation : program_.mutations) {
      plan_.mutations.push_back({mutation.input, placed(mutation.value), mutation.is_seen});
      plan_.input_count = std::max(plan_.input_count, mutation.input + 1);
    }
  }

  loop::Program program_;
  const Backend& backend_;
  const ScheduleOptions& options_;
  Device arena_device_;
  Splits splits_;
  Dependencies dependencies_;
  IdVector<GroupId, Group> groups_;
  IdVector<StepId, GroupId> group_of_;
  IdVector<GroupId, std::unique_ptr<KernelDraft>> drafts_;  // null: an extern call
  IdVector<BufferId, Placement> placements_;
  DirectWrites direct_;
  std::unordered_set<BufferId> made_by_call_;
  std::unordered_set<BufferId> shown_elsewhere_;  // results of extern calls that others may see too
  plan::Plan plan_;
};

std::map<Divided, PartCount> tuned_splits_of(const loop::Program& program, const Backend& backend,
                                             ScheduleOptions options) {
  options.log = nullptr;
  return tuned_splits(backend, [&](Splits splits) {
    const auto scheduler = std::make_shared<Scheduler>(program, backend, options, std::move(splits));
    scheduler->draft();
    return DividedProgram{scheduler, scheduler->drafts(), scheduler->splits()};
  });
}

}  // namespace

plan::Plan schedule(loop::Program program, const Backend& backend, const ScheduleOptions& options) {
  Splits splits;
  if (options.tune && backend.can_time()) splits.tuned = tuned_splits_of(program, backend, options);
  Scheduler scheduler(std::move(program), backend, options, std::move(splits));
  scheduler.draft();
  return scheduler.finish();
}

}  // namespace oxy::backend
