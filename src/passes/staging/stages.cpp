#include "passes/staging/stages.h"

#include <algorithm>
#include <map>
#include <ranges>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "aten/operators.h"
#include "base/error.h"
#include "graph/sizes.h"
#include "ops/core/registry.h"
#include "passes/rewriting/rewrite.h"
#include "sym/facts/facts.h"

namespace oxy::passes {

namespace {

// Between stages.
bool runs_on_host(const Node& node) {
  return !node.computed.empty() || node.op == op::check_indices();
}

bool checks_data(const Node& node) {
  return !node.checks.empty() || node.op == op::check_indices();
}

// Whether the node must run although nothing reads its results.
bool must_run(const Graph& graph, const Node& node) {
  if (runs_on_host(node))
    return checks_data(node) || std::ranges::any_of(node.computed, &graph::ComputedSymbol::is_wanted);
  return has_effect(node) || ops::may_raise(graph, node);
}

// Calls fn for each symbol that the node's arguments and results have.
template <class Fn>
void for_each_symbol(const Graph& graph, const Node& node, const Fn& fn) {
  const auto look = [&](const Expr& e) {
    if (!e.is_constant())
      for (const Expr& variable : sym::variables(e)) fn(variable.variable_id());
    return e;
  };
  graph::map_expressions(node.args, look);
  for (const ValueId id : node.outputs)
    if (id != graph::kNoValue) graph::map_expressions(graph.meta(id), look);
}

class Cutter {
 public:
  explicit Cutter(const Graph& source)
      : source_(source), stage_of_(source.nodes.size(), 0), known_from_(source.values.size(), 0) {}

  StagedProgram run() {
    find_earliest();
    count_ = 1 + last_;
    sink();
    program_.stages.resize(count_);
    builders_.resize(count_);
    for (size_t s = 0; s < count_; ++s) builders_[s] = IdVector<ValueId, ValueId>(source_.values.size());
    for (Stage& stage : program_.stages) stage.graph.locations = source_.locations;
    find_roots_of_results();
    for (size_t s = 0; s < count_; ++s) build(s);
    add_results();
    add_crossing_outputs();
    find_spent();
    simplify();
    program_.roots = IdVector<ValueId, ValueId>(source_.values.size());
    for (const ValueId id : source_.values.ids()) program_.roots[id] = root_of(id);
    return std::move(program_);
  }

 private:
  // --- which stage

  void find_earliest() {
    size_t behind_checks = 0, last_effect = 0;
    for (const NodeId n : source_.nodes.ids()) {
      const Node& node = source_.nodes[n];
      size_t stage = behind_checks;
      graph::for_each_input(node, [&](ValueId id) { stage = std::max(stage, known_from_[id]); });
      for_each_symbol(source_, node, [&](int64_t symbol) {
        if (const auto it = symbol_from_.find(symbol); it != symbol_from_.end())
          stage = std::max(stage, it->second);
      });
      if (runs_on_host(node)) {
        // The symbols of its checks are read before, or at the same place.
        for (const sym::Condition& condition : node.checks)
          for (const Expr& variable : sym::variables(condition))
            if (const auto it = symbol_from_.find(variable.variable_id()); it != symbol_from_.end())
              stage = std::max(stage, it->second - 1);
        if (checks_data(node)) behind_checks = std::max(behind_checks, stage + 1);
        for (const graph::ComputedSymbol& symbol : node.computed)
          symbol_from_[symbol.variable.variable_id()] = stage + 1;
      } else if (has_effect(node)) {
        stage = last_effect = std::max(stage, last_effect);
      }
      stage_of_[n] = stage;
      const size_t known = stage + (runs_on_host(node) ? 1 : 0);
      last_ = std::max(last_, known);
      for (const ValueId id : node.outputs)
        if (id != graph::kNoValue) known_from_[id] = known;
    }
  }

  void sink() {
    IdVector<ValueId, size_t> needed_at(source_.values.size(), last_);
    IdVector<ValueId, bool> is_read(source_.values.size(), false);
    for (const graph::Output& output : source_.outputs) is_read[output.value] = true;
    for (const graph::Mutation& mutation : source_.mutations) is_read[mutation.value] = true;
    for (const NodeId n : source_.nodes.ids() | std::views::reverse) {
      const Node& node = source_.nodes[n];
      bool has_readers = false;
      size_t latest = last_;
      for (const ValueId id : node.outputs) {
        if (id == graph::kNoValue) continue;
        has_readers = has_readers || is_read[id];
        latest = std::min(latest, needed_at[id]);
      }
      if (!runs_on_host(node) && !has_effect(node) && has_readers) stage_of_[n] = latest;
      graph::for_each_input(node, [&](ValueId id) {
        is_read[id] = true;
        needed_at[id] = std::min(needed_at[id], stage_of_[n]);
      });
    }
  }

