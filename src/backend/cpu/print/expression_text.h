// Index expressions as C++ text.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "sym/expr.h"

namespace oxy::backend::cpu {

// `name` gives the text that stands for a variable or a division, an int64_t; empty if a division has none.
// It is then written out. Division rounds down; helper functions that the text calls are reported through
// `uses`.
std::string expression_text(const sym::Expr& e,
                            const std::function<std::string(const sym::Expr& variable)>& name,
                            const std::function<void(const char* function)>& uses);

}  // namespace oxy::backend::cpu
