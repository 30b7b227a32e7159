// Slices: the part of a recording on which a value depends, where that is small enough to be calculated while
// the program is captured.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <unordered_set>
#include <vector>

#include "graph/graph.h"
#include "trace/session/session.h"

namespace oxy::trace {

// The nodes on which a value depends, in program order, and what they read.
struct Slice {
  std::set<graph::NodeId> nodes;
  std::unordered_set<graph::ValueId> values;
  std::vector<graph::ValueId> inputs;
};

// Where a slice may have symbols. They have values at this call.
enum class SymbolsInSlice : uint8_t {
  None,
  InArguments,  // of operators; sizes are numbers
  Anywhere,     // sizes, too
};

// Nothing if the value depends on an input of which `may_read` is false, on what existed before the recording
// in another way, or shares memory with a tensor that the recording writes to.
std::optional<Slice> collect_slice(const Session& session, graph::ValueId value,
                                   const std::function<bool(graph::ValueId)>& may_read,
                                   SymbolsInSlice symbols);

// Has the recording rely on the sizes that the slice has at this call. Precondition: they are at hand.
void specialise(const Session& session, const Slice& slice);

// The node with numbers, on which the recording relies from now on, in the place of symbols.
graph::Node specialised(const Session& session, const graph::Node& node);

// The data of a constant of the recording.
const at::Tensor& data_of_constant(const Session& session, graph::ValueId constant);

// While it lives, operators on real tensors run in eager, below autograd and autocast.
class RunsInEager {
 public:
  RunsInEager();
  ~RunsInEager();
  RunsInEager(const RunsInEager&) = delete;
  RunsInEager& operator=(const RunsInEager&) = delete;

 private:
  struct Guards;
  std::unique_ptr<Guards> guards_;
  bool was_paused_;
};

}  // namespace oxy::trace
