// Whether calls of compiled functions may compile: one setting of the process, as torch.compile's stance.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace oxy::driver {

enum class Stance : uint8_t {
  Default,           // calls compile what is missing
  ForceEager,        // all runs in eager
  EagerOnRecompile,  // what is compiled runs, what would have to be compiled runs in eager
  FailOnRecompile,   // what would have to be compiled is an error
};

// Guarded by the GIL.
Stance stance();
// Returns the one before.
Stance set_stance(Stance stance);

std::optional<Stance> stance_from_name(std::string_view name);
std::string_view name_of(Stance stance);

// The Python error of FailOnRecompile: what would be compiled, and why.
void raise_would_compile(const std::string& what, const std::string& reason);

}  // namespace oxy::driver
