// Values on the host that kernels of a device read: numbers without dimensions, mostly, which eager's kernels
// take as they are.
#pragma once

#include "graph/graph.h"

namespace oxy::passes {

// Copies them to the device in front of their first reader, each once. Operators without a lowering read them
// where they are, as in eager. Operands that eager refuses stay where they are, too.
graph::Graph bring_to_device(const graph::Graph& source);

// Whether eager's kernel reads the node's operand from the host, beside tensors on a device. Where it does
// not, eager raises.
bool takes_from_host(const graph::Graph& graph, const graph::Node& node, graph::ValueId operand);

// Whether the graph has values on several devices, or on a device and on the host.
bool has_several_devices(const graph::Graph& graph);

}  // namespace oxy::passes
