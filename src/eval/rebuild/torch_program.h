// A captured region as calls of torch's functions and methods, as the user's program made them. Backends of
// the user's are given it, as a torch.fx.GraphModule.
#pragma once

#include <Python.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "cpy/ref.h"
#include "sym/expr.h"

namespace oxy::eval {

// A tensor of the program: a graph input, the result of a call, or an element of a result.
struct TorchValue {
  bool is_input = false;
  int32_t index = -1;          // of the graph input, or of the call
  std::vector<cpy::Ref> path;  // keys into the call's result, outermost first
};

enum class TorchArgumentKind : uint8_t { Constant, Integer, Tensor, Tuple, List, Dict, Slice };

struct TorchArgument {
  TorchArgumentKind kind = TorchArgumentKind::Constant;
  cpy::Ref constant;
  sym::Expr integer;  // of symbols that are read before the region runs
  TorchValue tensor;
  std::vector<cpy::Ref> keys;        // of a dict
  std::vector<TorchArgument> items;  // of a slice: start, stop, step
};

struct TorchCall {
  cpy::Ref target;  // a callable; if `is_method`, the name of a method of the first argument
  bool is_method = false;
  std::vector<TorchArgument> positional;
  std::vector<std::pair<cpy::Ref, TorchArgument>> keywords;
};

struct TorchProgram {
  std::vector<TorchCall> calls;     // in program order; they may write to their arguments
  std::vector<TorchValue> outputs;  // the same outputs as those of Capture::recording
  std::vector<sym::Expr> symbols;   // those of the integers: inputs, too, before the tensors
};

}  // namespace oxy::eval
