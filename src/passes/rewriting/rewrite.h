// Rebuilding a graph node by node: what most passes are made of.
//
// A pass walks the source in program order and, for each node, keeps it or puts other values of the new graph
// in the place of its outputs. Arguments arrive already renamed, so that a rule sees producers as earlier
// rules left them, and one walk simplifies whole chains. Values are numbered afresh: inputs, constants, nodes
// in order.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "graph/graph.h"

namespace oxy::passes {

using graph::Argument;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::ValueId;
using graph::ValueRef;

class Rewriter {
 public:
  // Copies inputs, constants and locations. `source` must outlive the rewriter.
  explicit Rewriter(const Graph& source);

  Graph& graph() { return out_; }
  const Graph& source() const { return source_; }

  // The new value for a value of the source; kNoValue while it has none.
  ValueId map(ValueId source_value) const { return map_[source_value]; }
  void set(ValueId source_value, ValueId new_value) { map_[source_value] = new_value; }
  // The node with its arguments renamed; its outputs still name values of the source.
  Node renamed(const Node& source_node) const;
  // Appends a node that renamed() gave.
  void keep(Node renamed_node);
  // Renames outputs and mutations and gives the graph away.
  Graph finish();

 private:
  const Graph& source_;
  Graph out_;
  IdVector<ValueId, ValueId> map_;
};

// One node on its way into the new graph.
struct Site {
  Graph& graph;          // the new graph, up to this node
  const Graph& source;   // the old one
  const Node& node;      // arguments: values of `graph`; outputs: values of `source`
  const Node& original;  // the node as it is in `source`

  const TensorMeta& meta(size_t output = 0) const { return source.meta(node.outputs.at(output)); }
  // Appends a node with one output at this node's location and returns the output.
  ValueId emit(const OperatorSchema* op, std::vector<Argument> args, TensorMeta meta) const;
};

// Returns the values that replace the node's outputs, or nothing to keep the node.
using Rule = std::function<std::optional<std::vector<ValueId>>(const Site& site)>;

Graph rewrite(const Graph& source, const Rule& rule);

// Appends the site's node without one of its results, and gives its outputs: kNoValue for those that it does
// not have. The node's last argument is an output_mask, which has this result. Where it has no other, nothing
// is appended.
std::vector<ValueId> keep_without(const Site& site, size_t result);

// The view of a matrix with its two dimensions exchanged.
ValueId transposed(const Site& site, ValueId matrix);

// Appends to `graph` a copy of a node of `source`, behind copies of whatever it needs that is not there yet.
// `map`: for each value of the source, the value of `graph` or kNoValue; what is appended enters it. Inputs
// and constants must be in it.
void append_with_needs(const Graph& source, const Node& node, Graph& graph, IdVector<ValueId, ValueId>& map);

// The node that computes a value, or nullptr for inputs and constants.
const Node* producer(const Graph& graph, ValueId value);
// The tensor that argument `index` holds, kNoValue if it holds none.
ValueId tensor_argument(const Node& node, size_t index);
// The integer that argument `index` holds, if it is one that is known now.
std::optional<int64_t> integer_argument(const Node& node, size_t index);
// The constant real number that argument `index` holds (integers and booleans included).
std::optional<double> number_argument(const Node& node, size_t index);
// How often each value is read by nodes, outputs and mutations.
IdVector<ValueId, int32_t> use_counts(const Graph& graph);
// For each value, the node that reads it, if nothing else does and it does so once; none otherwise.
IdVector<ValueId, NodeId> only_readers(const Graph& graph);
// Equal type, device, sizes and strides: one may stand for the other anywhere but below as_strided.
bool same_layout(const TensorMeta& a, const TensorMeta& b);
// The same, but strides of dimensions of size 1, which say nothing, may differ.
bool same_memory_order(const TensorMeta& a, const TensorMeta& b);
// The metadata of a new contiguous tensor.
TensorMeta contiguous_meta(DType dtype, Device device, std::vector<Expr> sizes);

// True if a node must stay although nothing reads it, and must not be merged with its like: it draws random
// numbers (eager advances the generator), writes, returns no tensor, or belongs to a library whose operators
// may have effects that their schema does not show.
bool has_effect(const Node& node);
// True if the result shares memory with its argument, or may.
bool is_view_like(const OperatorSchema& op);
// True if the memory of a value is a node's result, not an input's or a constant's.
bool owned_by_graph(const Graph& graph, ValueId value);

}  // namespace oxy::passes
