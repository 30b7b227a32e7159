// Extern calls through torch's dispatcher, on any device.
#pragma once

#include "runtime/device/call_site.h"

namespace oxy::runtime {

// Any operator: its out= overload where torch has one, so that the result lands in the planned buffer, else
// the operator itself and a copy. UserError if torch has no such operator.
Invoke prepare_general(const CallSite& site);

}  // namespace oxy::runtime
