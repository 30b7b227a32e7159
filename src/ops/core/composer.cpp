#include "ops/core/composer.h"

#include <fmt/format.h>

#include "base/error.h"
#include "graph/literal_parser.h"

namespace oxy::ops {

using graph::Argument;
using graph::Graph;
using graph::Node;
using graph::ValueId;
using graph::ValueRef;

TensorMeta Composer::meta(const Argument& tensor) const {
  const auto* ref = std::get_if<ValueRef>(&tensor);
  if (ref == nullptr) throw Unsupported(node_.op->name + ": a tensor is expected");
  return graph_.meta(ref->id);
}

const Node* Composer::producer(const Argument& tensor) const {
  const auto* ref = std::get_if<ValueRef>(&tensor);
  if (ref == nullptr || ref->id == graph::kNoValue) return nullptr;
  const graph::NodeId node = graph_.values.at(ref->id).node;
  return node == graph::kNoNode ? nullptr : &graph_.nodes[node];
}

int64_t Composer::integer(size_t i) const {
  const auto* e = std::get_if<Expr>(&arg(i));
  if (e == nullptr || !e->is_constant()) throw Unsupported(node_.op->name + ": a known integer is expected");
  return e->constant();
}

double Composer::real(size_t i) const {
  if (const auto* d = std::get_if<double>(&arg(i))) return *d;
  if (const auto* b = std::get_if<bool>(&arg(i))) return *b ? 1.0 : 0.0;
  return static_cast<double>(integer(i));
}

std::vector<ValueRef> Composer::without_left_out(std::vector<ValueRef> results) const {
  for (size_t i = 0; i < results.size(); ++i)
    if (!has_result(i)) results[i].id = graph::kNoValue;
  return results;
}

std::vector<ValueRef> Composer::call_many(std::string_view name, std::vector<Argument> args) {
  const OperatorEntry* entry = find(name);
  if (entry == nullptr) throw Unsupported(fmt::format("{} has no shape rule", name));
  return call_many(schema_of(*entry), std::move(args));
}

std::vector<ValueRef> Composer::call_many(const OperatorSchema* schema, std::vector<Argument> args) {
  const ShapeRule& shape = entry_of(*schema).shape;
  if (!shape) throw Unsupported(fmt::format("{} has no shape rule", schema->name));
  for (size_t i = args.size(); i < schema->arguments.size(); ++i)
    args.push_back(graph::parse_default(graph::Lexer(schema->name), schema->arguments[i]));
  const std::function<const TensorMeta&(ValueId)> meta_of = [this](ValueId id) -> const TensorMeta& {
    return graph_.meta(id);
  };
  // The default dtype only types numbers without a tensor, which decompositions do not write.
  const ShapeContext context(*schema, args, meta_of, DType::Float32);
  std::vector<TensorMeta> metas = shape(context);
  const OperatorEntry& entry = entry_of(*schema);
  const std::vector<bool> exists =
      entry.has_result ? entry.has_result(context) : std::vector<bool>(metas.size(), true);
  size_t next = 0;
  std::erase_if(metas, [&](const TensorMeta&) { return !exists[next++]; });
  std::vector<ValueRef> results = append(schema, std::move(args), std::move(metas));
  std::vector<ValueId>& outputs = graph_.nodes.back().outputs.edit();
  for (size_t i = 0; i < exists.size(); ++i) {
    if (exists[i]) continue;
    outputs.insert(outputs.begin() + static_cast<std::ptrdiff_t>(i), graph::kNoValue);
    results.insert(results.begin() + static_cast<std::ptrdiff_t>(i), {graph::kNoValue});
  }
  return results;
}

std::vector<ValueRef> Composer::call_for(std::string_view name, std::vector<Argument> args,
                                         std::vector<TensorMeta> results) {
  const OperatorEntry* entry = find(name);
  if (entry == nullptr) throw Unsupported(fmt::format("{} is not known", name));
  return append(schema_of(*entry), std::move(args), std::move(results));
}

std::vector<ValueRef> Composer::append(const OperatorSchema* schema, std::vector<Argument> args,
                                       std::vector<TensorMeta> results) {
  const graph::NodeId index = graph_.add_node(schema, std::move(args), std::move(results), node_.location);
  std::vector<ValueRef> outputs;
  for (ValueId id : graph_.nodes[index].outputs) outputs.push_back({id});
  return outputs;
}

ValueRef Composer::call(std::string_view name, std::vector<Argument> args) {
  return call_many(name, std::move(args)).at(0);
}

ValueRef Composer::call(const OperatorSchema* op, std::vector<Argument> args) {
  return call_many(op, std::move(args)).at(0);
}

ValueRef Composer::convert(ValueRef value, DType dtype) {
  return meta(value).dtype == dtype ? value : call("aten::_to_copy", {value, dtype});
}

ValueRef Composer::divide(ValueRef value, const Expr& count) {
  if (!count.is_constant()) return call("aten::div.Tensor", {value, count});
  if (count == Expr(0)) throw Unsupported(node_.op->name + ": a mean of nothing");
  return call("aten::mul.Tensor", {value, 1.0 / static_cast<double>(count.constant())});
}

namespace {

// The same, strides aside where they are of no account.
bool is_same(const TensorMeta& a, const TensorMeta& b) {
  TensorMeta copy_of_a;
  TensorMeta copy_of_b;
  return with_large_sizes(a, copy_of_a) == with_large_sizes(b, copy_of_b);
}

}  // namespace

Decomposition composed(Composition composition) {
  return [composition](Graph& graph, const Node& node) -> std::vector<ValueId> {
    const size_t nodes = graph.nodes.size();
    const size_t values = graph.values.size();
    std::vector<ValueId> results;
    try {
      Composer composer(graph, node);
      for (ValueRef value : composition(composer)) {
        const ValueId expected = composer.node().outputs.at(results.size());
        if (expected != graph::kNoValue && !is_same(graph.meta(value.id), graph.meta(expected)))
          throw Unsupported("other metadata");
        results.push_back(value.id);
      }
    } catch (const Unsupported&) {
      results.clear();
    }
    if (results.empty()) {
      graph.nodes.resize(nodes);
      graph.values.resize(values);
    }
    return results;
  };
}

}  // namespace oxy::ops
