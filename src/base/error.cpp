#include "base/error.h"

#include <fmt/format.h>

namespace oxy {

Unsupported::Unsupported(std::string reason, std::string hint)
    : std::runtime_error(hint.empty() ? reason : fmt::format("{} ({})", reason, hint)),
      reason_(std::move(reason)),
      hint_(std::move(hint)) {}

InternalError::InternalError(std::string_view message, std::source_location where)
    : std::logic_error(fmt::format("{} [{}:{}]", message, where.file_name(), where.line())) {}

}  // namespace oxy
