// A cursor over graph text that knows its line and column.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace oxy::graph {

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  [[noreturn]] void fail(std::string_view message) const;  // UserError "line L, column C: message"

  void skip_space();  // blanks only
  void skip_lines();  // blanks, line ends and whole-line comments
  bool at_end() const { return position_ >= text_.size(); }
  bool at_line_end();  // after blanks
  char peek() const { return at_end() ? '\0' : text_[position_]; }
  char peek_at(size_t ahead) const;

  bool accept(std::string_view token);      // after blanks; false leaves the cursor before the token
  bool accept_word(std::string_view word);  // a whole identifier
  void expect(std::string_view token);
  void expect_line_end();
  bool at_word();                           // after blanks: a letter or _
  std::string word(std::string_view what);  // [A-Za-z_][A-Za-z0-9_]*
  std::string operator_name();              // also ':' and '.'
  int64_t integer(std::string_view what);   // with a sign
  std::optional<double> real();  // with '.', an exponent, inf or nan; nothing (cursor unmoved) otherwise
  std::string quoted();
  std::string rest_of_line();

 private:
  std::string_view text_;
  size_t position_ = 0;
};

}  // namespace oxy::graph
