// Copies that eager makes for some sizes only. reshape() and contiguous() give a view of their argument, or
// the argument itself, if its layout allows that, and a copy otherwise.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "trace/session/session.h"

namespace oxy::trace {

using AskOfSizes = std::function<bool(const sym::Condition&)>;

// The strides with which memory of such sizes and strides is seen in the new sizes, which are as many
// elements: dimensions that lie one behind the other in memory are covered by new ones as a whole. Nothing if
// it is not.
std::optional<std::vector<Expr>> view_strides(const AskOfSizes& ask, const std::vector<Expr>& sizes,
                                              const std::vector<Expr>& strides,
                                              const std::vector<Expr>& wanted);

// PyTorch asks for the answer that sizes other than 0 and 1 have, which costs no guard. Where it was a copy,
// and somebody could tell it from a view, that no call makes it a view becomes a guard: something writes to
// one of the two, or both are seen outside. So does that no call makes it a view with other strides than
// those of the copy, where a result may have them. `end`: of the program's own operators. Precondition: the
// outputs are known.
void guard_copies(Session& session, graph::NodeId end);

}  // namespace oxy::trace
