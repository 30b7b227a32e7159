#include "runtime/variants/trial.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace oxy::runtime {

namespace {

double least(const std::vector<double>& seconds) {
  return *std::ranges::min_element(seconds);
}

double median(std::vector<double> seconds) {
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::ranges::nth_element(seconds, middle);
  return *middle;
}

}  // namespace

// Old, new, new, old: neither always comes behind the other.
Trial::Way Trial::next() {
  const size_t place = turns_++ % 4;
  return place == 1 || place == 2 ? Way::New : Way::Old;
}

void Trial::add(Way way, double seconds) {
  if (way == Way::New && first_calls_ > 0) {
    --first_calls_;
    return;
  }
  std::vector<double>& known = seconds_[static_cast<size_t>(way)];
  if (known.size() < kCalls) known.push_back(seconds);
}

bool Trial::is_over() const {
  return std::ranges::all_of(seconds_, [](const auto& known) { return known.size() == kCalls; });
}

bool Trial::is_new_faster() const {
  check(is_over(), "a trial has no result yet");
  const auto& [before, now] = seconds_;
  return least(now) <= kMargin * least(before) && median(now) <= kMargin * median(before);
}

std::string Trial::describe() const {
  const auto& [before, now] = seconds_;
  return fmt::format("{:.1f} us with numbers, {:.1f} with symbols; medians {:.1f}, {:.1f}", least(now) * 1e6,
                     least(before) * 1e6, median(now) * 1e6, median(before) * 1e6);
}

}  // namespace oxy::runtime
