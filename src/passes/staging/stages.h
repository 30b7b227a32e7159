// A graph whose symbols depend on data, in stages. Between two stages the host reads numbers and sizes, so
// that each stage is a graph whose sizes are known when it begins.
//
// A node is in the latest stage that its readers allow, since what is computed where it is read can be fused
// with it. Nodes that compute symbols (graph::Node::computed) and those that check indices
// (op::check_indices) are in no stage: they run between stages, as early as they can. What follows a check in
// program order runs behind it, because it may rely on it. Effects keep their order. Views are made again in
// each stage that reads them, so that
// only tensors of their own memory cross.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace oxy::passes {

struct Stage {
  graph::Graph graph;                   // functional
  std::vector<graph::ValueId> inputs;   // by input of the graph: the value of the source that it is
  std::vector<graph::ValueId> outputs;  // likewise by output; none is a view
  std::vector<graph::Node> reads;       // run behind it in this order; over values of the source
  std::vector<graph::ValueId> spent;    // values of stages and reads that nothing needs from here on
};

// A result of the source.
struct StagedOutput {
  graph::OutputKind kind = graph::OutputKind::Value;
  // Value: the output of a stage or a read, in whose memory the result lies as the source's metadata say. If
  // it comes from the last stage, it is the result itself.
  graph::ValueId value;
};

struct StagedProgram {
  std::vector<Stage> stages;  // at least one; the last one has the source's mutations
  std::vector<StagedOutput> outputs;
  // By value of the source: the value in whose memory it lies, where views are read by reads or are results;
  // else itself.
  IdVector<graph::ValueId, graph::ValueId> roots;
};

// Without the nodes that no result, effect or check needs. A symbol that nothing mentions is not computed.
graph::Graph without_unneeded_reads(const graph::Graph& source);

// Whether the host has to read data: a node computes a symbol or checks indices.
bool reads_data(const graph::Graph& graph);

// Precondition: functional, and reads_data().
StagedProgram cut_into_stages(const graph::Graph& source);

}  // namespace oxy::passes
