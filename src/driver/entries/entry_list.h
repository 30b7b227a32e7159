// The entries of one site: several, for calls that differ.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "driver/entries/entry.h"

namespace oxy::driver {

// The most recently used item comes first. `Item` has a member `std::shared_ptr<Entry> entry`, and data that
// tells whether the entry's guards can be checked. Entries are shared, as one may be dropped while a call
// runs it. The GIL is held.
template <typename Item>
class EntryList {
 public:
  // The entry of the first item for which `fits` holds; the item is moved to the front. Null: no item fits,
  // or the entry is not valid() any more and was dropped. `fits` must run no Python code.
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
  // Empties the list. The caller drops the items, which may run Python code.
  std::vector<Item> take_all() { return std::exchange(items_, {}); }

  bool empty() const { return items_.empty(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

 private:
  std::vector<Item> items_;
};

}  // namespace oxy::driver
