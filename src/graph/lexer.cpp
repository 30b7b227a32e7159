#include "graph/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>

#include "base/error.h"

namespace oxy::graph {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_word_start(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}
bool is_word_part(char c) {
  return is_word_start(c) || is_digit(c);
}

}  // namespace

void Lexer::fail(std::string_view message) const {
  size_t end = std::min(position_, text_.size());
  auto before = text_.substr(0, end);
  auto line = std::count(before.begin(), before.end(), '\n') + 1;
  size_t line_start = before.rfind('\n');
  size_t column = line_start == std::string_view::npos ? end + 1 : end - line_start;
  throw UserError(fmt::format("line {}, column {}: {}", line, column, message));
}

void Lexer::skip_space() {
  while (peek() == ' ' || peek() == '\t' || peek() == '\r') ++position_;
}

void Lexer::skip_lines() {
  for (;;) {
    skip_space();
    if (peek() == '#') rest_of_line();
    if (peek() != '\n') return;
    ++position_;
  }
}

bool Lexer::at_line_end() {
  skip_space();
  return at_end() || peek() == '\n';
}

char Lexer::peek_at(size_t ahead) const {
  return position_ + ahead < text_.size() ? text_[position_ + ahead] : '\0';
}

bool Lexer::accept(std::string_view token) {
  skip_space();
  if (!text_.substr(std::min(position_, text_.size())).starts_with(token)) return false;
  position_ += token.size();
  return true;
}

bool Lexer::accept_word(std::string_view word) {
  size_t start = position_;
  if (!accept(word)) return false;
  if (!is_word_part(peek())) return true;
  position_ = start;
  return false;
}

void Lexer::expect(std::string_view token) {
  if (!accept(token)) fail(fmt::format("expected '{}'", token));
}

void Lexer::expect_line_end() {
  if (!at_line_end()) fail("expected the end of the line");
}

bool Lexer::at_word() {
  skip_space();
  return is_word_start(peek());
}

std::string Lexer::word(std::string_view what) {
  if (!at_word()) fail(fmt::format("expected {}", what));
  size_t start = position_;
  while (is_word_part(peek())) ++position_;
  return std::string(text_.substr(start, position_ - start));
}

std::string Lexer::operator_name() {
  if (!at_word()) fail("expected an operator's name");
  size_t start = position_;
  while (is_word_part(peek()) || peek() == ':' || peek() == '.') ++position_;
  return std::string(text_.substr(start, position_ - start));
}

int64_t Lexer::integer(std::string_view what) {
  skip_space();
  int64_t value = 0;
  const char* begin = text_.data() + std::min(position_, text_.size());
  auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
  if (error == std::errc::result_out_of_range) fail(fmt::format("{} does not fit in 64 bits", what));
  if (error != std::errc()) fail(fmt::format("expected {}", what));
  position_ += static_cast<size_t>(end - begin);
  return value;
}

std::optional<double> Lexer::real() {
  skip_space();
  size_t start = position_;
  double sign = 1.0;
  if (peek() == '-') {
    sign = -1.0;
    ++position_;
  }
  if (accept_word("inf")) return sign * std::numeric_limits<double>::infinity();
  if (accept_word("nan")) return std::numeric_limits<double>::quiet_NaN();
  size_t ahead = 0;
  while (is_digit(peek_at(ahead))) ++ahead;
  char after = peek_at(ahead);
  bool starts_number = ahead > 0 || (after == '.' && is_digit(peek_at(1)));
  if (!starts_number || (after != '.' && after != 'e' && after != 'E')) {
    position_ = start;
    return std::nullopt;
  }
  double value = 0;
  const char* begin = text_.data() + position_;
  auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
  if (error != std::errc()) fail("this number is not a 64-bit floating-point number");
  position_ += static_cast<size_t>(end - begin);
  return sign * value;
}

std::string Lexer::quoted() {
  expect("\"");
  std::string out;
  while (peek() != '"') {
    if (at_end() || peek() == '\n') fail("this string has no end");
    if (peek() == '\\') {
      ++position_;
      out += peek() == 'n' ? '\n' : peek();
    } else {
      out += peek();
    }
    ++position_;
  }
  ++position_;
  return out;
}

std::string Lexer::rest_of_line() {
  size_t start = position_;
  while (!at_end() && peek() != '\n') ++position_;
  return std::string(text_.substr(start, position_ - start));
}

}  // namespace oxy::graph
