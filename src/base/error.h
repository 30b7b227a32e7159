// The kinds of failure that a compiler stage can report.
#pragma once

#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>

namespace oxy {

// The caller broke a documented contract (a bad option, malformed text). Becomes a Python exception.
class UserError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The program uses something that the compiler does not handle: it runs in eager instead. `reason` and `hint`
// are shown to the user by `explain` and by `fullgraph=True`.
class Unsupported : public std::runtime_error {
 public:
  explicit Unsupported(std::string reason, std::string hint = "");
  const std::string& reason() const { return reason_; }
  const std::string& hint() const { return hint_; }

 private:
  std::string reason_;
  std::string hint_;
};

// Eager raises, or warns, here, in words that it finds best itself.
class RefusedByEager : public Unsupported {
 public:
  using Unsupported::Unsupported;
};

// A bug in the compiler. Caught at the boundary: the frame runs in eager, strict mode raises.
class InternalError : public std::logic_error {
 public:
  explicit InternalError(std::string_view message,
                         std::source_location where = std::source_location::current());
};

// Throws InternalError unless `condition` holds.
inline void check(bool condition, std::string_view message,
                  std::source_location where = std::source_location::current()) {
  if (!condition) [[unlikely]]
    throw InternalError(message, where);
}

}  // namespace oxy
