// The elements of a recording's values as expressions, as far as the program has asked for them
// (element_expressions.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"
#include "trace/session/element_arithmetic.h"

namespace oxy::trace {

struct ElementTable {
  // The symbol of an element of an input, by its place in row-major order. Null: elements are no expressions.
  std::function<Expr(graph::ValueId input, int64_t place, int64_t value)> symbol_of;
  std::unordered_map<graph::ValueId, Expr> numbers;  // inputs that stand for ints of the program's

  std::vector<Element> elements;
  // By value: for each element its place among `elements`, in int64.
  std::unordered_map<graph::ValueId, at::Tensor> places;
  // Those that nobody has asked for: elements of inputs.
  struct Unread {
    graph::ValueId input;
    int64_t place;
    int64_t value;  // at this call
  };
  std::unordered_map<int64_t, Unread> unread;
};

}  // namespace oxy::trace
