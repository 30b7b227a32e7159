// The parts of the prelude that are written for one element type.
#pragma once

#include <span>
#include <string_view>

#include "backend/cpu/target.h"

namespace oxy::backend::cpu {

struct Snippet {
  std::string_view name;
  std::string_view needs;  // names, separated by spaces, of what must stand before it
  std::string_view text;
  int lanes = 0;           // only for this number of lanes; 0: any
  bool needs_isa = false;  // only for `isa`
  Isa isa = Isa::Scalar;
};

std::span<const Snippet> snippets();

}  // namespace oxy::backend::cpu
