#include "aten/opaque.h"

#include <algorithm>
#include <array>

namespace oxy {

namespace {

std::string_view library_of(const OperatorSchema& op) {
  return std::string_view(op.name).substr(0, op.name.find("::"));
}

}  // namespace

bool is_opaque(const OperatorSchema& op) {
  constexpr std::array<std::string_view, 7> kKnown = {"aten",      "prims",       "oxyfuel", "mkldnn",
                                                      "quantized", "torchvision", "mkl"};
  return std::ranges::find(kKnown, library_of(op)) == kKnown.end();
}

bool is_of_core(const OperatorSchema& op) {
  return library_of(op) == "aten";
}

bool is_our_own(const OperatorSchema& op) {
  return library_of(op) == "oxyfuel";
}

}  // namespace oxy
