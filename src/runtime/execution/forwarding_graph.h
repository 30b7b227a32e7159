// A graph around another one: it answers all questions as that one does, and runs in its own way.
#pragma once

#include "runtime/execution/compiled_graph.h"

namespace oxy::runtime {

class ForwardingGraph : public CompiledGraph {
 public:
  Readiness readiness() override { return inner().readiness(); }
  std::exception_ptr failure() const override { return inner().failure(); }
  bool is_long() const override { return inner().is_long(); }
  bool only_replays() const override { return inner().only_replays(); }
  bool may_refuse_sizes() const override { return inner().may_refuse_sizes(); }
  bool reads(size_t i) const override { return inner().reads(i); }
  DeviceGraphState device_graph_state() const override { return inner().device_graph_state(); }
  bool holds_weights() const override { return inner().holds_weights(); }
  bool valid(const InputOf& input) override { return inner().valid(input); }

 protected:
  virtual CompiledGraph& inner() const = 0;
};

}  // namespace oxy::runtime
