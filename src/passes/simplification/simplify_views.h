#pragma once

#include "graph/graph.h"

namespace oxy::passes {

// Leaves few kinds of views, and none that do nothing:
//   alias, detach, lift_fresh, views and copies that give their argument's own metadata: the argument itself
//   _unsafe_view, reshape, _reshape_alias, squeeze, unsqueeze, view of a view: one aten::view
//   t, transpose, permute of a permute: one aten::permute
//   expand of an expand: one aten::expand
//   split, split_with_sizes, unbind: slices and selects
//   clone of a permuted clone: one clone at most
//   _to_copy to a wider type and on to another: one _to_copy
//   copies into the whole of a tensor: the copied value
// Metadata stay those recorded. The graph must be functional: values are values, whether they share memory or
// not. separate_results() restores outputs that must not share any.
graph::Graph simplify_views(const graph::Graph& source);

}  // namespace oxy::passes
