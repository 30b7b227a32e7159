// The stance: whether calls of compiled functions may compile. oxyfuel.set_stance() sets it for the process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace oxy::driver {

enum class Stance : uint8_t {
  Default,           // a call that fits no entry is compiled
  ForceEager,        // every call runs in eager
  EagerOnRecompile,  // a call that fits no entry runs in eager
  FailOnRecompile,   // a call that fits no entry is an error
};

// The GIL guards it.
Stance stance();
// Returns the previous stance.
Stance set_stance(Stance stance);

// By the names of oxyfuel.set_stance(): "default", "force_eager" ... Nothing: an unknown name.
std::optional<Stance> stance_from_name(std::string_view name);
std::string_view name_of(Stance stance);

// Sets the Python error of FailOnRecompile. `what`: what would be compiled; `reason`: why it would.
void raise_would_compile(const std::string& what, const std::string& reason);

}  // namespace oxy::driver
