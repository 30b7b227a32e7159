#include "graph/graph.h"

#include <type_traits>
#include <utility>

#include "aten/operators.h"
#include "base/error.h"

namespace oxy::graph {

ValueId Graph::add_value(SharedMeta meta) {
  return values.add({std::move(meta), kNoNode});
}

ValueId Graph::add_input(SharedMeta meta) {
  ValueId id = add_value(std::move(meta));
  inputs.push_back(id);
  return id;
}

ValueId Graph::add_constant(SharedMeta meta, int32_t handle) {
  ValueId id = add_value(std::move(meta));
  constants.push_back({id, handle});
  return id;
}

Device main_device(const Graph& graph) {
  for (const Value& value : graph.values)
    if (!is_on_host(value.meta->device)) return value.meta->device;
  return {};
}

NodeId Graph::add_node(const OperatorSchema* op, std::vector<Argument> args, std::vector<TensorMeta> outputs,
                       LocationId location) {
  check(op != nullptr, "a node needs an operator");
  std::vector<ValueId> ids;
  ids.reserve(outputs.size());
  for (TensorMeta& meta : outputs) {
    ids.push_back(add_value(std::move(meta)));
    values[ids.back()].node = nodes.next_id();
  }
  return nodes.add(Node{op, std::move(args), std::move(ids), location});
}

namespace {

bool same_double(double a, double b) {
  return a == b || (a != a && b != b);
}

bool same_argument(const Argument& a, const Argument& b) {
  if (a.index() != b.index()) return false;
  if (const auto* x = std::get_if<double>(&a)) return same_double(*x, std::get<double>(b));
  if (const auto* x = std::get_if<std::complex<double>>(&a)) {
    const auto& y = std::get<std::complex<double>>(b);
    return same_double(x->real(), y.real()) && same_double(x->imag(), y.imag());
  }
  if (const auto* x = std::get_if<std::vector<double>>(&a)) {
    const auto& y = std::get<std::vector<double>>(b);
    if (x->size() != y.size()) return false;
    for (size_t i = 0; i < x->size(); ++i)
      if (!same_double((*x)[i], y[i])) return false;
    return true;
  }
  return a == b;
}

const Location* location_of(const Graph& graph, const Node& node) {
  return node.location == kNoLocation ? nullptr : &graph.locations.at(node.location);
}

}  // namespace

Expr offset_between(const TensorMeta& base, const TensorMeta& view) {
  const auto own = static_cast<int64_t>(item_size(base.dtype));
  const auto item = static_cast<int64_t>(item_size(view.dtype));
  return view.storage_offset -
         (own == item ? base.storage_offset : sym::floordiv(base.storage_offset * own, item));
}

ValueId append_copy(Graph& graph, ValueId value, LocationId location) {
  const auto append = [&](const OperatorSchema* op, std::vector<Argument> args, TensorMeta meta) {
    const NodeId node = graph.add_node(op, std::move(args), {std::move(meta)}, location);
    return graph.nodes[node].outputs.front();
  };
  const TensorMeta whole = graph.meta(value);
  TensorMeta part = whole;
  for (size_t d = 0; d < whole.sizes.size(); ++d) {
    if (!(whole.strides[d] == Expr(0)) || !sym::known_less(1, whole.sizes[d])) continue;
    part.sizes[d] = 1;
    value = append(op::slice(), {ValueRef{value}, Expr(static_cast<int64_t>(d)), Expr(0), Expr(1), Expr(1)},
                   part);
  }
  const bool repeats = part.sizes != whole.sizes;
  part.storage_offset = 0;
  if (!is_non_overlapping_and_dense(part)) part.strides = contiguous_strides(part.sizes);
  value = append(op::clone(), {ValueRef{value}, MemoryFormat::Preserve}, part);
  if (!repeats) return value;
  for (size_t d = 0; d < whole.sizes.size(); ++d)
    if (part.sizes[d] != whole.sizes[d]) part.strides[d] = 0;
  part.sizes = whole.sizes;
  return append(op::expand(), {ValueRef{value}, whole.sizes, false}, part);
}

void rename_inputs(Node& node, const std::function<ValueId(ValueId)>& renamed) {
  for (size_t i = 0; i < node.args.size(); ++i) {
    if (const auto* ref = std::get_if<ValueRef>(&node.args[i])) {
      const ValueId id = ref->id, fresh = renamed(id);
      if (fresh != id) node.args.edit()[i] = ValueRef{fresh};
    } else if (const auto* list = std::get_if<ValueList>(&node.args[i])) {
      ValueList fresh = *list;
      for (ValueId& id : fresh.ids)
        if (id != kNoValue) id = renamed(id);
      if (!(fresh == std::get<ValueList>(node.args[i]))) node.args.edit()[i] = std::move(fresh);
    }
  }
}

void for_each_written(const Node& node, const std::function<void(ValueId)>& fn) {
  Node written;
  for (size_t a = 0; a < node.args.size(); ++a)
    if (node.op->arguments[a].is_written) written.args.edit().push_back(node.args[a]);
  for_each_input(written, fn);
}

bool same(const Node& a, const Node& b) {
  if (a.op != b.op || a.outputs != b.outputs || a.args.size() != b.args.size()) return false;
  for (size_t i = 0; i < a.args.size(); ++i)
    if (!same_argument(a.args[i], b.args[i])) return false;
  return a.computed == b.computed && a.checks == b.checks;
}

bool same(const Graph& a, const Graph& b) {
  if (a.inputs != b.inputs || a.values.size() != b.values.size() || a.nodes.size() != b.nodes.size() ||
      a.constants.size() != b.constants.size() || a.outputs.size() != b.outputs.size() ||
      a.mutations.size() != b.mutations.size())
    return false;
  for (const ValueId id : a.values.ids())
    if (a.values[id].node != b.values[id].node || !(*a.values[id].meta == *b.values[id].meta)) return false;
  for (size_t i = 0; i < a.constants.size(); ++i)
    if (a.constants[i].value != b.constants[i].value || a.constants[i].handle != b.constants[i].handle)
      return false;
  for (size_t i = 0; i < a.outputs.size(); ++i)
    if (a.outputs[i].value != b.outputs[i].value || a.outputs[i].kind != b.outputs[i].kind ||
        a.outputs[i].alias != b.outputs[i].alias)
      return false;
  for (size_t i = 0; i < a.mutations.size(); ++i)
    if (a.mutations[i].input != b.mutations[i].input || a.mutations[i].value != b.mutations[i].value)
      return false;
  for (const NodeId id : a.nodes.ids()) {
    if (!same(a.nodes[id], b.nodes[id])) return false;
    const Location* x = location_of(a, a.nodes[id]);
    const Location* y = location_of(b, b.nodes[id]);
    if ((x == nullptr) != (y == nullptr) || (x != nullptr && *x != *y)) return false;
  }
  return true;
}

}  // namespace oxy::graph
