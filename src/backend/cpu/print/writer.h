// Indented lines of source text.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

namespace oxy::backend::cpu {

class Writer {
 public:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    text_.append(2 * static_cast<size_t>(depth_), ' ');
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }
  void open(std::string_view head) {
    line("{}{}{{", head, head.empty() ? "" : " ");
    ++depth_;
  }
  void close(std::string_view tail = "}") {
    --depth_;
    line("{}", tail);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  int depth_ = 0;
};

}  // namespace oxy::backend::cpu
