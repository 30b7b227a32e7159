#include "aten/opaque.h"

#include <algorithm>
#include <array>

namespace oxy {

bool is_opaque(const OperatorSchema& op) {
  constexpr std::array<std::string_view, 7> kKnown = {"aten",      "prims",       "oxyfuel", "mkldnn",
                                                      "quantized", "torchvision", "mkl"};
  return std::ranges::find(kKnown, std::string_view(op.name).substr(0, op.name.find("::"))) == kKnown.end();
}

}  // namespace oxy