  // --- the graphs of the stages

  static bool is_view(const Node& node) { return !runs_on_host(node) && node.op->is_view(); }

  // Other views are made where they are read.
  bool must_be_seen(size_t s, const Node& view) const {
    return ops::may_raise(source_, view) && builders_[s][view.outputs.at(0)] == graph::kNoValue;
  }

  // The value in the graph of the stage.
  ValueId value_in(size_t s, ValueId id) {
    IdVector<ValueId, ValueId>& map = builders_[s];
    if (map[id] != graph::kNoValue) return map[id];
    Stage& stage = program_.stages[s];
    const Node* made_by = producer(source_, id);
    if (made_by != nullptr && is_view(*made_by)) {
      append(s, *made_by);
      return map[id];
    }
    if (made_by == nullptr && !is_input(id)) {
      const auto constant = std::ranges::find(source_.constants, id, &graph::Constant::value);
      check(constant != source_.constants.end(), "a value that nothing makes");
      return map[id] = stage.graph.add_constant(source_.values[id].meta, constant->handle);
    }
    map[id] = stage.graph.add_input(source_.values[id].meta);
    stage.inputs.push_back(id);
    if (made_by != nullptr) crossing_.insert(id);
    return map[id];
  }

  bool is_input(ValueId id) const { return std::ranges::find(source_.inputs, id) != source_.inputs.end(); }

  void append(size_t s, const Node& node) {
    Node copy = node;
    graph::rename_inputs(copy, [&](ValueId id) { return value_in(s, id); });
    Graph& graph = program_.stages[s].graph;
    for (ValueId& id : copy.outputs.edit()) {
      if (id == graph::kNoValue) continue;
      const ValueId fresh = graph.add_value(source_.values[id].meta);
      graph.values[fresh].node = graph.nodes.next_id();
      builders_[s][id] = fresh;
      id = fresh;
    }
    graph.nodes.add(std::move(copy));
  }

  void build(size_t s) {
    for (const NodeId n : source_.nodes.ids()) {
      const Node& node = source_.nodes[n];
      if (stage_of_[n] != s || (is_view(node) && !must_be_seen(s, node))) continue;
      if (!runs_on_host(node)) {
        append(s, node);
        continue;
      }
      graph::for_each_input(node, [&](ValueId id) {
        if (producer(source_, root_of(id)) != nullptr) crossing_.insert(root_of(id));
      });
      program_.stages[s].reads.push_back(node);
    }
  }

  // --- what leaves the stages

  // The value whose memory a value lies in.
  ValueId root_of(ValueId id) const {
    const Node* made_by = producer(source_, id);
    while (made_by != nullptr && is_view(*made_by)) {
      id = tensor_argument(*made_by, 0);
      made_by = producer(source_, id);
    }
    return id;
  }

  bool is_made_before_last(ValueId root) const {
    const NodeId n = source_.values[root].node;
    return n != graph::kNoNode && (runs_on_host(source_.nodes[n]) || stage_of_[n] != last_);
  }

  void find_roots_of_results() {
    for (const graph::Output& output : source_.outputs) {
      StagedOutput staged{output.kind, output.value};
      if (output.kind == graph::OutputKind::Value)
        if (const ValueId root = root_of(output.value); is_made_before_last(root)) staged.value = root;
      program_.outputs.push_back(staged);
    }
  }

  void add_results() {
    Stage& last = program_.stages.back();
    std::unordered_set<ValueId> added;
    for (const StagedOutput& output : program_.outputs) {
      if (output.kind != graph::OutputKind::Value) continue;
      if (is_made_before_last(output.value)) {
        crossing_.insert(output.value);
      } else if (added.insert(output.value).second) {
        last.graph.outputs.push_back({.value = value_in(last_, output.value)});
        last.outputs.push_back(output.value);
      }
    }
    for (const graph::Mutation& mutation : source_.mutations) {
      const ValueId target = source_.inputs.at(static_cast<size_t>(mutation.input));
      static_cast<void>(value_in(last_, target));
      const auto input = std::ranges::find(last.inputs, target) - last.inputs.begin();
      last.graph.mutations.push_back(
          {static_cast<int32_t>(input), value_in(last_, mutation.value), mutation.is_seen});
    }
  }

  void add_crossing_outputs() {
    for (const ValueId id : crossing_) {
      const NodeId n = source_.values[id].node;
      if (runs_on_host(source_.nodes[n])) continue;
      const size_t s = stage_of_[n];
      Stage& stage = program_.stages[s];
      if (std::ranges::find(stage.outputs, id) != stage.outputs.end()) continue;
      stage.graph.outputs.push_back({.value = value_in(s, id)});
      stage.outputs.push_back(id);
    }
  }

