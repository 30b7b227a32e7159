// What a user can do about a break.
#pragma once

#include <string>

#include "driver/state/metrics.h"

namespace oxy::driver {

// The break's own advice, or what is known of breaks of its kind; empty if nothing is.
std::string advice_on(const BreakRecord& record);

}  // namespace oxy::driver
