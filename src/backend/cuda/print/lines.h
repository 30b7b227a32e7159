// Indented lines of Python.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

namespace oxy::backend::cuda {

class Lines {
 public:
  explicit Lines(int depth = 0) : depth_(depth) {}

  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    text_.append(4 * static_cast<size_t>(depth_), ' ');
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }
  void append(const Lines& block) { text_ += block.text_; }
  const std::string& text() const { return text_; }
  int depth() const { return depth_; }

 private:
  std::string text_;
  int depth_;
};

}  // namespace oxy::backend::cuda
