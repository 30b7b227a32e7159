// The parser of the graph's text form:
//
//   text     = {symbol} "graph(" [define {"," define}] ") {" {line} "return" [output {"," output}] "}"
//   symbol   = "symbol" NAME ": id" INT "in [" INT "," INT "]"
//   define   = "%" INT ":" meta                                  -- the number is the ValueId
//   meta     = DTYPE "[" [expr {"," expr}] "]" ["{" extra {"," extra} "}"]
//   extra    = "strides=[" ... "]" | "offset=" expr | "device=" device     -- contiguous, 0 and cpu if left
//   out line     = define "= constant" INT                            -- the number is the constant's handle
//            | [result {"," result} "="] OPERATOR "(" [argument {"," argument}] ")"
//              ["->" computed {"," computed}] ["if" check {"," check}] ["#" location
//              ["[checkpoint" INT "]"]]
//            | "mutate input" INT "=" "%" INT
//   result   = define | "_"                                       -- "_": a tensor that is undefined
//   argument = [NAME "="] literal                                 -- schema order until the first named one
//   literal  = "None" | "%" INT | "True" | "False" | expr | FLOAT | "complex(" FLOAT "," FLOAT ")" | STRING
//            | DTYPE | device | "contiguous" | "preserve" | "channels_last" | "channels_last_3d" | "[" ...
//            "]"
//   device   = a word of kDeviceKinds [":" INT]
//   output   = "%" INT | "alias(" ("input" | "output") INT "," "%" INT ")"
//   computed = NAME ["= size(" INT "," INT ")"] ["wanted"]        -- the size of a result; else the number
//   returned check    = expr ("==" | "!=" | ">=") "0" | ("all" | "any") "(" check {"," check} ")" expr     =
//   integers and symbols with + - * // % min(,) max(,) and parentheses
//
// A line that starts with "#" is a comment. Arguments left out take their schema's default.
#include <fmt/format.h>

#include <charconv>
#include <unordered_map>

#include "graph/literal_parser.h"

namespace oxy::graph {
namespace {

class GraphParser {
 public:
  explicit GraphParser(std::string_view text) : in_(text) {}

  Graph parse() {
    in_.skip_lines();
    while (in_.accept_word("symbol")) {
      symbol();
      in_.skip_lines();
    }
    header();
    body();
    results();
    in_.skip_lines();
    if (!in_.at_end()) in_.fail("expected the end of the text");
    return std::move(graph_);
  }

 private:
  void symbol() {
    std::string name = in_.word("a symbol's name");
    in_.expect(":");
    in_.expect("id");
    int64_t id = in_.integer("an id");
    in_.expect("in");
    in_.expect("[");
    sym::Range range;
    range.low = in_.integer("a lower bound");
    in_.expect(",");
    range.high = in_.integer("an upper bound");
    in_.expect("]");
    if (range.low > range.high) in_.fail("this range is empty");
    if (!symbols_.emplace(name, Expr::variable(name, id, range)).second)
      in_.fail(fmt::format("symbol '{}' is declared twice", name));
    in_.expect_line_end();
  }

  void header() {
    in_.expect("graph");
    in_.expect("(");
    in_.skip_lines();
    if (!in_.accept(")")) {
      do {
        in_.skip_lines();
        graph_.inputs.push_back(define());
      } while (in_.accept(","));
      in_.skip_lines();
      in_.expect(")");
    }
    in_.expect("{");
    in_.expect_line_end();
  }

  void body() {
    for (;;) {
      in_.skip_lines();
      if (in_.accept_word("return")) return;
      if (in_.accept_word("mutate"))
        mutation();
      else
        line();
    }
  }

  void mutation() {
    in_.expect("input");
    Mutation mutation;
    mutation.input = static_cast<int32_t>(in_.integer("an input's number"));
    in_.expect("=");
    mutation.value = used_value();
    graph_.mutations.push_back(mutation);
    in_.expect_line_end();
  }

