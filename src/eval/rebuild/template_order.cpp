#include "eval/rebuild/template_order.h"

#include <fmt/format.h>

#include <algorithm>

namespace oxy::eval {

namespace {

// How many of its first items an object is made of. The others are put in later.
size_t items_made_first(const ObjectTemplate& object) {
  switch (object.kind) {
    case ObjectKind::Tuple:
    case ObjectKind::TupleSubclass:
    case ObjectKind::FrozenSet:
    case ObjectKind::Slice:
    case ObjectKind::Method:
    case ObjectKind::Called:
    case ObjectKind::Iterator:
    case ObjectKind::Reduced:
      return object.items.size();
    case ObjectKind::DefaultDict:
      return 1;
    default:
      return 0;  // others are made of code, globals or a maxlen, which are never made again
  }
}

class Order {
 public:
  explicit Order(const TemplateObjects& objects) : objects_(objects), heights_(objects.size(), kUnknown) {}

  // The length of the longest chain of objects below this one, each made of the next. Nothing if an object is
  // made of itself, or the chain is longer than kDeepestObjects.
  std::optional<int> height(size_t index, int depth) {
    if (heights_[index] > 0) return heights_[index];
    if (heights_[index] == kOpen || depth > kDeepestObjects) return std::nullopt;
    heights_[index] = kOpen;
    const ObjectTemplate& object = objects_[index];
    int highest = 0;
    const auto below = [&](const Template& part) {
      if (part.kind != TemplateKind::Object) return true;
      const std::optional<int> found = height(static_cast<size_t>(part.index), depth + 1);
      highest = std::max(highest, found.value_or(0));
      return found.has_value();
    };
    for (size_t i = 0; i < items_made_first(object); ++i)
      if (!below(object.items[i])) return std::nullopt;
    if (object.kind == ObjectKind::Exception && !below(object.contents)) return std::nullopt;
    if (highest >= kDeepestObjects) return std::nullopt;
    heights_[index] = highest + 1;
    return heights_[index];
  }

  bool reaches_itself(size_t index) const {
    std::vector<bool> seen(objects_.size());
    std::vector<size_t> left = {index};
    while (!left.empty()) {
      const ObjectTemplate& object = objects_[left.back()];
      left.pop_back();
      for_each_part(object, [&](const Template& part) {
        const auto next = static_cast<size_t>(part.index);
        if (part.kind != TemplateKind::Object || seen[next]) return;
        seen[next] = true;
        left.push_back(next);
      });
    }
    return seen[index];
  }

 private:
  static constexpr int kUnknown = 0, kOpen = -1;
  const TemplateObjects& objects_;
  std::vector<int> heights_;
};

}  // namespace

bool is_made_of_complete_objects(ObjectKind kind) {
  return kind == ObjectKind::Iterator || kind == ObjectKind::Reduced;
}

std::optional<std::string> problem_of_order(const TemplateObjects& objects) {
  Order order(objects);
  for (size_t i = 0; i < objects.size(); ++i) {
    if (!order.height(i, 0))
      return fmt::format(
          "an object that is made of itself or of more than {} objects in each other outlives the captured "
          "region",
          kDeepestObjects);
    if (is_made_of_complete_objects(objects[i].kind) && order.reaches_itself(i))
      return "an iterator over what holds the iterator itself outlives the captured region";
  }
  return std::nullopt;
}

}  // namespace oxy::eval
