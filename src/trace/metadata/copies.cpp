#include "trace/metadata/copies.h"

#include <algorithm>
#include <cstdint>
#include <ranges>
#include <string>

#include "aten/operators.h"
#include "base/error.h"
#include "graph/sizes.h"
#include "graph/storage.h"
#include "ops/core/registry.h"
#include "ops/core/size_questions.h"
#include "sym/relations/layout.h"

namespace oxy::trace {
namespace {

// Asks in the name of a line of the program.
class QuestionsOfLine final : public ops::SizeQuestions {
 public:
  QuestionsOfLine(sym::ShapeEnvironment& environment, std::string line)
      : environment_(environment), where_([line = std::move(line)] { return line; }) {}
  bool decide(const sym::Condition& question) const override { return environment_.expect(question, where_); }
  std::optional<bool> generally(const sym::Condition& question) const override {
    return sym::certain(environment_.answer(question));
  }
  std::optional<bool> at_hand(const sym::Condition& question) const override {
    return environment_.hint(question);
  }
  int64_t specialise(const Expr& e) const override { return environment_.specialise(e, where_); }

 private:
  sym::ShapeEnvironment& environment_;
  sym::Locate where_;
};

// By root of a storage: the last nodes that read it and write to it, and whether it is seen outside.
struct Storages {
  IdVector<graph::ValueId, graph::ValueId> root_of;
  IdVector<graph::ValueId, graph::NodeId> last_read;
  IdVector<graph::ValueId, graph::NodeId> last_write;
  IdVector<graph::ValueId, bool> is_given;  // it comes from outside
  IdVector<graph::ValueId, bool> is_returned;

  explicit Storages(const graph::Graph& graph)
      : root_of(graph::storage_roots(graph)),
        last_read(graph.values.size()),
        last_write(graph.values.size()),
        is_given(graph.values.size()),
        is_returned(graph.values.size()) {
    for (const graph::ValueId id : graph.values.ids())
      is_given[id] = graph.values[root_of[id]].node == graph::kNoNode;
    for (const graph::Output& output : graph.outputs)
      if (output.value != graph::kNoValue) is_returned[root_of[output.value]] = true;
    for (const graph::NodeId n : graph.nodes.ids()) {
      const graph::Node& node = graph.nodes[n];
      graph::for_each_input(node, [&](graph::ValueId id) { last_read[root_of[id]] = n; });
      graph::for_each_written(node, [&](graph::ValueId id) { last_write[root_of[id]] = n; });
    }
  }

  static bool is_behind(graph::NodeId what, graph::NodeId node) {
    return what != graph::kNoNode && node < what;
  }

