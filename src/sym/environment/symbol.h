// Symbols of one compilation: integers of the program that may be others at another call.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sym/expr.h"

namespace oxy::sym {

enum class SymbolId : int64_t {};  // the id of the symbol's variable

enum class SymbolKind : uint8_t {
  Size,     // of a dimension of an input; at least 0, as the next two are
  Stride,   // in elements
  Offset,   // of an input in its storage, in elements
  Integer,  // an int of Python's: an argument, an attribute, a counter
  Data,     // computed from what tensors hold, while the graph runs
};

// What the user said of a size.
enum class MarkKind : uint8_t {
  None,
  Dynamic,       // it varies in `range`: a program that takes it for one number is an error
  MaybeDynamic,  // it may vary
  Static,        // it is the number that it is now
  Unbacked,      // it varies, and nothing may depend on the number that it is now
};
struct Mark {
  MarkKind kind = MarkKind::None;
  Range range = {};  // of a dynamic or an unbacked one; Range{}: the program may narrow it
  // What the size is to the user, for messages: "the dimension 'batch' of dynamic_shapes['x']"; empty: it is
  // marked.
  std::string said = {};
};

struct Origin {
  int64_t source = -1;  // whatever the layer that reads the value knows it by
  std::string name;     // as the user would write it: `x.size(0)`
  std::string
      made_at;  // the user's line that made the symbol: "file.py:12 in forward"; empty: the call itself
};

struct Symbol {
  SymbolId id{};
  SymbolKind kind = SymbolKind::Size;
  Origin origin;
  std::optional<int64_t> hint;  // the value at hand; none: it is not known before the graph runs
  Mark mark;
  Expr variable;  // in the range that its kind has
};

constexpr Range range_of(SymbolKind kind) {
  return kind == SymbolKind::Integer || kind == SymbolKind::Data ? Range{} : Range{0, kMaxInt};
}

}  // namespace oxy::sym
