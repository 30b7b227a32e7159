#include "trace/session/slices.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>

#include "aten/opaque.h"
#include "graph/sizes.h"
#include "trace/session/values_at_hand.h"
#include "trace/session/written_values.h"

namespace oxy::trace {

namespace {

constexpr int64_t kMostElements = 65'536;  // of each value on the way
constexpr size_t kMostNodes = 256;

class Collector {
 public:
  Collector(const Session& session, const std::function<bool(graph::ValueId)>& may_read,
            SymbolsInSlice symbols)
      : session_(session), graph_(session.recording.graph), may_read_(may_read), symbols_(symbols) {}

  std::optional<Slice> collect(graph::ValueId value) {
    if (!visit(value) || is_written(graph_, slice_.values)) return std::nullopt;
    return std::move(slice_);
  }

 private:
  bool visit(graph::ValueId value) {
    if (!slice_.values.insert(value).second) return true;
    const graph::NodeId producer = graph_.values[value].node;
    const Expr elements = element_count(graph_.meta(value));
    const auto count = symbols_ == SymbolsInSlice::Anywhere ? value_of(elements) : elements.as_constant();
    if (!count || *count > kMostElements) return false;
    if (producer == graph::kNoNode) {
      if (may_read_(value)) {
        slice_.inputs.push_back(value);
        return true;
      }
      return is_fresh_constant(value);
    }
    const graph::Node& node = graph_.nodes[producer];
    if (node.op->is_mutating() || draws_numbers(*node.op, node.args) || is_opaque(*node.op)) return false;
    if (!slice_.nodes.insert(producer).second) return true;
    if (slice_.nodes.size() > kMostNodes) return false;
    if (symbols_ != SymbolsInSlice::None && !node.computed.empty()) return false;
    bool known = true;
    graph::map_expressions(node.args, [&](const Expr& e) {
      known = known && value_of(e).has_value();
      return e;
    });
    graph::for_each_input(node, [&](graph::ValueId input) { known = known && visit(input); });
    return known;
  }

  std::optional<int64_t> value_of(const Expr& e) const {
    if (e.is_constant() || symbols_ == SymbolsInSlice::None || !session_.symbols) return e.as_constant();
    return session_.symbols->environment.hint(e);
  }

  bool is_fresh_constant(graph::ValueId value) const {
    const auto constant = std::ranges::find(graph_.constants, value, &graph::Constant::value);
    const auto& foreign = session_.recording.foreign_constants;
    return constant != graph_.constants.end() &&
           std::ranges::find(foreign, constant->handle) == foreign.end();
  }

  const Session& session_;
  const graph::Graph& graph_;
  const std::function<bool(graph::ValueId)>& may_read_;
  SymbolsInSlice symbols_;
  Slice slice_;
};

Expr number_of(const Session& session, const Expr& e) {
  return e.is_constant() ? e : session.symbols->environment.specialise(e, session.symbols->where);
}

}  // namespace

std::optional<Slice> collect_slice(const Session& session, graph::ValueId value,
                                   const std::function<bool(graph::ValueId)>& may_read,
                                   SymbolsInSlice symbols) {
  return Collector(session, may_read, symbols).collect(value);
}

void specialise(const Session& session, const Slice& slice) {
  for (const graph::ValueId value : slice.values)
    for (const Expr& size : session.recording.graph.meta(value).sizes) number_of(session, size);
}

graph::Node specialised(const Session& session, const graph::Node& node) {
  graph::Node result = node;
  result.args =
      graph::map_expressions(std::move(result.args), [&](const Expr& e) { return number_of(session, e); });
  return result;
}

const at::Tensor& data_of_constant(const Session& session, graph::ValueId constant) {
  const auto found = std::ranges::find(session.recording.graph.constants, constant, &graph::Constant::value);
  return session.recording.constants.at(static_cast<size_t>(found->handle));
}

struct RunsInEager::Guards {
  at::NoGradGuard no_grad;
  c10::impl::ExcludeDispatchKeyGuard below{c10::autocast_dispatch_keyset};
};

RunsInEager::RunsInEager() : guards_(std::make_unique<Guards>()), was_paused_(session_paused()) {
  pause_session(true);
}

RunsInEager::~RunsInEager() {
  pause_session(was_paused_);
}

}  // namespace oxy::trace
