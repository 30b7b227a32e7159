// Warnings about stand-ins concern nobody, and those that come once have yet to come.
#pragma once

#include <c10/util/Exception.h>

namespace oxy::trace {

// While it lives, warnings of kernels on this thread are dropped.
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
