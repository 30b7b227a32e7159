#include "graph/literal_parser.h"

#include <fmt/format.h>

#include "aten/device_kinds.h"
#include "graph/literals.h"

namespace oxy::graph {
namespace {

template <typename Enum, size_t N>
std::optional<Enum> find_word(const std::array<std::pair<Enum, std::string_view>, N>& words,
                              std::string_view word) {
  for (const auto& [key, text] : words)
    if (text == word) return key;
  return std::nullopt;
}

constexpr int kMaxNesting = 200;  // of parentheses in an expression

class ExpressionParser {
 public:
  ExpressionParser(Lexer& in, const Symbols& symbols) : in_(in), symbols_(symbols) {}

  Expr sum() {
    Expr value = term();
    for (;;) {
      if (in_.accept("+"))
        value = value + term();
      else if (in_.accept("-"))
        value = value - term();
      else
        return value;
    }
  }

 private:
  Expr term() {
    Expr value = factor();
    for (;;) {
      if (in_.accept("*"))
        value = value * factor();
      else if (in_.accept("//"))
        value = floordiv(value, divisor());
      else if (in_.accept("%"))
        value = mod(value, divisor());
      else
        return value;
    }
  }

  Expr divisor() {
    Expr value = factor();
    if (value == Expr(0)) in_.fail("division by zero");
    return value;
  }

  Expr factor() {
    if (++depth_ > kMaxNesting) in_.fail("this expression is nested too deeply");
    Expr value = primary();
    --depth_;
    return value;
  }

  Expr primary() {
    in_.skip_space();
    if (in_.peek() >= '0' && in_.peek() <= '9') return number();
    if (in_.accept("-")) return -factor();
    if (in_.accept("(")) {
      Expr value = sum();
      in_.expect(")");
      return value;
    }
    std::string name = in_.word("a number, a symbol or '('");
    auto found = symbols_.find(name);
    if (found != symbols_.end()) return found->second;
    if (name != "min" && name != "max") in_.fail(fmt::format("unknown symbol '{}'", name));
    in_.expect("(");
    Expr a = sum();
    in_.expect(",");
    Expr b = sum();
    in_.expect(")");
    return name == "min" ? sym::min(a, b) : sym::max(a, b);
  }

  Expr number() {
    int64_t value = in_.integer("an integer");
    if (value >= int64_t{1} << 62) in_.fail("this integer is out of range");
    return value;
  }

  Lexer& in_;
  const Symbols& symbols_;
  int depth_ = 0;
};

Device device_of_kind(Lexer& in, Device::Kind kind) {
  Device device{kind, -1};
  if (in.peek() == ':') {
    in.expect(":");
    int64_t index = in.integer("a device's index");
    if (index < 0 || index > 127) in.fail("a device's index is between 0 and 127");
    device.index = static_cast<int8_t>(index);
  }
  return device;
}

class LiteralParser {
 public:
  LiteralParser(Lexer& in, const Symbols& symbols, const std::function<ValueId()>& used_value)
      : in_(in), symbols_(symbols), used_value_(used_value) {}

  Argument parse(ArgumentKind kind) {
    in_.skip_space();
    if (in_.peek() == '%') return ValueRef{used_value_()};
    if (in_.peek() == '"') return in_.quoted();
    if (in_.accept("[")) return list(kind);
    if (in_.accept_word("None")) return None{};
    if (in_.accept_word("True")) return true;
    if (in_.accept_word("False")) return false;
    if (in_.accept_word("complex")) return complex();
    if (auto real = in_.real()) return *real;
    if (auto word = named_literal()) return *word;
    Expr value = ExpressionParser(in_, symbols_).sum();
    if (kind == ArgumentKind::Float && value.is_constant()) return static_cast<double>(value.constant());
    return value;
  }

 private:
  // A dtype, device or memory format; the cursor stays where it is if there is none.
  std::optional<Argument> named_literal() {
    if (!in_.at_word()) return std::nullopt;
    Lexer ahead = in_;
    std::string word = ahead.word("a word");
    if (symbols_.contains(word)) return std::nullopt;
    std::optional<Argument> found;
    if (auto dtype = dtype_from_name(word))
      found = *dtype;
    else if (auto format = find_word(kMemoryFormats, word))
      found = *format;
    else if (auto device = find_word(kDeviceKinds, word))
      found = device_of_kind(ahead, *device);
    if (found) in_ = ahead;
    return found;
  }

  double real() {
    if (auto value = in_.real()) return *value;
    return static_cast<double>(in_.integer("a number"));
  }

  Argument complex() {
    in_.expect("(");
    double re = real();
    in_.expect(",");
    double im = real();
    in_.expect(")");
    return std::complex<double>(re, im);
  }

  Argument list(ArgumentKind kind) {
    if (kind == ArgumentKind::TensorList || kind == ArgumentKind::OptionalTensorList) return tensors();
    if (kind == ArgumentKind::FloatList) {
      std::vector<double> reals;
      parse_items(in_, "]", [&] { reals.push_back(real()); });
      return reals;
    }
    if (kind == ArgumentKind::BoolList) {
      std::vector<bool> flags;
      parse_items(in_, "]", [&] { flags.push_back(flag()); });
      return flags;
    }
    std::vector<Expr> sizes;
    parse_items(in_, "]", [&] { sizes.push_back(ExpressionParser(in_, symbols_).sum()); });
    return sizes;
  }

  bool flag() {
    if (in_.accept_word("True")) return true;
    if (!in_.accept_word("False")) in_.fail("expected True or False");
    return false;
  }

  Argument tensors() {
    ValueList values;
    parse_items(in_, "]", [&] { values.ids.push_back(in_.accept_word("None") ? kNoValue : used_value_()); });
    return values;
  }

  Lexer& in_;
  const Symbols& symbols_;
  const std::function<ValueId()>& used_value_;
};

}  // namespace

Expr parse_expression(Lexer& in, const Symbols& symbols) {
  return ExpressionParser(in, symbols).sum();
}

Device parse_device(Lexer& in) {
  auto kind = find_word(kDeviceKinds, in.word("a device"));
  if (!kind) in.fail("unknown device");
  return device_of_kind(in, *kind);
}

int64_t parse_value_number(Lexer& in) {
  in.expect("%");
  int64_t id = in.integer("a value's number");
  if (id < 0 || id >= kMaxValues) in.fail("a value's number is out of range");
  return id;
}

Argument parse_literal(Lexer& in, const Symbols& symbols, ArgumentKind kind,
                       const std::function<ValueId()>& used_value) {
  return LiteralParser(in, symbols, used_value).parse(kind);
}

// Reductions are written by name in schemas.
Argument parse_default(const Lexer& in, const ArgumentInfo& info) {
  std::string_view text = info.default_text;
  if (text.empty()) in.fail(fmt::format("missing argument '{}'", info.name));
  if (text == "None") return None{};
  if (text == "Mean") return Expr(1);
  if (text == "Sum") return Expr(2);
  if (text == "contiguous_format") return MemoryFormat::Contiguous;
  Lexer value(text);
  if (info.kind == ArgumentKind::IntList && text.front() != '[')
    in.fail(fmt::format("argument '{}' has no default that can be written out", info.name));
  std::function<ValueId()> no_values = [&]() -> ValueId { in.fail("a default cannot be a tensor"); };
  return parse_literal(value, {}, info.kind, no_values);
}

}  // namespace oxy::graph
