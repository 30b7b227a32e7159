#include "passes/simplification/common_subexpressions.h"

#include <bit>
#include <unordered_map>
#include <utility>

#include "passes/rewriting/rewrite.h"

namespace oxy::passes {
namespace {

void combine(size_t& seed, size_t value) {
  seed ^= value + 0x9e3779b97f4a7c15ULL + (seed << 6) + (seed >> 2);
}

struct ArgumentHash {
  size_t operator()(const graph::None&) const { return 1; }
  size_t operator()(const ValueRef& ref) const { return std::hash<ValueId>()(ref.id) * 31; }
  size_t operator()(const graph::ValueList& list) const {
    size_t seed = list.ids.size();
    for (ValueId id : list.ids) combine(seed, std::hash<ValueId>()(id));
    return seed;
  }
  size_t operator()(bool value) const { return value ? 3 : 2; }
  size_t operator()(const Expr& value) const { return value.hash(); }
  size_t operator()(double value) const { return std::bit_cast<uint64_t>(value); }
  size_t operator()(const std::complex<double>& value) const {
    return (*this)(value.real()) * 31 + (*this)(value.imag());
  }
  size_t operator()(const std::string& value) const { return std::hash<std::string>()(value); }
  size_t operator()(DType value) const { return static_cast<size_t>(value); }
  size_t operator()(Device value) const {
    return static_cast<size_t>(value.kind) * 256 + static_cast<uint8_t>(value.index);
  }
  size_t operator()(MemoryFormat value) const { return static_cast<size_t>(value); }
  template <typename Item>
  size_t operator()(const std::vector<Item>& list) const {
    size_t seed = list.size();
    for (const auto& item : list) combine(seed, (*this)(Item(item)));
    return seed;
  }
};

size_t hash_of(const Node& node) {
  size_t seed = std::hash<const void*>()(node.op);
  for (const Argument& arg : node.args) combine(seed, std::visit(ArgumentHash{}, arg) * 16 + arg.index());
  return seed;
}

bool same_bits(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

// Equal as a literal: 0.0 and -0.0 differ, a NaN equals itself.
bool same_argument(const Argument& a, const Argument& b) {
  if (a.index() != b.index()) return false;
  if (const auto* x = std::get_if<double>(&a)) return same_bits(*x, std::get<double>(b));
  if (const auto* x = std::get_if<std::complex<double>>(&a)) {
    const auto& y = std::get<std::complex<double>>(b);
    return same_bits(x->real(), y.real()) && same_bits(x->imag(), y.imag());
  }
  return a == b;
}

bool same_call(const Graph& graph, const Node& a, const Node& b, const Graph& source_of_b) {
  if (a.op != b.op || a.args.size() != b.args.size() || a.outputs.size() != b.outputs.size()) return false;
  for (size_t i = 0; i < a.args.size(); ++i)
    if (!same_argument(a.args[i], b.args[i])) return false;
  for (size_t i = 0; i < a.outputs.size(); ++i) {
    if ((a.outputs[i] == graph::kNoValue) != (b.outputs[i] == graph::kNoValue)) return false;
    if (a.outputs[i] != graph::kNoValue && !(graph.meta(a.outputs[i]) == source_of_b.meta(b.outputs[i])))
      return false;
  }
  return true;
}

void merge_constants(Rewriter& rewriter) {
  const Graph& source = rewriter.source();
  std::unordered_multimap<int32_t, ValueId> by_handle;
  for (const graph::Constant& constant : source.constants) {
    auto [begin, end] = by_handle.equal_range(constant.handle);
    bool merged = false;
    for (auto it = begin; it != end && !merged; ++it) {
      if (!(source.meta(it->second) == source.meta(constant.value))) continue;
      rewriter.set(constant.value, rewriter.map(it->second));
      merged = true;
    }
    if (!merged) by_handle.emplace(constant.handle, constant.value);
  }
}

}  // namespace

Graph merge_common_subexpressions(const Graph& source) {
  Rewriter rewriter(source);
  merge_constants(rewriter);
  std::unordered_multimap<size_t, NodeId> seen;  // nodes of the new graph by their hash
  seen.reserve(source.nodes.size());
  for (const Node& source_node : source.nodes) {
    Node node = rewriter.renamed(source_node);
    if (has_effect(node)) {
      rewriter.keep(std::move(node));
      continue;
    }
    Graph& out = rewriter.graph();
    size_t hash = hash_of(node);
    auto [begin, end] = seen.equal_range(hash);
    const Node* same = nullptr;
    for (auto it = begin; it != end && same == nullptr; ++it) {
      const Node& candidate = out.nodes[it->second];
      if (same_call(out, candidate, node, source)) same = &candidate;
    }
    if (same == nullptr) {
      seen.emplace(hash, out.nodes.next_id());
      rewriter.keep(std::move(node));
      continue;
    }
    for (size_t i = 0; i < node.outputs.size(); ++i)
      if (node.outputs[i] != graph::kNoValue) rewriter.set(node.outputs[i], same->outputs[i]);
  }
  return rewriter.finish();
}

}  // namespace oxy::passes
