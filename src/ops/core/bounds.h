// Between which numbers all elements of a tensor lie, whatever the inputs of the graph hold. Masks that a
// program builds of sizes alone are often true everywhere: attention without such a mask has faster kernels.
#pragma once

#include <functional>
#include <limits>
#include <optional>

#include "graph/graph.h"

namespace oxy::ops {

// No element is below `low`, above `high`, or NaN. False is 0, true is 1. Both are infinite or whole numbers
// of at most kLargestBound, which every floating type holds: rounding does not move an element past them.
inline constexpr double kLargestBound = 256;
struct Bounds {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
};

// Of the argument at a place, a tensor or a number; nothing where it is not known.
using BoundsOfArgument = std::function<std::optional<Bounds>(size_t place)>;
// Of the first result.
using BoundsRule = std::optional<Bounds> (*)(const BoundsOfArgument& arguments);

// The narrowest bounds of that form which contain the given ones.
Bounds widened(Bounds bounds);

// Of a number among the arguments of a node.
std::optional<Bounds> bounds_of_number(const graph::Argument& argument);

namespace bounds {

std::optional<Bounds> zeros(const BoundsOfArgument& arguments);
std::optional<Bounds> ones(const BoundsOfArgument& arguments);
std::optional<Bounds> filled(const BoundsOfArgument& arguments);         // full(size, value)
std::optional<Bounds> scalar_tensor(const BoundsOfArgument& arguments);  // (value)
std::optional<Bounds> count_to(const BoundsOfArgument& arguments);       // arange(end)
std::optional<Bounds> count_from(const BoundsOfArgument& arguments);     // arange(start, end, step = 1)
std::optional<Bounds> sum(const BoundsOfArgument& arguments);            // (a, b, alpha)
std::optional<Bounds> difference(const BoundsOfArgument& arguments);     // (a, b, alpha)
std::optional<Bounds> less(const BoundsOfArgument& arguments);
std::optional<Bounds> less_equal(const BoundsOfArgument& arguments);
std::optional<Bounds> greater(const BoundsOfArgument& arguments);
std::optional<Bounds> greater_equal(const BoundsOfArgument& arguments);
std::optional<Bounds> conjunction(const BoundsOfArgument& arguments);  // of truth values
std::optional<Bounds> disjunction(const BoundsOfArgument& arguments);
std::optional<Bounds> chosen(const BoundsOfArgument& arguments);  // where(condition, a, b)

}  // namespace bounds

}  // namespace oxy::ops
