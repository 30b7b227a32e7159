// Typed ids: small integers that name the items of one vector, and vectors that take no other index.
//
// `using BufferId = Id<Buffer>` names the buffers of a program. A table of them is an IdVector<BufferId,
// Buffer>; what is known of each buffer beside it is an IdVector<BufferId, T> of the same size. Another kind
// of id, or a bare integer, does not compile there. An Id costs what an int32_t costs, an IdVector what a
// std::vector costs.
#pragma once

#include <fmt/core.h>

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <utility>
#include <vector>

namespace oxy {

// Names an item, or none. `Tag` is the type of what is named; it may be incomplete. There is no arithmetic.
template <class Tag>
class Id {
 public:
  constexpr Id() = default;  // none: the number is -1
  template <std::integral Number>
    requires(!std::same_as<Number, bool>)
  constexpr explicit Id(Number number) : number_(static_cast<int32_t>(number)) {}

  // False: it names nothing.
  constexpr bool is_valid() const { return number_ >= 0; }
  constexpr int32_t number() const { return number_; }
  // Its place in a vector. The id must be valid.
  constexpr size_t index() const { return static_cast<size_t>(number_); }

  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  int32_t number_ = -1;
};

// The ids [0, count), in order.
template <class Key>
class IdRange {
 public:
  class iterator {
   public:
    using value_type = Key;
    using difference_type = std::ptrdiff_t;
    constexpr iterator() = default;
    constexpr explicit iterator(int32_t number) : number_(number) {}
    constexpr Key operator*() const { return Key(number_); }
    constexpr iterator& operator++() { return ++number_, *this; }
    constexpr iterator operator++(int) { return iterator(number_++); }
    constexpr iterator& operator--() { return --number_, *this; }
    constexpr iterator operator--(int) { return iterator(number_--); }
    friend constexpr bool operator==(iterator, iterator) = default;

   private:
    int32_t number_ = 0;
  };

  constexpr IdRange(size_t first, size_t end)
      : first_(static_cast<int32_t>(first)), end_(static_cast<int32_t>(end)) {}
  constexpr iterator begin() const { return iterator(first_); }
  constexpr iterator end() const { return iterator(end_); }

 private:
  int32_t first_;
  int32_t end_;
};

// A vector whose index is a `Key`, an Id. Iterating gives the items; ids() gives their ids.
template <class Key, class T>
class IdVector {
  using Items = std::vector<T>;

 public:
  using value_type = T;
  using reference = typename Items::reference;
  using const_reference = typename Items::const_reference;

  IdVector() = default;
  explicit IdVector(size_t count) : items_(count) {}
  IdVector(size_t count, const T& value) : items_(count, value) {}
  IdVector(std::initializer_list<T> items) : items_(items) {}

  reference operator[](Key id) { return items_[id.index()]; }
  const_reference operator[](Key id) const { return items_[id.index()]; }
  // std::out_of_range if there is no such item.
  reference at(Key id) { return items_.at(id.index()); }
  const_reference at(Key id) const { return items_.at(id.index()); }
  bool contains(Key id) const { return id.is_valid() && id.index() < items_.size(); }

  // Appends and returns the new item's id.
  template <std::convertible_to<T> Item = T>
  Key add(Item&& item) {
    items_.emplace_back(std::forward<Item>(item));
    return Key(items_.size() - 1);
  }
  // The id that add() will return.
  Key next_id() const { return Key(items_.size()); }

  IdRange<Key> ids() const { return {0, items_.size()}; }
  IdRange<Key> ids_from(Key first) const { return {first.index(), items_.size()}; }
  size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  void reserve(size_t count) { items_.reserve(count); }
  void resize(size_t count) { items_.resize(count); }
  void resize(size_t count, const T& value) { items_.resize(count, value); }
  void assign(size_t count, const T& value) { items_.assign(count, value); }
  void clear() { items_.clear(); }

  auto begin() { return items_.begin(); }
  auto begin() const { return items_.begin(); }
  auto end() { return items_.end(); }
  auto end() const { return items_.end(); }
  reference front() { return items_.front(); }
  const_reference front() const { return items_.front(); }
  reference back() { return items_.back(); }
  const_reference back() const { return items_.back(); }

  friend bool operator==(const IdVector&, const IdVector&) = default;

 private:
  Items items_;
};

}  // namespace oxy

template <class Tag>
struct std::hash<oxy::Id<Tag>> {
  size_t operator()(oxy::Id<Tag> id) const noexcept { return std::hash<int32_t>()(id.number()); }
};

template <class Tag>
struct fmt::formatter<oxy::Id<Tag>> : fmt::formatter<int32_t> {
  auto format(oxy::Id<Tag> id, auto& context) const {
    return fmt::formatter<int32_t>::format(id.number(), context);
  }
};