  void line() {
    std::vector<ValueId> results;
    in_.skip_space();
    Lexer ahead = in_;
    if (in_.peek() == '%' || ahead.accept_word("_")) {
      do results.push_back(in_.accept_word("_") ? kNoValue : define());
      while (in_.accept(","));
      in_.expect("=");
    }
    if (results.size() == 1 && in_.accept_word("constant")) {
      int64_t handle = in_.integer("a constant's handle");
      if (handle < 0 || handle >= kMaxValues) in_.fail("a constant's handle is out of range");
      graph_.constants.push_back({results.front(), static_cast<int32_t>(handle)});
      in_.expect_line_end();
      return;
    }
    node(std::move(results));
  }

  void node(std::vector<ValueId> results) {
    Lexer at_name = in_;
    std::string name = in_.operator_name();
    const OperatorSchema* op = find_schema(name);
    if (op == nullptr) at_name.fail(fmt::format("unknown operator '{}'", name));
    Node node{op, arguments(*op), std::move(results), kNoLocation};
    for (ValueId id : node.outputs)
      if (id != kNoValue) graph_.values[id].node = graph_.nodes.next_id();
    if (in_.accept("->")) do
        node.computed.push_back(computed());
      while (in_.accept(","));
    if (in_.accept_word("if")) do
        node.checks.push_back(condition());
      while (in_.accept(","));
    if (in_.accept("#")) node.location = location();
    in_.expect_line_end();
    graph_.nodes.add(std::move(node));
  }

  ComputedSymbol computed() {
    ComputedSymbol result{.variable = parse_expression(in_, symbols_)};
    if (in_.accept("=")) {
      in_.expect("size");
      in_.expect("(");
      result.output = static_cast<int32_t>(in_.integer("a result's number"));
      in_.expect(",");
      result.dimension = static_cast<int32_t>(in_.integer("a dimension"));
      in_.expect(")");
    }
    result.is_wanted = in_.accept_word("wanted");
    return result;
  }

  sym::Condition condition() {
    for (const std::string_view word : {"all", "any"}) {
      if (!in_.accept_word(word)) continue;
      std::vector<sym::Condition> parts;
      in_.expect("(");
      do parts.push_back(condition());
      while (in_.accept(","));
      in_.expect(")");
      return word == "all" ? sym::Condition::all(std::move(parts)) : sym::Condition::any(std::move(parts));
    }
    const Expr value = parse_expression(in_, symbols_);
    const sym::RelationKind kind = in_.accept("==")   ? sym::RelationKind::Zero
                                   : in_.accept("!=") ? sym::RelationKind::NonZero
                                                      : sym::RelationKind::NonNegative;
    if (kind == sym::RelationKind::NonNegative) in_.expect(">=");
    if (in_.integer("zero") != 0) in_.fail("a condition compares with zero");
    return sym::Relation(kind, value);
  }

  std::vector<Argument> arguments(const OperatorSchema& op) {
    std::vector<std::optional<Argument>> found(op.arguments.size());
    std::function<ValueId()> use = [this] { return used_value(); };
    in_.expect("(");
    size_t next = 0;
    bool named = false;
    parse_items(in_, ")", [&] {
      if (auto index = argument_name(op)) {
        next = *index;
        named = true;
      } else if (named) {
        in_.fail("a positional argument follows a named one");
      } else if (next >= found.size()) {
        in_.fail(fmt::format("{} takes {} arguments", op.name, found.size()));
      }
      if (found[next]) in_.fail(fmt::format("argument '{}' is given twice", op.arguments[next].name));
      found[next] = parse_literal(in_, symbols_, op.arguments[next].kind, use);
      ++next;
    });
    std::vector<Argument> args;
    for (size_t i = 0; i < found.size(); ++i)
      args.push_back(found[i] ? std::move(*found[i]) : parse_default(in_, op.arguments[i]));
    return args;
  }

  // The index of the argument that "NAME=" names; the cursor stays where it is if there is no name.
  std::optional<size_t> argument_name(const OperatorSchema& op) {
    if (!in_.at_word()) return std::nullopt;
    Lexer ahead = in_;
    std::string name = ahead.word("a name");
    if (!ahead.accept("=")) return std::nullopt;
    for (size_t i = 0; i < op.arguments.size(); ++i) {
      if (op.arguments[i].name != name) continue;
      in_ = ahead;
      return i;
    }
    in_.fail(fmt::format("{} has no argument '{}'", op.name, name));
  }

