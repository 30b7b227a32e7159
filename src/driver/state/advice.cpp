#include "driver/state/advice.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace oxy::driver {
namespace {

struct Advice {
  std::string_view beginning;  // of the reasons that it is for
  std::string_view text;
};

// The first that fits is given.
constexpr std::array kAdvice = {
    Advice{"the result of aten::_local_scalar_dense",
           "keep the value a tensor, as torch.where does, if it only chooses between tensors"},
    Advice{"the result of", "its size depends on data: a fixed size and a mask can be captured"},
    Advice{"needs to know a float that depends on data",
           "keep it a tensor: operators that take tensors in its place can be captured"},
    Advice{"uses a number or text", "make it a tensor if it takes part in computations on tensors"},
    Advice{"calls ",
           "call it outside; or mark it, with allow_in_graph if it only computes on tensors, with "
           "assume_constant_result if it always returns the same"},
    Advice{"advances an iterator",
           "nothing, if the loop's body is captured; to unroll the loop, let nothing in it break"},
};

}  // namespace

std::string advice_on(const BreakRecord& record) {
  if (!record.hint.empty()) return record.hint;
  const auto found = std::ranges::find_if(
      kAdvice, [&](const Advice& advice) { return record.reason.starts_with(advice.beginning); });
  return found == kAdvice.end() ? "" : std::string(found->text);
}

}  // namespace oxy::driver
