#include "eval/rebuild/autocast.h"

#include <ATen/autocast_mode.h>

namespace oxy::eval {
namespace {

void add_nesting(int levels) {
  for (; levels > 0; --levels) at::autocast::increment_nesting();
  for (; levels < 0; ++levels) at::autocast::decrement_nesting();
}

int current_nesting() {
  at::autocast::increment_nesting();
  return at::autocast::decrement_nesting();
}

}  // namespace

AutocastState AutocastState::current() {
  return {runtime::current_autocast(), current_nesting()};
}

void AutocastState::apply() const {
  runtime::apply(devices);
  add_nesting(nesting - current_nesting());
}

AutocastCache::AutocastCache()
    : was_enabled(at::autocast::is_autocast_cache_enabled()), enabled(was_enabled) {}

void AutocastChange::apply() const {
  runtime::apply(state.devices);
  at::autocast::set_autocast_cache_enabled(cache_enabled);
  add_nesting(nesting);
  if (clears_cache) at::autocast::clear_cache();
}

}  // namespace oxy::eval
