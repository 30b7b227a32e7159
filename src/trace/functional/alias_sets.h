// What the tensors of a recording hold, while its graph is rewritten without writes.
//
// Every recorded value belongs to an alias set: a root, which owns the storage, and chains of views that
// begin at it. The rewritten graph has the current contents of each root. A write makes new contents. A view
// is computed again from them when it is read for the first time after the write.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "trace/functional/rewritten_graph.h"

namespace oxy::trace {

// Values are recorded ones where a parameter says so, and values of the rewritten graph elsewhere. Throws
// Unsupported for views and writes that it cannot express.
class AliasSets {
 public:
  // Keeps references to both. Views and conversions are appended to `rewritten` as they are needed.
  AliasSets(const graph::Graph& recorded, RewrittenGraph& rewritten)
      : in_(recorded), out_(rewritten), entries_(recorded.values.size()) {}

  // Each recorded value is made known once, by one of these: as a tensor with a storage of its own, as the
  // results of a view, or as a written argument that is returned.
  void start_root(graph::ValueId recorded, graph::ValueId value);
  void add_views(graph::NodeId view);
  void add_same(graph::ValueId recorded, graph::ValueId as);

  // The root of the recorded value; what it holds, and how often it was written to.
  graph::ValueId root_of(graph::ValueId recorded) const { return entry(recorded).root; }
  graph::ValueId contents_of(graph::ValueId root) const { return entry(root).value; }
  int64_t writes_to(graph::ValueId root) const { return entry(root).root_version; }
  // Whether one of the writes is for autograd, be it of what is there already.
  bool is_seen(graph::ValueId root) const { return entry(root).is_seen; }

  // The present value of the recorded one.
  graph::ValueId read(graph::ValueId recorded);
  graph::Argument read_argument(const graph::Argument& recorded);
  // `args`: of a call of `op`, which addresses the storage of the recorded `self`. The new value of `self`
  // may begin at another place of its storage, and holds its own elements alone.
  void move_storage_offset(const OperatorSchema& op, graph::ValueId self,
                           std::vector<graph::Argument>& args) const;

  // Throws Unsupported if `op` may not write to the recorded value.
  void check_writable(graph::ValueId recorded, const OperatorSchema& op) const;
  // From now on `recorded` reads as `value`. `is_seen`: autograd counts the write.
  void write(graph::ValueId recorded, graph::ValueId value, bool is_seen);
  // A write of what the recorded value holds already.
  void write_same(graph::ValueId recorded, bool is_seen) { entry(root_of(recorded)).is_seen |= is_seen; }
  // `value` with the element type and sizes of `wanted`; with `strict_layout` also with its strides, which
  // are those of the recorded value `written`.
  graph::ValueId coerce(graph::ValueId value, const TensorMeta& wanted, graph::ValueId written,
                        bool strict_layout);
  // From now on the root reads as `value`, which has the same elements, and its views are computed again from
  // that. After a write the present values of views do not share its memory.
  void read_from(graph::ValueId root, graph::ValueId value);

 private:
  // What is known of a recorded value.
  struct Entry {
    graph::ValueId root;
    graph::ValueId parent;  // none: a root
    graph::NodeId view;     // that made it from its parent; none: it is its parent (a written argument)
    size_t output = 0;
    graph::ValueId value;  // its value in the new graph as of `version`
    int64_t version = -1;
    int64_t root_version = 0;  // of a root: counts writes
    bool is_seen = false;      // likewise: one of them is for autograd
  };

  Entry& entry(graph::ValueId recorded) { return entries_.at(recorded); }
  const Entry& entry(graph::ValueId recorded) const { return entries_.at(recorded); }
  bool is_current(graph::ValueId recorded) const;
  // Whether elements of it may lie in the same memory. Where the strides do not tell, as they are symbols,
  // the views do that lead to it: a part of a tensor repeats no element, and neither does another order of
  // all.
  bool may_repeat(graph::ValueId recorded) const;
  // Converts an offset in elements of `other` to elements of `recorded`, which may have another size.
  Expr in_elements_of(graph::ValueId recorded, const Expr& offset, graph::ValueId other) const;
  // Computes a view again from its parent, whose value is current.
  void replay(graph::ValueId recorded);
  graph::ValueId without_identities(graph::ValueId recorded) const;
  // What an operator addresses the storage of its argument through: the root, or the outermost view on the
  // way to it that has elements of the argument's type.
  graph::ValueId addressed(graph::ValueId argument) const;
  // An argument may be a part of its storage, the elements of which are the caller's.
  // `view` is made by node `n`.
  void check_addressed(const TensorMeta& view, graph::NodeId n, graph::ValueId addressed,
                       graph::ValueId root) const;
  // Whether all elements of a view are known to be elements of the tensor, which fills its storage.
  bool lies_within(const TensorMeta& view, graph::ValueId tensor) const;
  // The same of a view that node `n` makes, behind the checks of the nodes before it. So the next one is
  // lies_between().
  bool lies_within(const TensorMeta& view, graph::ValueId tensor, graph::NodeId n) const;
  bool lies_between_behind(graph::NodeId n, const TensorMeta& view, const TensorMeta& whole) const;

  const graph::Graph& in_;
  RewrittenGraph& out_;
  IdVector<graph::ValueId, Entry> entries_;
};

}  // namespace oxy::trace
