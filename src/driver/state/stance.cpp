#include "driver/state/stance.h"

#include <Python.h>

#include <algorithm>
#include <array>
#include <utility>

namespace oxy::driver {
namespace {

// In the order of Stance.
constexpr std::array<std::string_view, 4> kNames = {"default", "force_eager", "eager_on_recompile",
                                                    "fail_on_recompile"};
Stance current = Stance::Default;

}  // namespace

Stance stance() {
  return current;
}

Stance set_stance(Stance stance) {
  return std::exchange(current, stance);
}

std::optional<Stance> stance_from_name(std::string_view name) {
  const auto it = std::find(kNames.begin(), kNames.end(), name);
  if (it == kNames.end()) return std::nullopt;
  return static_cast<Stance>(it - kNames.begin());
}

std::string_view name_of(Stance stance) {
  return kNames[static_cast<size_t>(stance)];
}

void raise_would_compile(const std::string& what, const std::string& reason) {
  PyErr_Format(PyExc_RuntimeError, "%s would be compiled under the stance 'fail_on_recompile': %s",
               what.c_str(), reason.c_str());
}

}  // namespace oxy::driver
