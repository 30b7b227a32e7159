// Drops warnings of kernels that run on stand-ins for real tensors. They do not concern the user, and a
// warning that comes once in a process must still come for the real call.
#pragma once

#include <c10/util/Exception.h>

namespace oxy::trace {

// While one lives, warnings of kernels on this thread are dropped, and do not count as given.
class Unheard {
  class Handler : public c10::WarningHandler {
   public:
    void process(const c10::Warning&) override {}
  };
  Handler handler_;
  c10::WarningUtils::WarningHandlerGuard guard_{&handler_};
  c10::WarningUtils::WarnAlways always_{true};
};

}  // namespace oxy::trace
