// The ATen graph: what capture records and passes rewrite, in single static assignment.
#pragma once

#include <complex>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "aten/schema.h"
#include "aten/tensor_meta.h"
#include "base/id.h"
#include "base/shared_list.h"
#include "sym/relations/condition.h"

namespace oxy::graph {

struct Value;
using ValueId = Id<Value>;
inline constexpr ValueId kNoValue;

struct Node;
using NodeId = Id<Node>;  // in program order
inline constexpr NodeId kNoNode;

struct Location;
using LocationId = Id<Location>;
inline constexpr LocationId kNoLocation;

struct None {
  friend bool operator==(const None&, const None&) = default;
};
struct ValueRef {  // a tensor
  ValueId id;
  friend bool operator==(const ValueRef&, const ValueRef&) = default;
};
struct ValueList {  // a list of tensors; kNoValue stands for an absent optional one
  std::vector<ValueId> ids;
  friend bool operator==(const ValueList&, const ValueList&) = default;
};

// An argument of a node. A Tensor parameter holds a ValueRef, or a plain number where the user wrote one
// (`x + 1`: PyTorch's wrapped number, which does not take part in type promotion with its own width).
using Argument =
    std::variant<None, ValueRef, ValueList, bool, Expr, double, std::complex<double>, std::string, DType,
                 Device, MemoryFormat, std::vector<bool>, std::vector<Expr>, std::vector<double>>;

// A symbol whose value a node computes: the host reads it behind the node, while the graph runs.
struct ComputedSymbol {
  Expr variable;
  int32_t output = -1;  // whose size it is, of the node's outputs; -1: it is the number that the node returns
  int32_t dimension = -1;
  bool is_wanted = false;  // by the caller, once the graph has run
  friend bool operator==(const ComputedSymbol&, const ComputedSymbol&) = default;
};

// Passes copy nodes from graph to graph, most of them as they are: such copies share their lists.
struct Node {
  const OperatorSchema* op = nullptr;
  SharedList<Argument> args;    // one a schema argument, defaults filled in
  SharedList<ValueId> outputs;  // one a returned tensor; a returned TensorList is flattened
  LocationId location;          // the user's line, none if unknown
  std::vector<ComputedSymbol> computed = {};
  // What has to hold of the symbols that are known behind the node. If it does not, the run fails.
  std::vector<sym::Condition> checks = {};
};

// As a checkpoint: what a backward pass of the program's own has recorded.
inline constexpr int32_t kInBackwardPass = -1;

// Where a node comes from.
struct Location {
  std::string text;  // "file.py:12 in forward"
  int32_t checkpoint =
      0;  // the outermost call of torch.utils.checkpoint that it ran under, by number; 0: none
  friend bool operator==(const Location&, const Location&) = default;
};

// Metadata that no longer changes, shared by the graphs that a value is copied to.
class SharedMeta {
 public:
  SharedMeta() : SharedMeta(TensorMeta()) {}
  // A copy stands for a move, so that none is left without metadata.
  SharedMeta(const SharedMeta&) = default;
  SharedMeta& operator=(const SharedMeta&) = default;
  SharedMeta(TensorMeta meta) : meta_(std::make_shared<const TensorMeta>(std::move(meta))) {}
  const TensorMeta& operator*() const { return *meta_; }
  const TensorMeta* operator->() const { return meta_.get(); }

 private:
  std::shared_ptr<const TensorMeta> meta_;  // never null
};

struct Value {
  SharedMeta meta;
  NodeId node;  // the producer, none for inputs and constants
};

// A tensor that capture met as a literal (torch.tensor(2.0)) or that freezing made constant. The data is held
// by whoever made the graph, under `handle`.
struct Constant {
  ValueId value;
  int32_t handle = -1;
};

enum class OutputKind : uint8_t {
  Value,       // a tensor of its own
  InputAlias,  // graph input `alias` (index into inputs) itself or a view of it, with the metadata of `value`
  OutputAlias,  // a view of graph output `alias` (index into outputs, smaller than this one)
};
struct Output {
  ValueId value;
  OutputKind kind = OutputKind::Value;
  int32_t alias = -1;
};

// After functionalisation: input number `input` has the contents of `value` once the graph has run.
struct Mutation {
  int32_t input = -1;
  ValueId value;
  bool is_seen = true;  // by autograd, which counts writes to a tensor (Tensor._version)
};

struct Graph {
  IdVector<ValueId, Value> values;
  std::vector<ValueId> inputs;
  std::vector<Constant> constants;
  IdVector<NodeId, Node> nodes;  // in program order
  std::vector<Output> outputs;
  std::vector<Mutation> mutations;
  IdVector<LocationId, Location> locations;

  ValueId add_value(SharedMeta meta);
  ValueId add_input(SharedMeta meta);
  ValueId add_constant(SharedMeta meta, int32_t handle);
  // Appends a node whose outputs are new values with these metadata.
  NodeId add_node(const OperatorSchema* op, std::vector<Argument> args, std::vector<TensorMeta> outputs,
                  LocationId location = kNoLocation);
  // The checkpoint that a node belongs to, 0 for none.
  int32_t checkpoint(const Node& node) const {
    return node.location == kNoLocation ? 0 : locations.at(node.location).checkpoint;
  }
  // The reference remains valid while values are added, until the value gets other metadata.
  const TensorMeta& meta(ValueId id) const { return *values.at(id).meta; }
};

// How many elements of `view` lie between the first element of `base` and its own, in one storage.
Expr offset_between(const TensorMeta& base, const TensorMeta& view);

// Appends nodes that copy the value to memory of its own; dimensions that repeat their elements go on doing
// so.
ValueId append_copy(Graph& graph, ValueId value, LocationId location = kNoLocation);

// Calls fn(ValueId) for every tensor that the node reads, in argument order.
template <class Fn>
void for_each_input(const Node& node, Fn&& fn) {
  for (const Argument& argument : node.args) {
    if (const auto* ref = std::get_if<ValueRef>(&argument)) {
      fn(ref->id);
    } else if (const auto* list = std::get_if<ValueList>(&argument)) {
      for (const ValueId id : list->ids)
        if (id != kNoValue) fn(id);
    }
  }
}

// Puts renamed(id) in the place of every tensor that the node reads.
void rename_inputs(Node& node, const std::function<ValueId(ValueId)>& renamed);

// Calls fn for those that the node writes to.
void for_each_written(const Node& node, const std::function<void(ValueId)>& fn);

// The device of the first value that is not on the host; the host if there is none.
Device main_device(const Graph& graph);

// Equal in everything but the numbering of locations; NaN equals NaN.
bool same(const Node& a, const Node& b);  // locations not compared
bool same(const Graph& a, const Graph& b);

// Text form, one node a line; same(parse(print(g)), g) if every value of g is defined. Grammar in
// graph/parse.cpp.
std::string print(const Graph& graph);
Graph parse(std::string_view text);  // UserError with line and column

// InternalError naming the first broken rule: every value is defined once and before use, argument counts and
// kinds fit the schema, aliases point backwards, and (if `functional`) no node mutates.
void verify(const Graph& graph, bool functional);

}  // namespace oxy::graph
