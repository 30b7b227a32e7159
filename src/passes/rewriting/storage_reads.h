// Values that must stay where they were recorded.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "passes/rewriting/rewrite.h"

namespace oxy::passes {

// Whether an as_strided reads the whole storage that it lies in, through views or not.
IdVector<graph::ValueId, bool> values_read_as_storage(const graph::Graph& graph);

// What results of the graph are views of, besides themselves.
IdVector<graph::ValueId, bool> values_behind_results(const graph::Graph& graph);

// Whether a result that is a view of one of the site's outputs would be another part of the memory that it
// lies in if these values, one for each output, replaced them. Views that are results say which part of a
// copy they are, and not which part of something larger. `are_behind_results`: values_behind_results() of the
// source.
bool moves_results(const Site& site, const std::vector<graph::ValueId>& replacements,
                   const IdVector<graph::ValueId, bool>& are_behind_results);

}  // namespace oxy::passes
