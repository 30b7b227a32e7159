#include "backend/shared/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "aten/opaque.h"
#include "backend/shared/dependencies.h"
#include "backend/shared/direct_writes.h"
#include "backend/shared/fusion.h"
#include "backend/shared/memory.h"
#include "backend/shared/split_reductions.h"
#include "base/error.h"

namespace oxy::backend {

namespace {

using loop::kNoBuffer;

constexpr int32_t kEnd = std::numeric_limits<int32_t>::max();

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

// Drops the computations and pure calls that nobody needs.
void remove_dead_steps(loop::Program& program) {
  std::vector<bool> needed(program.buffers.size());
  auto need = [&](const loop::BufferView& view) {
    if (view.buffer != kNoBuffer) needed[static_cast<size_t>(view.buffer)] = true;
  };
  for (const loop::ProgramOutput& output : program.outputs) need(output.view);
  for (const loop::ProgramMutation& mutation : program.mutations) need(mutation.value);
  std::vector<loop::Step> kept;
  for (size_t k = program.steps.size(); k-- > 0;) {
    bool alive = false;
    if (auto* c = std::get_if<loop::Computation>(&program.steps[k])) {
      for (const loop::Store& store : c->stores)
        alive = alive || (store.buffer != kNoBuffer && needed[static_cast<size_t>(store.buffer)]);
      for (const loop::Inst& inst : c->body.insts)
        alive = alive || (inst.op == loop::Op::BindIndex && inst.checked);  // it may raise
      if (alive)
        for (const loop::Inst& inst : c->body.insts)
          if (inst.op == loop::Op::Load) needed[static_cast<size_t>(inst.buffer)] = true;
    } else {
      auto& call = std::get<loop::ExternCall>(program.steps[k]);
      // Without outputs that anybody reads it was kept for what it does, or for the error that it may raise.
      alive = std::ranges::all_of(call.outputs, [](BufferId id) { return id == kNoBuffer; }) ||
              (call.op && (call.op->is_random || call.op->is_mutating() || is_opaque(*call.op)));
      for (BufferId id : call.outputs) alive = alive || (id != kNoBuffer && needed[static_cast<size_t>(id)]);
      if (alive) for_each_view(call, need);
    }
    if (alive) kept.push_back(std::move(program.steps[k]));
  }
  std::ranges::reverse(kept);
  program.steps = std::move(kept);
}

plan::View to_view(const loop::BufferView& view) {
  return {view.buffer, view.sizes, view.strides, view.offset};
}

bool returns_aliases(const OperatorSchema& op) {
  return op.is_mutating() ||
         std::ranges::any_of(op.returns, [](const ReturnInfo& r) { return r.alias_set >= 0; });
}

plan::CallArgument to_argument(const loop::ExternArgument& argument) {
  return std::visit(
      Overloaded{[](const loop::BufferView& view) -> plan::CallArgument { return to_view(view); },
                 [](const std::vector<std::optional<loop::BufferView>>& list) -> plan::CallArgument {
                   std::vector<std::optional<plan::View>> views;
                   for (const auto& view : list)
                     views.push_back(view ? std::optional(to_view(*view)) : std::nullopt);
                   return views;
                 },
                 [](const auto& other) -> plan::CallArgument { return other; }},
      argument);
}

class Scheduler {
 public:
  Scheduler(loop::Program program, const Backend& backend, const ScheduleOptions& options)
      : program_(std::move(program)), backend_(backend), options_(options) {}

  plan::Plan run() {
    remove_dead_steps(program_);
    split_long_reductions(program_, backend_.split_costs());
    std::vector<Item> items = normalise(program_);
    Dependencies dependencies = find_dependencies(program_, items);
    const FusionOptions fusion{options_.parallelism, options_.fuse, backend_.fusion_costs()};
    groups_ = fuse(program_, items, dependencies, fusion);
    if (options_.fuse) direct_ = find_direct_writes(program_, dependencies, groups_);
    group_of_.resize(program_.steps.size());
    for (size_t g = 0; g < groups_.size(); ++g)
      for (int32_t step : groups_[g].steps) group_of_[static_cast<size_t>(step)] = static_cast<int32_t>(g);
    make_drafts(items, dependencies);
    find_lifetimes(dependencies);
    if (options_.fuse) reuse_in_place();
    make_buffers();
    PrintedKernels printed = backend_.print(drafts_, options_);
    plan_.kernels = std::move(printed.kernels);
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (groups_[g].is_extern)
        add_call(std::get<loop::ExternCall>(program_.steps[static_cast<size_t>(groups_[g].steps[0])]));
      else if (printed.launches[g])
        add_launch(std::move(*printed.launches[g]));
      add_frees(static_cast<int32_t>(g));
    }
    add_ends();
    return std::move(plan_);
  }

