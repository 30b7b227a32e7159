// The order in which a Rebuilder makes objects: which of them must exist before others can be made.
#pragma once

#include <optional>
#include <string>

#include "eval/rebuild/template.h"

namespace oxy::eval {

// How deep objects may nest. The Rebuilder is recursive.
constexpr int kDeepestObjects = 1000;

// Whether the parts of such an object, and everything that they reach, must be complete before it is made.
// This holds for iterators.
bool is_made_of_complete_objects(ObjectKind kind);

// Calls `see` with every template that the object refers to.
template <class See>
void for_each_part(const ObjectTemplate& object, See&& see) {
  for (const Template& item : object.items) see(item);
  see(object.contents);
}

// The reason, for the user, why a Rebuilder cannot make the objects: an immutable object contains itself, or
// they nest deeper than kDeepestObjects. Nothing if it can make them.
std::optional<std::string> problem_of_order(const TemplateObjects& objects);

}  // namespace oxy::eval
