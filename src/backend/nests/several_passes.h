// Reductions that are made in several passes over their row, each of which is an item of its own.
#pragma once

#include <functional>
#include <vector>

#include "backend/shared/normal_form.h"

namespace oxy::backend {

// A buffer of the nest's own, which holds what passes from one item to the next.
using NewBuffer = std::function<BufferId(DType)>;

// Mean and variance (ReductionKind::Welford): a sum, the mean, and the sum of squares of what differs from
// it. A sum of many numbers is rounded, so that the mean of equal numbers may differ from them, and a
// normalisation divides that by the root of its epsilon. Where the standard deviation is below 2^-12 of the
// mean (2^-41 in float64), about the most that such rounding makes, a further pass adds up the differences
// and corrects both (the corrected two-pass algorithm of Chan, Golub and LeVeque, 1983). For kernels that can
// skip a pass (Item::condition).
std::vector<Item> two_pass_variance(const Item& item, const NewBuffer& new_buffer);
// ReductionKind::OnlineSoftmax: the maximum, then the sum of exponentials.
std::vector<Item> maximum_and_sum(const Item& item, const NewBuffer& new_buffer);

}  // namespace oxy::backend