  static Location with_checkpoint(std::string text) {
    constexpr std::string_view kMark = " [checkpoint ";
    Location location{std::move(text)};
    const size_t mark = location.text.rfind(kMark);
    if (mark == std::string::npos || !location.text.ends_with(']')) return location;
    const char* number = location.text.data() + mark + kMark.size();
    const char* end = location.text.data() + location.text.size() - 1;
    int32_t checkpoint = 0;
    const auto [stop, problem] = std::from_chars(number, end, checkpoint);
    if (problem != std::errc() || stop != end) return location;
    location.checkpoint = checkpoint;
    location.text.resize(mark);
    return location;
  }

  LocationId location() {
    std::string escaped = in_.rest_of_line();
    std::string text;
    for (size_t i = escaped.starts_with(' ') ? 1 : 0; i < escaped.size(); ++i) {
      if (escaped[i] == '\\' && i + 1 < escaped.size()) {
        ++i;
        text += escaped[i] == 'n' ? '\n' : escaped[i];
      } else {
        text += escaped[i];
      }
    }
    auto [found, is_new] = locations_.emplace(text, graph_.locations.next_id());
    if (is_new) graph_.locations.add(with_checkpoint(std::move(text)));
    return found->second;
  }

  void results() {
    if (!in_.at_line_end()) {
      do output();
      while (in_.accept(","));
    }
    in_.expect_line_end();
    in_.skip_lines();
    in_.expect("}");
  }

  void output() {
    Output output;
    if (in_.accept_word("alias")) {
      in_.expect("(");
      bool of_input = in_.accept_word("input");
      if (!of_input) in_.expect("output");
      output.kind = of_input ? OutputKind::InputAlias : OutputKind::OutputAlias;
      output.alias = static_cast<int32_t>(in_.integer("a number"));
      in_.expect(",");
      output.value = used_value();
      in_.expect(")");
    } else {
      output.value = used_value();
    }
    graph_.outputs.push_back(output);
  }

  ValueId define() {
    const ValueId id(parse_value_number(in_));
    if (is_defined_.contains(id) && is_defined_[id]) in_.fail(fmt::format("%{} is defined twice", id));
    if (!graph_.values.contains(id)) {
      graph_.values.resize(id.index() + 1);
      is_defined_.resize(id.index() + 1, false);
    }
    is_defined_[id] = true;
    in_.expect(":");
    graph_.values[id].meta = meta();
    return id;
  }

  ValueId used_value() {
    const ValueId id(parse_value_number(in_));
    if (!is_defined_.contains(id) || !is_defined_[id])
      in_.fail(fmt::format("%{} is not defined before this", id));
    return id;
  }

  std::vector<Expr> sizes() {
    std::vector<Expr> list;
    in_.expect("[");
    parse_items(in_, "]", [&] { list.push_back(parse_expression(in_, symbols_)); });
    return list;
  }

  TensorMeta meta() {
    TensorMeta meta;
    std::string type = in_.word("a dtype");
    auto dtype = dtype_from_name(type);
    if (!dtype) in_.fail(fmt::format("unknown dtype '{}'", type));
    meta.dtype = *dtype;
    meta.sizes = sizes();
    meta.strides = contiguous_strides(meta.sizes);
    // "{" also opens the body: only one that follows at once belongs to the tensor.
    if (in_.peek() != '{') return meta;
    in_.expect("{");
    parse_items(in_, "}", [&] {
      std::string key = in_.word("strides, offset or device");
      in_.expect("=");
      if (key == "strides") {
        meta.strides = sizes();
        if (meta.strides.size() != meta.sizes.size()) in_.fail("there are not as many strides as sizes");
      } else if (key == "offset") {
        meta.storage_offset = parse_expression(in_, symbols_);
      } else if (key == "device") {
        meta.device = parse_device(in_);
      } else {
        in_.fail("expected strides, offset or device");
      }
    });
    return meta;
  }

  Lexer in_;
  Graph graph_;
  Symbols symbols_;
  IdVector<ValueId, bool> is_defined_;
  std::unordered_map<std::string, LocationId> locations_;
};

}  // namespace

Graph parse(std::string_view text) {
  return GraphParser(text).parse();
}

}  // namespace oxy::graph
