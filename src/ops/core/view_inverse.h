// How a write to a view is replayed to the tensor that it is a view of.
//
// In a graph without writes, a write to a view makes a new value of the view. The view's inverse makes a new
// value of the base from it (functionalisation, the PyTorch 2 paper, section 4.3 "functionalization").
#pragma once

#include <vector>

#include "graph/graph.h"

namespace oxy::ops {

// One write to be replayed. `view` and `recorded_base` belong to `recorded`; `base` and `written` are values
// of `graph`, with the sizes and element types that the recorded values have.
struct ViewWrite {
  graph::Graph& graph;
  const graph::Graph& recorded;
  const graph::Node& view;
  size_t output;  // which of the view's results is written
  graph::ValueId recorded_base;
  graph::ValueId base;     // what the base is before the write
  graph::ValueId written;  // what the result is after it
  TensorMeta result;       // of the base after it

  // Appends the node that makes the new value of the base.
  graph::ValueId add(const OperatorSchema* op, std::vector<graph::Argument> args);
  const graph::Argument& arg(size_t i) const { return view.args.at(i); }
  const TensorMeta& base_meta() const { return recorded.meta(recorded_base); }
  // A dimension argument, counted from the front.
  int64_t dimension(size_t i) const;
};

// A trait of views.
struct ViewInverse {
  enum class Kind : uint8_t {
    None,      // not expressible
    Identity,  // the result is the base
    Scatter,   // an operator over (base, written): any strides of `written` will do
    Reshape,   // an operator over `written` alone, which must have the strides of the view's result
  };

  Kind kind = Kind::None;
  // Appends the nodes that make the new value of the base, and returns it. nullptr for None and Identity.
  graph::ValueId (*write)(ViewWrite& write) = nullptr;

  bool operator==(const ViewInverse&) const = default;
};

// The kind of the inverse of this node. Views that repeat elements have none, whatever their operator's is.
ViewInverse::Kind inverse_of(const graph::Graph& graph, const graph::Node& view);

// The new value of the base. InternalError if inverse_of() is None.
graph::ValueId write_through(ViewWrite write);

}  // namespace oxy::ops