  void find_spent() {
    std::unordered_map<ValueId, size_t> last_use;
    for (size_t s = 0; s < count_; ++s) {
      for (const ValueId id : program_.stages[s].outputs) last_use[id] = s;
      for (const ValueId id : program_.stages[s].inputs) last_use[id] = s;
      for (const Node& node : program_.stages[s].reads) {
        for (const ValueId id : node.outputs) last_use[id] = s;
        graph::for_each_input(node, [&](ValueId id) { last_use[root_of(id)] = s; });
      }
    }
    for (const StagedOutput& output : program_.outputs)
      if (output.kind == graph::OutputKind::Value) last_use.erase(output.value);
    for (const auto& [id, s] : last_use)
      if (id != graph::kNoValue && producer(source_, id) != nullptr) program_.stages[s].spent.push_back(id);
  }

  // Each stage knows what was checked before it.
  void simplify() {
    // The variables with the ranges that they have in the graph.
    std::map<int64_t, Expr> variables;
    const auto note = [&](const Expr& e) {
      if (!e.is_constant())
        for (const Expr& variable : sym::variables(e)) variables.emplace(variable.variable_id(), variable);
      return e;
    };
    for (const graph::Value& value : source_.values) graph::map_expressions(*value.meta, note);
    for (const Node& node : source_.nodes) graph::map_expressions(node.args, note);
    sym::Facts facts;
    bool is_any = false;
    for (Stage& stage : program_.stages) {
      if (is_any) graph::map_expressions(stage.graph, [&](const Expr& e) { return facts.simplify(e); });
      for (const Node& node : stage.reads)
        for (const sym::Condition& condition : node.checks) {
          for (const Expr& variable : sym::variables(condition))
            facts.declare(variables.emplace(variable.variable_id(), variable).first->second,
                          symbol_from_.contains(variable.variable_id()) ? sym::Availability::Late
                                                                        : sym::Availability::Early);
          sym::Facts with = facts;
          if (with.add(condition)) facts = std::move(with), is_any = true;
        }
    }
  }

  const Graph& source_;
  StagedProgram program_;
  size_t last_ = 0;   // the number of the last stage
  size_t count_ = 0;  // of stages
  IdVector<NodeId, size_t> stage_of_;
  IdVector<ValueId, size_t> known_from_;              // the first stage that can read the value
  std::unordered_map<int64_t, size_t> symbol_from_;   // likewise, of symbols that nodes compute
  std::vector<IdVector<ValueId, ValueId>> builders_;  // by stage: the source's values in its graph
  std::set<ValueId> crossing_;                        // values that leave the stage that makes them
};

}  // namespace

bool reads_data(const graph::Graph& graph) {
  return std::ranges::any_of(graph.nodes, runs_on_host);
}

graph::Graph without_unneeded_reads(const graph::Graph& source) {
  IdVector<ValueId, bool> live(source.values.size(), false);
  std::unordered_set<int64_t> mentioned;
  for (const graph::Output& output : source.outputs) live[output.value] = true;
  for (const graph::Mutation& mutation : source.mutations) live[mutation.value] = true;
  IdVector<NodeId, bool> needed(source.nodes.size(), false);
  for (const NodeId n : source.nodes.ids() | std::views::reverse) {
    const Node& node = source.nodes[n];
    const auto is_live = [&](ValueId id) { return id != graph::kNoValue && live[id]; };
    const auto is_mentioned = [&](const graph::ComputedSymbol& symbol) {
      return mentioned.contains(symbol.variable.variable_id());
    };
    needed[n] = must_run(source, node) || std::ranges::any_of(node.outputs, is_live) ||
                std::ranges::any_of(node.computed, is_mentioned);
    if (!needed[n]) continue;
    graph::for_each_input(node, [&](ValueId id) { live[id] = true; });
    for_each_symbol(source, node, [&](int64_t symbol) { mentioned.insert(symbol); });
    for (const sym::Condition& condition : node.checks)
      for (const Expr& variable : sym::variables(condition)) mentioned.insert(variable.variable_id());
  }
  Rewriter rewriter(source);
  for (const NodeId n : source.nodes.ids())
    if (needed[n]) rewriter.keep(rewriter.renamed(source.nodes[n]));
  return rewriter.finish();
}

StagedProgram cut_into_stages(const graph::Graph& source) {
  check(reads_data(source), "a graph that reads no data has no stages");
  return Cutter(source).run();
}

}  // namespace oxy::passes
