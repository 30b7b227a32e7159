// Numbers that may be others at the next call, so that they are no constants of the capture
// (numbers/varying_number.h), and the symbols among them.
#pragma once

#include <Python.h>

#include <ATen/core/Tensor.h>

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "cpy/ref.h"
#include "guards/source.h"
#include "guards/symbol_guards.h"
#include "sym/expr.h"
#include "sym/relations/condition.h"
#include "torch_api/symbolic_node.h"

namespace oxy::eval {

struct Numbers {
  struct Varying {
    cpy::Ref value;           // at this call: an int or float. Null: a number that only data tell
    guards::SourceId source;  // none: an int whose expression tells it, until somebody asks for a source
    std::optional<sym::Expr> expression;                     // of an int, over the symbols
    std::optional<sym::Condition> condition = std::nullopt;  // of a bool that only data tell
    // Of a float that is calculated of sizes that are marked unbacked: an int that is made of these. Nothing
    // but calculations may depend on the value.
    std::optional<sym::Expr> unbacked = std::nullopt;
    // Of a float that only data tell (numbers/float_of_data.h): a trace tensor without dimensions, float64.
    at::Tensor data = {};
    at::ScalarType data_type = at::kDouble;  // every value of it has such a value
    // Of a number that is calculated (guards::SourceKind::Calculated): the symbols that it is made of.
    std::vector<sym::Expr> variables = {};
  };
  // By the object that stands for the number in the program. Externals::keep_alive keeps the keys alive.
  std::unordered_map<PyObject*, Varying> varying;
  // Trace tensors of those numbers that are graph inputs: float64 or int64, without dimensions.
  std::unordered_map<guards::SourceId, cpy::Ref> inputs;
  int calculations = 0;  // how many sources of kind Calculated were made

  torch_api::SymbolsPointer symbols;  // null: the capture makes no symbols
  // By the id of the symbol, up to the last one that has a source.
  std::vector<guards::SymbolSource> symbol_sources;
  // What the sizes that are marked unbacked are at this call, by the id of the symbol: to know the types of
  // what is calculated of them, and for nothing else.
  std::unordered_map<int64_t, int64_t> unbacked_values;
  // By the name that the user gave a number that sizes are made of (sizes/dimension.h).
  struct Named {
    sym::Expr expression;
    int64_t value;  // at this call
  };
  std::map<std::string, Named> named;
  bool has_symbols() const { return symbols && !symbols->environment.symbols().empty(); }
};

}  // namespace oxy::eval
