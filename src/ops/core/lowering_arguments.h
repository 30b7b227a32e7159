// Reading a node's arguments in lowering rules. Positions are those of the schema; an argument of another
// kind or, where an int64_t is returned, one that is not known while compiling, throws Unsupported (the node
// then becomes an extern call).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "loop/context.h"

namespace oxy::ops {

using graph::Node;
using loop::BodyBuilder;
using loop::Index;
using loop::LoweringContext;
using loop::Tensor;
using loop::Value;

[[noreturn]] void not_lowered(const Node& node, std::string_view what);

bool is_none(const Node& node, size_t i);  // also if the schema has no such argument
bool is_tensor(const Node& node, size_t i);
const Expr& expression(const Node& node, size_t i);
int64_t integer(const Node& node, size_t i);
int64_t integer_or(const Node& node, size_t i, int64_t otherwise);  // for None
bool flag(const Node& node, size_t i);
double real(const Node& node, size_t i);
std::string text(const Node& node, size_t i);
const std::vector<Expr>& expressions(const Node& node, size_t i);
std::vector<int64_t> integers(const Node& node, size_t i);  // empty if None
const std::vector<graph::ValueId>& tensors(const Node& node, size_t i);
// `dim` counted from the front.
int64_t wrap(int64_t dim, int64_t rank);
int64_t dim(const Node& node, size_t i, int64_t rank);
// An int or a list of ints, counted from the front and sorted; all of them if None or empty.
std::vector<int64_t> dims(const Node& node, size_t i, int64_t rank);
// A position as Python counts it: from the end if it is negative. Its sign may be known at run time alone.
Expr from_front(const Expr& position, const Expr& size);
// A bound of a slice, as Python reads it, limited to [0, size].
Expr slice_bound(const graph::Argument& bound, const Expr& size, const Expr& otherwise);
// Two values for (height, width) from a list of one or two.
std::pair<int64_t, int64_t> pair_of(const Node& node, size_t i);

// The type in which an operator computes that gives `dtype` elements.
inline DType compute_type(DType dtype) {
  return loop::compute_dtype(dtype);
}

}  // namespace oxy::ops