 private:
  void make_drafts(const std::vector<Item>& items, const Dependencies& dependencies) {
    drafts_.resize(groups_.size());
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (groups_[g].is_extern) continue;
      const auto is_needed = [&](BufferId id) {
        const BufferUse& use = dependencies.buffers[static_cast<size_t>(id)];
        if (use.is_kept || use.writers.size() > 1) return true;
        return std::ranges::any_of(use.readers, [&](int32_t step) {
          return group_of_[static_cast<size_t>(step)] != static_cast<int32_t>(g);
        });
      };
      drafts_[g] = backend_.draft(program_, items, groups_[g], is_needed, options_);
      if (options_.log) *options_.log += fmt::format("step {}: {}", g, drafts_[g]->print());
    }
  }

  template <class Fn>
  void for_each_buffer(size_t g, Fn fn) {  // fn(buffer, is_written)
    if (groups_[g].is_extern) {
      const auto& call = std::get<loop::ExternCall>(program_.steps[static_cast<size_t>(groups_[g].steps[0])]);
      for_each_view(call, [&](const loop::BufferView& view) { fn(view.buffer, false); });
      for (BufferId id : call.outputs)
        if (id != kNoBuffer) fn(id, true);
      return;
    }
    drafts_[g]->for_each_buffer(fn);
  }