  // Whether the program can tell what `node` made of the value from a view of it.
  bool is_told(graph::ValueId value, graph::ValueId result, graph::NodeId node) const {
    const graph::ValueId of_value = root_of[value], of_result = root_of[result];
    const bool value_is_seen =
        is_given[value] || is_returned[of_value] || is_behind(last_read[of_value], node);
    const bool result_is_seen = is_returned[of_result] || is_behind(last_read[of_result], node);
    if (is_behind(last_write[of_result], node) && value_is_seen) return true;
    if (is_behind(last_write[of_value], node) && result_is_seen) return true;
    return is_returned[of_result] && (is_given[value] || is_returned[of_value]);
  }
};

const graph::Node* producer(const graph::Graph& graph, graph::ValueId value) {
  const graph::NodeId node = graph.values[value].node;
  return node == graph::kNoNode ? nullptr : &graph.nodes[node];
}

std::string line_of(const graph::Graph& graph, const graph::Node& node) {
  return node.location == graph::kNoLocation ? "" : graph.locations.at(node.location).text;
}

// The argument of a clone that is made in a format of its own.
graph::ValueId cloned_into_format(const graph::Node& node) {
  if (node.op != op::clone() || !std::holds_alternative<MemoryFormat>(node.args.at(1)))
    return graph::kNoValue;
  if (std::get<MemoryFormat>(node.args[1]) == MemoryFormat::Preserve) return graph::kNoValue;
  return std::get<graph::ValueRef>(node.args[0]).id;
}

sym::Condition is_in_format(const TensorMeta& meta, MemoryFormat format) {
  if (format == MemoryFormat::Contiguous) return sym::contiguous(meta.sizes, meta.strides);
  return sym::channels_last_contiguous(meta.sizes, meta.strides,
                                       format == MemoryFormat::ChannelsLast ? 2 : 3);
}

// Goes the way of at::detail::computeStride, so that all calls go as the values at hand do. Without elements
// nobody can tell.
void ask_whether_it_is_a_view(const ops::SizeQuestions& questions, const TensorMeta& meta,
                              const std::vector<Expr>& sizes) {
  size_t next = sizes.size();  // the new dimensions from here on are covered
  Expr elements = 1;
  for (size_t d = meta.sizes.size(); d-- > 0;) {
    const Expr& base = meta.strides[d];
    elements = meta.sizes[d];
    while (d > 0 && questions.decide(sym::Condition::any({sym::equal(meta.sizes[d - 1], 1),
                                                          sym::equal(meta.strides[d - 1], elements * base)})))
      elements = elements * meta.sizes[--d];
    Expr covered = 1;
    while (next > 0 && (questions.decide(sym::less(covered, elements)) ||
                        questions.decide(sym::equal(sizes[next - 1], 1))))
      covered = covered * sizes[--next];
    if (!questions.decide(sym::equal(covered, elements))) return;
  }
}

// A size of 1 makes a view of what is a copy in general: that size is a number from the beginning of the next
// recording. One that is computed, as min(a, b) is, follows from those of its symbols that are 1 at hand.
void record_again_as_view(torch_api::Symbols& symbols, const std::string& line, const TensorMeta& meta) {
  sym::ShapeEnvironment& environment = symbols.environment;
  bool any = false;
  for (const Expr& size : meta.sizes) {
    if (size.is_constant() || !environment.simplify(size).is_constant()) continue;
    for (const Expr& variable : sym::variables(size)) {
      const sym::Condition is_one = sym::equal(variable, 1);
      if (environment.hint(is_one) == true) environment.promise(is_one, line);
      any |= environment.simplify(variable).is_constant();
    }
  }
  if (!any) throw Unsupported("a copy that is a view for the sizes of this call");
  symbols.needs_exact_ones = true;
}

// What is a copy in general, and contiguous, may be a view with other strides where some sizes are 1: whether
// they are is asked of as few sizes as that takes.
void decide_ones(torch_api::Symbols& symbols, const std::string& line, const TensorMeta& source,
                 const std::vector<Expr>& wanted) {
  const std::vector<Expr>&sizes = source.sizes, &strides = source.strides;
  constexpr size_t kMostSizes = 4;
  std::vector<Expr> may_be_one;
  for (const Expr& size : sizes)
    for (const Expr& variable : sym::variables(size))
      if (may_be_one.size() < kMostSizes && std::ranges::find(may_be_one, variable) == may_be_one.end())
        may_be_one.push_back(variable);
  const auto likely = [&](const sym::Condition& question) {
    const auto general = symbols.environment.general_answer(question);
    return general ? *general : symbols.environment.hint(question).value_or(false);
  };
  for (uint32_t set = 1; set < (1U << may_be_one.size()); ++set) {
    std::vector<sym::Condition> are_one;
    for (size_t i = 0; i < may_be_one.size(); ++i)
      if ((set >> i & 1U) != 0) are_one.push_back(sym::equal(may_be_one[i], 1));
    const auto with_ones = [&](std::vector<Expr> numbers) {
      for (Expr& number : numbers)
        number = sym::substitute(number, [&](int64_t id) -> std::optional<Expr> {
          for (size_t i = 0; i < may_be_one.size(); ++i)
            if ((set >> i & 1U) != 0 && may_be_one[i].variable_id() == id) return Expr(1);
          return std::nullopt;
        });
      return numbers;
    };
    const std::vector<Expr> seen = with_ones(wanted), copied = contiguous_strides(seen);
    const auto view = view_strides(likely, with_ones(sizes), with_ones(strides), seen);
    if (!view) continue;
    bool is_other = false;
    for (size_t d = 0; d < seen.size(); ++d)
      is_other |= !likely(sym::equal(seen[d], 1)) && !likely(sym::equal((*view)[d], copied[d]));
    const sym::Condition question = sym::Condition::all(std::move(are_one));
    if (!is_other || symbols.environment.answer(question) == sym::Answer::False) continue;
    const std::optional<bool> are_ones = symbols.environment.hint(question);
    if (!are_ones) continue;
    symbols.environment.promise(*are_ones ? question : !question, line);
    if (*are_ones) symbols.needs_exact_ones = true;
  }
}

// Values whose strides a result may have: results, and what they are made of by operators that follow the
// strides of their arguments. Products give their results strides of their own.
IdVector<graph::ValueId, bool> values_with_seen_strides(const graph::Graph& graph, graph::NodeId end) {
  IdVector<graph::ValueId, bool> seen(graph.values.size());
  for (const graph::Output& output : graph.outputs)
    if (output.value != graph::kNoValue) seen[output.value] = true;
  for (const graph::NodeId n : graph.nodes.ids() | std::views::reverse) {
    const graph::Node& node = graph.nodes[n];
    if (!(n < end) || ops::traits_of(*node.op).fills_given_results) continue;
    const bool is_seen = std::ranges::any_of(
        node.outputs, [&](graph::ValueId id) { return id != graph::kNoValue && seen[id]; });
    if (is_seen) graph::for_each_input(node, [&](graph::ValueId id) { seen[id] = true; });
  }
  return seen;
}

}  // namespace

std::optional<std::vector<Expr>> view_strides(const AskOfSizes& ask, const std::vector<Expr>& sizes,
                                              const std::vector<Expr>& strides,
                                              const std::vector<Expr>& wanted) {
  std::vector<Expr> result(wanted.size());
  size_t next = wanted.size();  // the new dimensions from here on are covered
  for (size_t d = sizes.size(); d-- > 0;) {
    const Expr& innermost = strides[d];
    Expr elements = sizes[d];
    while (d > 0 &&
           (ask(sym::equal(sizes[d - 1], 1)) || ask(sym::equal(strides[d - 1], elements * innermost))))
      elements = elements * sizes[--d];
    Expr covered = 1;
    while (next > 0 && (ask(sym::less(covered, elements)) || ask(sym::equal(wanted[next - 1], 1)))) {
      result[--next] = covered * innermost;
      covered = covered * wanted[next];
    }
    if (!ask(sym::equal(covered, elements))) return std::nullopt;
  }
  return next == 0 ? std::optional(std::move(result)) : std::nullopt;
}

void guard_copies(Session& session, graph::NodeId end) {
  if (!session.symbols) return;
  const graph::Graph& graph = session.recording.graph;
  std::optional<Storages> storages;
  std::optional<IdVector<graph::ValueId, bool>> has_seen_strides;
  for (const graph::NodeId n : graph.nodes.ids()) {
    if (!(n < end)) break;
    const graph::Node& node = graph.nodes[n];
    // contiguous().view() looks like reshape(): both questions are asked of it.
    const bool is_reshaped = node.op == op::unsafe_view() || node.op == op::view();
    const graph::Node* copy =
        is_reshaped ? producer(graph, std::get<graph::ValueRef>(node.args[0]).id) : &node;
    const graph::ValueId source = copy == nullptr ? graph::kNoValue : cloned_into_format(*copy);
    if (source == graph::kNoValue || !graph::has_symbols(graph.meta(source))) continue;
    if (!has_seen_strides) has_seen_strides = values_with_seen_strides(graph, end);
    const bool is_of_reshape =
        std::ranges::find(session.reshaped_copies, copy->outputs.front()) != session.reshaped_copies.end();
    if (is_reshaped && is_of_reshape && (*has_seen_strides)[node.outputs.front()])
      decide_ones(*session.symbols, line_of(graph, node), graph.meta(source),
                  graph.meta(node.outputs.front()).sizes);
    if (!storages) storages.emplace(graph);
    if (!storages->is_told(source, node.outputs.front(), n)) continue;
    const QuestionsOfLine questions(session.symbols->environment, line_of(graph, node));
    if (!is_reshaped) {
      questions.decide(is_in_format(graph.meta(source), std::get<MemoryFormat>(node.args[1])));
      continue;
    }
    ask_whether_it_is_a_view(questions, graph.meta(source), graph.meta(node.outputs.front()).sizes);
    if (std::ranges::find(session.copies_of_views, copy->outputs.front()) != session.copies_of_views.end())
      record_again_as_view(*session.symbols, line_of(graph, node), graph.meta(source));
  }
}

}  // namespace oxy::trace
