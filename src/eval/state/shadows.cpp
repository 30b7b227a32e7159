#include "eval/state/shadows.h"

#include <algorithm>

namespace oxy::eval {

Shadow* Shadows::find(PyObject* object) {
  const auto found = index.find(object);
  return found == index.end() ? nullptr : &all[found->second];
}

Shadow& Shadows::of(PyObject* object) {
  const auto [found, inserted] = index.try_emplace(object, all.size());
  if (inserted) all.emplace_back().object = cpy::Ref::borrow(object);
  return all[found->second];
}

bool Shadows::has_written() const {
  return std::ranges::any_of(all, [](const Shadow& shadow) { return shadow.written; });
}

}  // namespace oxy::eval
