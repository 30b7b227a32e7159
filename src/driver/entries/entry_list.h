// What is compiled of a callable or of a segment: several entries for calls that differ.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "driver/entries/entry.h"

namespace oxy::driver {

// `Item` has a member `std::shared_ptr<Entry> entry`, shared because a call may be inside one when it is
// dropped, and what tells whether the entry's guards can be checked. Most recently used first. With the GIL
// held.
template <typename Item>
class EntryList {
 public:
  // The entry of the first item that fits, which comes first from then on; null if there is none, or if its
  // graph has to be compiled again: it is dropped then. `fits` runs no Python code.
  template <typename Fits>
  std::shared_ptr<Entry> find(const Fits& fits) {
    const auto item = std::find_if(items_.begin(), items_.end(), fits);
    if (item == items_.end()) return nullptr;
    // Let go of when the list is in order again: that may run Python code, which may come back here.
    std::shared_ptr<Entry> found = item->entry;
    if (!found->valid()) {
      items_.erase(item);
      return nullptr;
    }
    if (item != items_.begin()) std::rotate(items_.begin(), item, item + 1);
    return found;
  }

  void add(Item item) { items_.insert(items_.begin(), std::move(item)); }
  // For the caller to let go of, which may run Python code.
  std::vector<Item> take_all() { return std::exchange(items_, {}); }

  bool empty() const { return items_.empty(); }
  const Item& most_recent() const { return items_.front(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

 private:
  std::vector<Item> items_;
};

}  // namespace oxy::driver
