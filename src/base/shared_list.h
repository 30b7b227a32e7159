// A list whose copies share its items until one of them changes.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

namespace oxy {

// Reading is what std::vector does. `edit` gives the items of this list alone, to be changed, and copies them
// if another list has them too. One list may be read by many threads, and its copies are independent.
template <class T>
class SharedList {
 public:
  using value_type = T;
  using Items = std::vector<T>;

  SharedList() = default;
  SharedList(Items items) : items_(items.empty() ? nullptr : std::make_shared<Items>(std::move(items))) {}
  SharedList(std::initializer_list<T> items) : SharedList(Items(items)) {}

  const Items& items() const {
    static const Items none;
    return items_ ? *items_ : none;
  }
  operator const Items&() const { return items(); }
  // The reference holds until the list is copied.
  Items& edit() {
    // Counted once more, so that what others have read is read before anything is written.
    const std::shared_ptr<Items> held = items_;
    if (!held || held.use_count() > 2) items_ = std::make_shared<Items>(items());
    return *items_;
  }

  const T& operator[](size_t index) const { return (*items_)[index]; }
  // std::out_of_range if there is no such item.
  const T& at(size_t index) const { return items().at(index); }
  const T& front() const { return items_->front(); }
  const T& back() const { return items_->back(); }
  size_t size() const { return items_ ? items_->size() : 0; }
  bool empty() const { return size() == 0; }
  auto begin() const { return items().begin(); }
  auto end() const { return items().end(); }

  friend bool operator==(const SharedList& a, const SharedList& b) { return a.items() == b.items(); }

 private:
  std::shared_ptr<Items> items_;  // null: there are none
};

}  // namespace oxy
