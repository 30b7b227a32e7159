// What an exception says, without PyTorch's C++ stack.
#pragma once

#include <c10/util/Exception.h>

#include <exception>

namespace oxy::torch_api {

// The message of an exception that may be PyTorch's. Its what() also names the functions of the C++ stack.
// To find these names takes milliseconds, and they tell a user nothing. Valid as long as the exception.
inline const char* error_text(const std::exception& error) {
  const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
  return of_torch ? of_torch->what_without_backtrace() : error.what();
}

}  // namespace oxy::torch_api
