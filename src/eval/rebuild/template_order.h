// What of the objects of a template has to be there before others can be made.
#pragma once

#include <optional>
#include <string>

#include "eval/rebuild/template.h"

namespace oxy::eval {

// How deep objects may lie in each other: what makes them again calls itself.
constexpr int kDeepestObjects = 1000;

// True of an iterator: what it goes over, and all that is reached from there, is complete before it is made.
bool is_made_of_complete_objects(ObjectKind kind);

// Calls `see` with every template that an object refers to.
template <class See>
void for_each_part(const ObjectTemplate& object, See&& see) {
  for (const Template& item : object.items) see(item);
  see(object.contents);
}

// Why a Rebuilder cannot make the objects: one that cannot be changed is made of itself, or too many are made
// of each other. Nothing if it can.
std::optional<std::string> problem_of_order(const TemplateObjects& objects);

}  // namespace oxy::eval
