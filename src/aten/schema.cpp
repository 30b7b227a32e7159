// Parser of operator declarations. The grammar that is read:
//   declaration := name '(' [ argument { ',' argument } ] ')' '->' returns
//   argument    := '*' | '...' | type name [ '=' default ]
//   returns     := type [ name ] | '(' [ type [ name ] { ',' type [ name ] } ] ')' | '...'
//   type        := word [ '(' alias-or-parameters ')' ] { '[' [ digits ] ']' [ '(' alias ')' ] | '?' }
#include "aten/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <deque>
#include <map>
#include <mutex>
#include <unordered_map>

#include "aten/opaque.h"
#include "base/error.h"

namespace oxy {
namespace {

struct ParsedType {
  ArgumentKind kind = ArgumentKind::Other;
  bool optional = false;
  int alias_set = -1;
  bool is_written = false;
};

struct ElementKind {
  std::string_view word;
  ArgumentKind one;
  ArgumentKind list;
};

constexpr ElementKind kElementKinds[] = {
    {"Tensor", ArgumentKind::Tensor, ArgumentKind::TensorList},
    {"Scalar", ArgumentKind::Scalar, ArgumentKind::Other},
    {"number", ArgumentKind::Scalar, ArgumentKind::Other},
    {"int", ArgumentKind::Int, ArgumentKind::IntList},
    {"SymInt", ArgumentKind::Int, ArgumentKind::IntList},
    {"float", ArgumentKind::Float, ArgumentKind::FloatList},
    {"SymFloat", ArgumentKind::Float, ArgumentKind::FloatList},
    {"bool", ArgumentKind::Bool, ArgumentKind::BoolList},
    {"SymBool", ArgumentKind::Bool, ArgumentKind::BoolList},
    {"str", ArgumentKind::String, ArgumentKind::Other},
    {"ScalarType", ArgumentKind::DType, ArgumentKind::Other},
    {"Device", ArgumentKind::Device, ArgumentKind::Other},
    {"DeviceIndex", ArgumentKind::Int, ArgumentKind::Other},
    {"Layout", ArgumentKind::Layout, ArgumentKind::Other},
    {"MemoryFormat", ArgumentKind::MemoryFormat, ArgumentKind::Other},
    {"Generator", ArgumentKind::Generator, ArgumentKind::Other},
};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  OperatorSchema parse() {
    OperatorSchema schema;
    schema.name = std::string(take_while([](char c) { return c != '(' && c != ' '; }));
    if (schema.name.find("::") == std::string::npos) fail("expected namespace::name");
    expect("(");
    parse_arguments(schema);
    expect("->");
    parse_returns(schema);
    skip_space();
    if (at_ != text_.size()) fail("expected the end of the declaration");
    return schema;
  }

 private:
  void parse_arguments(OperatorSchema& schema) {
    bool kwarg_only = false;
    while (!accept(")")) {
      if (accept("...")) {
        expect(")");
        return;
      }
      if (accept("*")) {
        kwarg_only = true;
      } else {
        schema.arguments.push_back(parse_argument(kwarg_only));
      }
      if (!accept(",")) {
        expect(")");
        return;
      }
    }
  }

  ArgumentInfo parse_argument(bool kwarg_only) {
    ParsedType type = parse_type();
    ArgumentInfo argument;
    argument.kind = type.kind;
    argument.optional = type.optional;
    argument.alias_set = type.alias_set;
    argument.is_written = type.is_written;
    argument.kwarg_only = kwarg_only;
    argument.name = word();
    if (accept("=")) argument.default_text = default_text();
    return argument;
  }

  void parse_returns(OperatorSchema& schema) {
    auto parse_one = [&] {
      ParsedType type = parse_type();
      schema.returns.push_back({type.kind, type.alias_set, type.is_written});
      skip_space();
      if (is_word_char(peek())) word();
    };
    if (accept("...")) return;
    if (!accept("(")) return parse_one();
    while (!accept(")")) {
      if (accept("...")) {
        expect(")");
        return;
      }
      parse_one();
      if (!accept(",")) {
        expect(")");
        return;
      }
    }
  }

  ParsedType parse_type() {
    skip_space();
    std::string_view element = take_while([](char c) { return is_word_char(c) || c == '.'; });
    if (element.empty()) fail("expected a type");
    ParsedType type;
    for (const ElementKind& known : kElementKinds)
      if (known.word == element) type.kind = known.one;
    bool element_is_optional = false;
    int depth = 0;
    for (;;) {
      if (peek() == '(') {
        std::string_view inside = parenthesised();
        if (element == "Tensor") read_alias(inside, type);
      } else if (peek() == '[') {
        ++at_;
        take_while([](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; });
        expect("]");
        type.kind = list_of(element, type.optional, ++depth);
        element_is_optional = type.optional;
        type.optional = false;
      } else if (peek() == '?') {
        ++at_;
        type.optional = true;
      } else {
        break;
      }
    }
    if (element_is_optional && type.kind != ArgumentKind::OptionalTensorList) type.kind = ArgumentKind::Other;
    return type;
  }

  static ArgumentKind list_of(std::string_view element, bool optional_element, int depth) {
    if (depth > 1) return ArgumentKind::Other;
    if (optional_element) return element == "Tensor" ? ArgumentKind::OptionalTensorList : ArgumentKind::Other;
    for (const ElementKind& known : kElementKinds)
      if (known.word == element) return known.list;
    return ArgumentKind::Other;
  }

