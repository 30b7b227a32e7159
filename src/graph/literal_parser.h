// Parsers of the parts of a line: expressions, devices, argument literals. Errors are UserErrors with a
// position.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>

#include "graph/graph.h"
#include "graph/lexer.h"

namespace oxy::graph {

using Symbols = std::unordered_map<std::string, Expr>;

inline constexpr int64_t kMaxValues = 1 << 24;

// Calls item() for each of the comma-separated items up to `close`.
template <typename Item>
void parse_items(Lexer& in, std::string_view close, const Item& item) {
  if (in.accept(close)) return;
  do item();
  while (in.accept(","));
  in.expect(close);
}

Expr parse_expression(Lexer& in, const Symbols& symbols);
Device parse_device(Lexer& in);
int64_t parse_value_number(Lexer& in);  // of "%7"
// A literal for a parameter of this kind; used_value() parses a "%7" that must be defined.
Argument parse_literal(Lexer& in, const Symbols& symbols, ArgumentKind kind,
                       const std::function<ValueId()>& used_value);
// The default that the schema gives the parameter; fails at `in` if it gives none.
Argument parse_default(const Lexer& in, const ArgumentInfo& info);

}  // namespace oxy::graph
