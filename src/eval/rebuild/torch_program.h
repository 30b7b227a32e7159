// A captured region as calls of torch's functions and methods, in the words of the user's program: what a
// backend that takes a torch.fx.GraphModule is given.
#pragma once

#include <Python.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "cpy/ref.h"

namespace oxy::eval {

// A tensor of the program: a graph input, what a call returned, or an element of that.
struct TorchValue {
  bool is_input = false;
  int32_t index = -1;          // of the graph input, or of the call
  std::vector<cpy::Ref> path;  // keys into the call's result, outermost first
};

enum class TorchArgumentKind : uint8_t { Constant, Tensor, Tuple, List, Dict, Slice };

struct TorchArgument {
  TorchArgumentKind kind = TorchArgumentKind::Constant;
  cpy::Ref constant;
  TorchValue tensor;
  std::vector<cpy::Ref> keys;        // of a dict
  std::vector<TorchArgument> items;  // of a slice: start, stop, step
};

struct TorchCall {
  cpy::Ref target;  // a callable, or the name of a method of the first argument's
  bool is_method = false;
  std::vector<TorchArgument> positional;
  std::vector<std::pair<cpy::Ref, TorchArgument>> keywords;
};

struct TorchProgram {
  std::vector<TorchCall> calls;     // in order; they may write to their arguments
  std::vector<TorchValue> outputs;  // those of the recording made beside it
};

}  // namespace oxy::eval