  void find_lifetimes(const Dependencies& dependencies) {
    first_.assign(program_.buffers.size(), -1);
    last_.assign(program_.buffers.size(), -1);
    for (size_t g = 0; g < groups_.size(); ++g)
      for_each_buffer(g, [&](BufferId id, bool) {
        auto k = static_cast<size_t>(id);
        if (first_[k] < 0) first_[k] = static_cast<int32_t>(g);
        last_[k] = std::max(last_[k], static_cast<int32_t>(g));
      });
    for (size_t k = 0; k < last_.size(); ++k)
      if (dependencies.buffers[k].is_kept) last_[k] = kEnd;
    storage_.resize(program_.buffers.size(), plan::Storage::Arena);
    shares_.resize(program_.buffers.size());
    std::iota(shares_.begin(), shares_.end(), 0);
    became_ = shares_;
    for (size_t k = 0; k < program_.buffers.size(); ++k) {
      if (program_.buffers[k].kind == loop::BufferKind::Input) storage_[k] = plan::Storage::Input;
      if (program_.buffers[k].kind == loop::BufferKind::Constant) storage_[k] = plan::Storage::Constant;
    }
    for (const loop::ProgramOutput& output : program_.outputs)
      if (output.view.buffer != kNoBuffer && output.kind == graph::OutputKind::Value) {
        auto& storage = storage_[static_cast<size_t>(output.view.buffer)];
        if (storage == plan::Storage::Arena) storage = plan::Storage::Output;
      }
    mark_extern_owned();
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
        for (const Expr& e : program_.buffers[static_cast<size_t>(id)].sizes)
          for (const Expr& v : sym::variables(e)) is_known = is_known && known.contains(v.variable_id());
        if (!call->writes_in_place || !is_known) storage_[static_cast<size_t>(id)] = plan::Storage::Extern;
        if (returns_aliases(*call->op)) shown_elsewhere_.insert(id);
      }
    }
  }

  void reuse_in_place() {
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (groups_[g].is_extern) continue;
      auto dies = [&](BufferId id) {
        auto k = static_cast<size_t>(id);
        const bool is_ours = storage_[k] == plan::Storage::Arena ||
                             (storage_[k] == plan::Storage::Input && g >= direct_.first_group) ||
                             (storage_[k] == plan::Storage::Extern && !shown_elsewhere_.contains(id));
        return is_ours && last_[k] == static_cast<int32_t>(g);
      };
      auto is_new = [&](BufferId id) {
        auto k = static_cast<size_t>(id);
        return (storage_[k] == plan::Storage::Arena || storage_[k] == plan::Storage::Output) &&
               first_[k] == static_cast<int32_t>(g);
      };
      auto same_size = [&](BufferId input, BufferId output) {
        const auto overwritten = direct_.input_of.find(output);
        const bool is_direct = overwritten != direct_.input_of.end() && g >= direct_.first_group;
        if (is_direct || storage_[static_cast<size_t>(input)] == plan::Storage::Input)
          return is_direct && overwritten->second == input;
        if (storage_[static_cast<size_t>(input)] == plan::Storage::Extern) return same_layout(input, output);
        if (storage_[static_cast<size_t>(output)] == plan::Storage::Output) return can_become(input, output);
        return span_elements(program_.buffers[static_cast<size_t>(input)]) ==
               span_elements(program_.buffers[static_cast<size_t>(output)]);
      };
      for (auto [input, output] : drafts_[g]->write_in_place(dies, is_new, same_size)) {
        if (storage_[static_cast<size_t>(input)] == plan::Storage::Input)
          overwrite(input, output);
        else if (storage_[static_cast<size_t>(input)] == plan::Storage::Extern)
          take_over(input, output);
        else if (storage_[static_cast<size_t>(output)] == plan::Storage::Output)
          become(input, output);
        else
          shares_[static_cast<size_t>(output)] = shares_[static_cast<size_t>(input)];
      }
    }
    for (auto [value, input] : direct_.input_of) {
      const int32_t made = first_[static_cast<size_t>(value)];
      if (made >= static_cast<int32_t>(direct_.first_group) && last_[static_cast<size_t>(input)] < made &&
          storage_[static_cast<size_t>(value)] == plan::Storage::Arena)
        overwrite(input, value);
    }
  }

  void overwrite(BufferId input, BufferId value) {
    became_[static_cast<size_t>(value)] = input;
    storage_[static_cast<size_t>(value)] = plan::Storage::Input;
  }

  // Whether the memory of an intermediate, and of all that share it, may be an output's from the beginning.
  bool can_become(BufferId intermediate, BufferId output) const {
    for (size_t k = 0; k < shares_.size(); ++k)
      if (shares_[k] == shares_[static_cast<size_t>(intermediate)] &&
          !same_layout(static_cast<BufferId>(k), output))
        return false;
    return true;
  }

  bool same_layout(BufferId a, BufferId b) const {
    const loop::Buffer &x = program_.buffers[static_cast<size_t>(a)],
                       &y = program_.buffers[static_cast<size_t>(b)];
    return x.dtype == y.dtype && x.sizes == y.sizes && x.strides == y.strides;
  }

  // The memory of what an extern call returned lives on as `output`.
  void take_over(BufferId returned, BufferId output) {
    const BufferId owner = place_of(returned);
    became_[static_cast<size_t>(output)] = owner;
    storage_[static_cast<size_t>(output)] = plan::Storage::Extern;
    last_[static_cast<size_t>(owner)] = last_[static_cast<size_t>(output)];
  }

  void become(BufferId intermediate, BufferId output) {
    const BufferId root = shares_[static_cast<size_t>(intermediate)];
    for (size_t k = 0; k < shares_.size(); ++k) {
      if (shares_[k] != root) continue;
      storage_[k] = plan::Storage::Output;
      became_[k] = output;
    }
  }

  BufferId place_of(BufferId id) const { return id == kNoBuffer ? id : became_[static_cast<size_t>(id)]; }

  plan::View placed(const loop::BufferView& view) const {
    plan::View out = to_view(view);
    out.buffer = place_of(out.buffer);
    return out;
  }

  Expr buffer_bytes(BufferId id) const {
    const loop::Buffer& buffer = program_.buffers[static_cast<size_t>(id)];
    return span_elements(buffer) * static_cast<int64_t>(item_size(buffer.dtype));
  }

  // Memory that is no part of the arena, as long as somebody holds it.
  std::vector<Interval> other_memory() const {
    std::vector<Interval> others;
    for (size_t k = 0; k < program_.buffers.size(); ++k) {
      const auto id = static_cast<BufferId>(k);
      if (storage_[k] == plan::Storage::Arena || place_of(id) != id) continue;
      Interval interval{buffer_bytes(id), first_[k], last_[k]};
      const bool is_input = storage_[k] == plan::Storage::Input;
      const auto source = static_cast<size_t>(program_.buffers[k].source);
      const bool is_released =
          is_input && source < options_.released_inputs.size() && options_.released_inputs[source];
      if (is_input || storage_[k] == plan::Storage::Constant) interval.first = 0;
      if ((is_input && !is_released) || storage_[k] == plan::Storage::Constant) interval.last = kEnd;
      others.push_back(std::move(interval));
    }
    return others;
  }

  void place_intermediates() {
    std::vector<Block> blocks;
    std::vector<BufferId> roots;
    std::unordered_map<BufferId, size_t> block_of;  // by the buffer whose memory is shared
    auto shared = [&](BufferId id) { return shares_[static_cast<size_t>(id)]; };
    for (size_t k = 0; k < program_.buffers.size(); ++k) {
      if (storage_[k] != plan::Storage::Arena || first_[k] < 0) continue;
      const auto id = static_cast<BufferId>(k);
      const BufferId root = shared(id);
      auto [it, is_new] = block_of.try_emplace(root, blocks.size());
      if (is_new) blocks.push_back({{buffer_bytes(id), first_[k], last_[k]}, last_[k] != kEnd});
      if (is_new) roots.push_back(root);
      Block& block = blocks[it->second];
      block.interval.first = std::min(block.interval.first, first_[k]);
      block.interval.last = std::max(block.interval.last, last_[k]);
      // A call fills a tensor of the buffer's layout; kernels take addresses.
      block.may_be_temporary = block.may_be_temporary && last_[k] != kEnd &&
                               (same_layout(root, id) || !made_by_call_.contains(id));
    }
    MemoryPlan memory = plan_memory(blocks, other_memory(), static_cast<int32_t>(groups_.size()));
    plan_.arena_bytes = memory.arena_bytes;
    arena_offsets_.resize(program_.buffers.size());
    for (size_t k = 0; k < program_.buffers.size(); ++k) {
      const auto id = static_cast<BufferId>(k);
      const auto it = block_of.find(shared(id));
      if (storage_[k] != plan::Storage::Arena || first_[k] < 0 || it == block_of.end()) continue;
      arena_offsets_[k] = memory.offsets[it->second];
      if (arena_offsets_[k]) continue;
      const BufferId root = roots[it->second];
      storage_[k] = plan::Storage::Temporary;
      last_[static_cast<size_t>(root)] = blocks[it->second].interval.last;
      became_[k] = root;
    }
  }

  void make_buffers() {
    place_intermediates();
    for (size_t k = 0; k < program_.buffers.size(); ++k) {
      const loop::Buffer& buffer = program_.buffers[k];
      plan::Buffer out{buffer.name, buffer.dtype, buffer.device, buffer.sizes,
                       {},          storage_[k],  buffer.source, 0};
      out.strides = buffer.strides ? *buffer.strides : contiguous_strides(buffer.sizes);
      if (place_of(static_cast<BufferId>(k)) != static_cast<BufferId>(k))
        out.storage = plan::Storage::Arena, out.sizes = {0},
        out.strides = {1};  // another buffer is its memory
      if (storage_[k] == plan::Storage::Arena) {
        if (arena_offsets_[k])
          out.arena_offset = *arena_offsets_[k];
        else
          out.sizes = {0}, out.strides = {1};  // it has vanished into a kernel
      }
      if (buffer.kind == loop::BufferKind::Input)
        plan_.input_count = std::max(plan_.input_count, buffer.source + 1);
      plan_.buffers.push_back(std::move(out));
    }
  }

  void add_call(const loop::ExternCall& call) {
    plan::Call out;
    out.op = call.op;
    for (const loop::ExternArgument& argument : call.args) out.args.push_back(to_argument(argument));
    for (plan::CallArgument& argument : out.args) {
      if (auto* view = std::get_if<plan::View>(&argument)) view->buffer = place_of(view->buffer);
      if (auto* views = std::get_if<std::vector<std::optional<plan::View>>>(&argument))
        for (auto& view : *views)
          if (view) view->buffer = place_of(view->buffer);
    }
    for (const BufferId id : call.outputs) out.outputs.push_back(place_of(id));
    plan_.steps.emplace_back(std::move(out));
  }

  void add_launch(plan::Launch launch) {
    for (BufferId& buffer : launch.buffers) buffer = place_of(buffer);
    plan_.steps.emplace_back(std::move(launch));
  }

  void add_frees(int32_t g) {
    std::unordered_set<BufferId> seen;
    for_each_buffer(static_cast<size_t>(g), [&](BufferId id, bool) {
      const BufferId owner = place_of(id);
      auto k = static_cast<size_t>(owner);
      const bool is_owned = storage_[k] == plan::Storage::Extern || storage_[k] == plan::Storage::Temporary;
      if (is_owned && last_[k] == g && seen.insert(owner).second) plan_.steps.emplace_back(plan::Free{owner});
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
  std::vector<Group> groups_;
  std::vector<int32_t> group_of_;
  std::vector<std::unique_ptr<KernelDraft>> drafts_;  // by group; null: an extern call
  std::vector<int32_t> first_;
  std::vector<int32_t> last_;
  std::vector<plan::Storage> storage_;
  std::vector<std::optional<Expr>> arena_offsets_;  // by buffer
  std::vector<BufferId> shares_;                    // by buffer: the one whose memory it takes over
  // By buffer: the input that it overwrites, the output or temporary whose memory it uses from the beginning,
  // the extern call's result whose memory it takes over, or itself.
  std::vector<BufferId> became_;
  DirectWrites direct_;
  std::unordered_set<BufferId> made_by_call_;
  std::unordered_set<BufferId> shown_elsewhere_;  // results of extern calls that others may see too
  plan::Plan plan_;
};

}  // namespace

plan::Plan schedule(loop::Program program, const Backend& backend, const ScheduleOptions& options) {
  return Scheduler(std::move(program), backend, options).run();
}

}  // namespace oxy::backend