  // "a", "a!", "a -> *", "a|b": the first letter names the set.
  void read_alias(std::string_view text, ParsedType& type) {
    type.is_written = text.find('!') != std::string_view::npos;
    size_t end = 0;
    while (end < text.size() && is_word_char(text[end])) ++end;
    if (end == 0) return;
    std::string letter(text.substr(0, end));
    type.alias_set = alias_sets_.try_emplace(letter, static_cast<int>(alias_sets_.size())).first->second;
  }

  // At '(': the text up to the matching ')'.
  std::string_view parenthesised() {
    size_t begin = ++at_;
    for (int depth = 1; at_ < text_.size(); ++at_) {
      if (text_[at_] == '(') ++depth;
      if (text_[at_] == ')' && --depth == 0) return text_.substr(begin, at_++ - begin);
    }
    fail("unbalanced parenthesis");
  }

  // Up to the ',' or ')' that ends the argument, minding brackets and quotes.
  std::string default_text() {
    skip_space();
    size_t begin = at_;
    int depth = 0;
    for (char quote = 0; at_ < text_.size(); ++at_) {
      char c = text_[at_];
      if (quote != 0) {
        if (c == '\\') {
          ++at_;
        } else if (c == quote) {
          quote = 0;
        }
      } else if (c == '"' || c == '\'') {
        quote = c;
      } else if (c == '[' || c == '(') {
        ++depth;
      } else if (depth > 0 && (c == ']' || c == ')')) {
        --depth;
      } else if (depth == 0 && (c == ',' || c == ')')) {
        break;
      }
    }
    at_ = std::min(at_, text_.size());
    if (at_ == begin) fail("expected a default value");
    return std::string(text_.substr(begin, at_ - begin));
  }

  static bool is_word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_space() {
    while (peek() == ' ' || peek() == '\n') ++at_;
  }
  template <class Predicate>
  std::string_view take_while(Predicate predicate) {
    size_t begin = at_;
    while (at_ < text_.size() && predicate(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  std::string word() {
    skip_space();
    std::string_view found = take_while(is_word_char);
    if (found.empty()) fail("expected a name");
    return std::string(found);
  }
  bool accept(std::string_view token) {
    skip_space();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) fail(fmt::format("expected '{}'", token));
  }
  [[noreturn]] void fail(std::string_view what) const {
    throw UserError(fmt::format("operator schema, column {}: {} in \"{}\"", at_ + 1, what, text_));
  }

  std::string_view text_;
  size_t at_ = 0;
  std::map<std::string, int> alias_sets_;
};

struct SchemaTable {
  std::mutex mutex;
  std::deque<OperatorSchema> schemas;  // never moves an element
  std::unordered_map<std::string_view, const OperatorSchema*> by_name;
};

SchemaTable& table() {
  static SchemaTable* const instance = new SchemaTable;  // outlives every static that holds a pointer
  return *instance;
}

// Of an opaque operator all counts, of others what is the same however torch and our tables write them.
bool same_signature(const OperatorSchema& a, const OperatorSchema& b) {
  const bool whole = is_opaque(a);
  auto same_argument = [&](const ArgumentInfo& x, const ArgumentInfo& y) {
    return x.kind == y.kind && x.optional == y.optional && x.is_written == y.is_written &&
           (!whole || (x.name == y.name && x.alias_set == y.alias_set && x.kwarg_only == y.kwarg_only));
  };
  auto same_return = [&](const ReturnInfo& x, const ReturnInfo& y) {
    return x.kind == y.kind && (!whole || (x.alias_set == y.alias_set && x.is_written == y.is_written));
  };
  if (whole && a.is_random != b.is_random) return false;
  return std::equal(a.arguments.begin(), a.arguments.end(), b.arguments.begin(), b.arguments.end(),
                    same_argument) &&
         std::equal(a.returns.begin(), a.returns.end(), b.returns.begin(), b.returns.end(), same_return);
}

}  // namespace

bool OperatorSchema::is_mutating() const {
  return std::any_of(arguments.begin(), arguments.end(), [](const ArgumentInfo& a) { return a.is_written; });
}

bool OperatorSchema::is_view() const {
  return !is_mutating() &&
         std::any_of(returns.begin(), returns.end(), [](const ReturnInfo& r) { return r.alias_set >= 0; });
}

const OperatorSchema* intern_schema(std::string_view text, bool is_random) {
  OperatorSchema parsed = Parser(text).parse();
  parsed.is_random = is_random || std::any_of(parsed.arguments.begin(), parsed.arguments.end(),
                                              [](auto& a) { return a.kind == ArgumentKind::Generator; });
  const auto dropout = std::ranges::find(parsed.arguments, "dropout_p", &ArgumentInfo::name);
  if (dropout != parsed.arguments.end())
    parsed.dropout = static_cast<int>(dropout - parsed.arguments.begin());
  SchemaTable& t = table();
  std::lock_guard lock(t.mutex);
  const auto found = t.by_name.find(parsed.name);
  if (found != t.by_name.end()) {
    if (same_signature(*found->second, parsed)) return found->second;
    if (!is_opaque(parsed))
      throw UserError(fmt::format("operator {} is declared with two signatures", parsed.name));
    t.by_name.erase(found);  // its key is the name of the old one
  }
  const OperatorSchema& kept = t.schemas.emplace_back(std::move(parsed));
  t.by_name.emplace(kept.name, &kept);
  return &kept;
}

const OperatorSchema* find_schema(std::string_view name) {
  SchemaTable& t = table();
  std::lock_guard lock(t.mutex);
  auto found = t.by_name.find(name);
  return found == t.by_name.end() ? nullptr : found->second;
}

}  // namespace oxy
