#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <string>
#include <type_traits>
#include <unordered_set>

#include "base/id.h"

namespace oxy {
namespace {

struct Cat;
struct Dog;
using CatId = Id<Cat>;
using DogId = Id<Dog>;
using Names = IdVector<CatId, std::string>;

template <class Vector, class Index>
concept TakesIndex = requires(Vector vector, Index index) { vector[index]; };
template <class Vector, class Index>
concept TakesAt = requires(const Vector vector, Index index) { vector.at(index); };
template <class A, class B>
concept Comparable = requires(A a, B b) { a == b; };
template <class A, class B>
concept Ordered = requires(A a, B b) { a < b; };
template <class A, class B>
concept Addable = requires(A a, B b) { a + b; };
template <class A>
concept Incrementable = requires(A a) { ++a; };

static_assert(TakesIndex<Names, CatId> && TakesAt<Names, CatId>);
static_assert(!TakesIndex<Names, DogId> && !TakesAt<Names, DogId>);
static_assert(!TakesIndex<Names, int32_t> && !TakesIndex<Names, size_t> && !TakesAt<Names, int>);
static_assert(!TakesIndex<std::vector<std::string>, CatId>);

static_assert(Comparable<CatId, CatId> && Ordered<CatId, CatId>);
static_assert(!Comparable<CatId, DogId> && !Comparable<CatId, int32_t> && !Ordered<CatId, int32_t>);
static_assert(!Addable<CatId, CatId> && !Addable<CatId, int> && !Incrementable<CatId>);

static_assert(!std::is_convertible_v<int32_t, CatId> && !std::is_convertible_v<CatId, int32_t>);
static_assert(!std::is_constructible_v<CatId, DogId> && !std::is_constructible_v<CatId, bool>);
static_assert(!std::is_constructible_v<CatId, double>);

static_assert(sizeof(CatId) == sizeof(int32_t) && std::is_trivially_copyable_v<CatId>);
static_assert(sizeof(Names) == sizeof(std::vector<std::string>));
static_assert(std::ranges::bidirectional_range<IdRange<CatId>>);

TEST_CASE("id: none by default, ordered by number, printed as it") {
  CHECK_FALSE(CatId().is_valid());
  CHECK(CatId(0).is_valid());
  CHECK(CatId(3).index() == 3);
  CHECK(CatId(size_t{3}) == CatId(3));
  CHECK(CatId() < CatId(0));
  CHECK(CatId(1) < CatId(2));
  CHECK(fmt::format("{} {}", CatId(7), CatId()) == "7 -1");
  CHECK(std::unordered_set<CatId>{CatId(1), CatId(1), CatId(2)}.size() == 2);
}

TEST_CASE("id vector: grows and gives ids, in order") {
  Names names;
  CHECK(names.next_id() == CatId(0));
  const CatId tom = names.add("Tom"), felix = names.add("Felix");
  CHECK(names[tom] == "Tom");
  CHECK(names.at(felix) == "Felix");
  CHECK(names.contains(felix));
  CHECK_FALSE(names.contains(names.next_id()));
  CHECK_FALSE(names.contains(CatId()));
  CHECK_THROWS_AS(names.at(CatId(2)), std::out_of_range);
  CHECK_THROWS_AS(names.at(CatId()), std::out_of_range);
  std::string seen;
  for (const CatId id : names.ids()) seen += names[id];
  for (const CatId id : names.ids() | std::views::reverse) seen += fmt::format("{}", id);
  CHECK(seen == "TomFelix10");
  for (const CatId id : names.ids_from(felix)) CHECK(id == felix);
  CHECK(std::ranges::distance(names.ids_from(felix)) == 1);
  CHECK(std::ranges::distance(names.ids_from(names.next_id())) == 0);
}

TEST_CASE("id vector: bits can be set through it") {
  IdVector<CatId, bool> asleep(3, false);
  asleep[CatId(1)] = true;
  CHECK_FALSE(asleep[CatId(0)]);
  CHECK(asleep[CatId(1)]);
  CHECK(std::ranges::count(asleep, true) == 1);
}

}  // namespace
}  // namespace oxy
