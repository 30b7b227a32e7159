// The first elements of rows whose variance is taken (two_pass_variance in several_passes.h).
#pragma once

#include <optional>
#include <span>

#include "backend/shared/normal_form.h"

namespace oxy::backend {

// Computes once a row the first of the numbers that it reduces.
struct FirstElement {
  Item item;
  size_t place = 0;  // it is done right before this step of the nest, by its position
};

// For the reduction steps[position] of a nest. What earlier steps of the nest compute for each element is
// computed for the first element again, so that their loops need not end before those of the reduction begin.
// Stores to `target`, one number a row. Nothing if a row may be empty, or what is reduced cannot be computed
// apart.
std::optional<FirstElement> first_element(const IdVector<StepId, Item>& items, std::span<const StepId> steps,
                                          size_t position, const ItemStore& target);

}  // namespace oxy::backend
