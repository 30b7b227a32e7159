// The printer of the graph's text form. The grammar is in graph/parse.cpp.
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "base/error.h"
#include "graph/graph.h"
#include "graph/literals.h"

namespace oxy::graph {
namespace {

template <typename Enum, size_t N>
std::string_view word_of(const std::array<std::pair<Enum, std::string_view>, N>& words, Enum value) {
  for (const auto& [key, word] : words)
    if (key == value) return word;
  throw InternalError("an enumerator has no word in the text form");
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string value_text(ValueId id) {
  return id == kNoValue ? "None" : fmt::format("%{}", id);
}

template <typename List, typename ToText>
std::string list_text(const List& list, const ToText& to_text) {
  std::string out = "[";
  bool first = true;
  for (const auto& item : list) {
    if (!first) out += ", ";
    first = false;
    out += to_text(item);
  }
  return out + "]";
}

std::string sizes_text(const std::vector<Expr>& sizes) {
  return list_text(sizes, [](const Expr& e) { return e.str(); });
}

std::string meta_text(const TensorMeta& meta) {
  std::string out = std::string(name(meta.dtype)) + sizes_text(meta.sizes);
  std::vector<std::string> extra;
  if (meta.strides != contiguous_strides(meta.sizes)) extra.push_back("strides=" + sizes_text(meta.strides));
  if (meta.storage_offset != Expr(0)) extra.push_back("offset=" + meta.storage_offset.str());
  if (meta.device != Device{}) extra.push_back("device=" + str(meta.device));
  if (!extra.empty()) out += fmt::format("{{{}}}", fmt::join(extra, ", "));
  return out;
}

struct ArgumentPrinter {
  std::string operator()(const None&) const { return "None"; }
  std::string operator()(const ValueRef& ref) const { return value_text(ref.id); }
  std::string operator()(const ValueList& list) const { return list_text(list.ids, value_text); }
  std::string operator()(bool value) const { return value ? "True" : "False"; }
  std::string operator()(const Expr& value) const { return value.str(); }
  std::string operator()(double value) const { return real_text(value); }
  std::string operator()(const std::complex<double>& value) const {
    return fmt::format("complex({}, {})", real_text(value.real()), real_text(value.imag()));
  }
  std::string operator()(const std::string& value) const { return quoted(value); }
  std::string operator()(DType value) const { return std::string(name(value)); }
  std::string operator()(Device value) const { return str(value); }
  std::string operator()(MemoryFormat value) const { return std::string(word_of(kMemoryFormats, value)); }
  std::string operator()(const std::vector<bool>& value) const {
    return list_text(value, [](bool b) { return std::string(b ? "True" : "False"); });
  }
  std::string operator()(const std::vector<Expr>& value) const { return sizes_text(value); }
  std::string operator()(const std::vector<double>& value) const { return list_text(value, real_text); }
};

std::string escaped_line(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '\n')
      out += "\\n";
    else if (c == '\\')
      out += "\\\\";
    else
      out += c;
  }
  return out;
}

std::string definition(const Graph& graph, ValueId id) {
  if (id == kNoValue) return "_";
  return fmt::format("%{} : {}", id, meta_text(graph.meta(id)));
}

std::string computed_text(const ComputedSymbol& symbol) {
  std::string out = symbol.variable.variable_name();
  if (symbol.output >= 0) out += fmt::format(" = size({}, {})", symbol.output, symbol.dimension);
  return symbol.is_wanted ? out + " wanted" : out;
}

std::string condition_text(const sym::Condition& condition) {
  if (condition.kind() == sym::ConditionKind::Relation) {
    const sym::Relation& relation = condition.relation();
    const std::string_view kind = relation.kind() == sym::RelationKind::Zero      ? "=="
                                  : relation.kind() == sym::RelationKind::NonZero ? "!="
                                                                                  : ">=";
    return fmt::format("{} {} 0", relation.value().str(), kind);
  }
  std::vector<std::string> parts;
  for (const sym::Condition& part : condition.parts()) parts.push_back(condition_text(part));
  return fmt::format("{}({})", condition.kind() == sym::ConditionKind::All ? "all" : "any",
                     fmt::join(parts, ", "));
}

std::string node_text(const Graph& graph, const Node& node) {
  std::string out;
  for (size_t i = 0; i < node.outputs.size(); ++i)
    out += (i == 0 ? "" : ", ") + definition(graph, node.outputs[i]);
  if (!node.outputs.empty()) out += " = ";
  out += node.op->name + "(";
  for (size_t i = 0; i < node.args.size(); ++i) {
    if (i > 0) out += ", ";
    if (i < node.op->arguments.size() && node.op->arguments[i].kwarg_only)
      out += node.op->arguments[i].name + "=";
    out += std::visit(ArgumentPrinter{}, node.args[i]);
  }
  out += ")";
  for (size_t i = 0; i < node.computed.size(); ++i)
    out += (i == 0 ? " -> " : ", ") + computed_text(node.computed[i]);
  for (size_t i = 0; i < node.checks.size(); ++i)
    out += (i == 0 ? " if " : ", ") + condition_text(node.checks[i]);
  if (node.location != kNoLocation) out += "  # " + escaped_line(graph.locations.at(node.location).text);
  if (const int32_t checkpoint = graph.checkpoint(node)) out += fmt::format(" [checkpoint {}]", checkpoint);
  return out;
}

std::string output_text(const Output& output) {
  switch (output.kind) {
    case OutputKind::Value:
      return value_text(output.value);
    case OutputKind::InputAlias:
      return fmt::format("alias(input {}, {})", output.alias, value_text(output.value));
    case OutputKind::OutputAlias:
      return fmt::format("alias(output {}, {})", output.alias, value_text(output.value));
  }
  throw InternalError("unknown output kind");
}

// The symbols in use, by id.
std::map<int64_t, Expr> symbols_of(const Graph& graph) {
  std::map<int64_t, Expr> symbols;
  auto add = [&](const Expr& e) {
    if (e.is_constant()) return;
    for (const Expr& v : variables(e)) symbols.emplace(v.variable_id(), v);
  };
  auto add_all = [&](const std::vector<Expr>& list) {
    for (const Expr& e : list) add(e);
  };
  for (const Value& value : graph.values) {
    add_all(value.meta->sizes);
    add_all(value.meta->strides);
    add(value.meta->storage_offset);
  }
  for (const Node& node : graph.nodes) {
    for (const Argument& arg : node.args) {
      if (const auto* e = std::get_if<Expr>(&arg)) add(*e);
      if (const auto* list = std::get_if<std::vector<Expr>>(&arg)) add_all(*list);
    }
    for (const ComputedSymbol& symbol : node.computed) add(symbol.variable);
    for (const sym::Condition& condition : node.checks) add_all(variables(condition));
  }
  return symbols;
}

}  // namespace

std::string print(const Graph& graph) {
  std::string out;
  for (const auto& [id, symbol] : symbols_of(graph)) {
    sym::Range range = symbol.range();
    out += fmt::format("symbol {} : id {} in [{}, {}]\n", symbol.variable_name(), id, range.low, range.high);
  }
  out += "graph(";
  for (size_t i = 0; i < graph.inputs.size(); ++i)
    out += (i == 0 ? "" : ", ") + definition(graph, graph.inputs[i]);
  out += ") {\n";
  for (const Constant& constant : graph.constants)
    out += fmt::format("  {} = constant {}\n", definition(graph, constant.value), constant.handle);
  for (const Node& node : graph.nodes) out += "  " + node_text(graph, node) + "\n";
  for (const Mutation& mutation : graph.mutations)
    out += fmt::format("  mutate input {} = {}\n", mutation.input, value_text(mutation.value));
  out += "  return";
  for (size_t i = 0; i < graph.outputs.size(); ++i)
    out += (i == 0 ? " " : ", ") + output_text(graph.outputs[i]);
  out += "\n}\n";
  return out;
}

}  // namespace oxy::graph
