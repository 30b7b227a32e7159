#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/shared_list.h"

namespace oxy {
namespace {

TEST_CASE("shared_list: a list that changes has items of its own") {
  SharedList<std::string> first = {"a", "b"};
  const SharedList<std::string> second = first;
  CHECK(&first[0] == &second[0]);
  first.edit()[0] = "c";
  CHECK(first.items() == std::vector<std::string>{"c", "b"});
  CHECK(second.items() == std::vector<std::string>{"a", "b"});
  CHECK_FALSE(first == second);
}

TEST_CASE("shared_list: a list that nobody shares is not copied") {
  SharedList<int> list = {1, 2, 3};
  const int* const before = &list[1];
  list.edit()[1] = 7;
  CHECK(&list[1] == before);
  {
    const SharedList<int> other = list;
    CHECK(other[1] == 7);
  }
  list.edit()[1] = 8;
  CHECK(&list[1] == before);
}

TEST_CASE("shared_list: an empty list") {
  SharedList<int> list;
  CHECK(list.empty());
  CHECK(list.begin() == list.end());
  CHECK(list == SharedList<int>(std::vector<int>()));
  CHECK_THROWS_AS(list.at(0), std::out_of_range);
  list.edit().push_back(4);
  CHECK(list.size() == 1);
  CHECK(list.front() == 4);
  CHECK(list.back() == 4);
}

TEST_CASE("shared_list: threads change copies of one list") {
  const SharedList<int> source(std::vector<int>(100, 1));
  std::vector<SharedList<int>> copies(4, source);
  std::vector<std::thread> threads;
  for (SharedList<int>& copy : copies)
    threads.emplace_back([&copy] {
      for (int& item : copy.edit()) item = 2;
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(source.items() == std::vector<int>(100, 1));
  for (const SharedList<int>& copy : copies) CHECK(copy.items() == std::vector<int>(100, 2));
}

// For the thread sanitizer: what the thread has read must not meet what is written.
TEST_CASE("shared_list: a thread reads a copy and lets it go, while the list changes") {
  for (int round = 0; round < 200; ++round) {
    SharedList<int> list(std::vector<int>(50, 1));
    int sum = 0;
    std::thread reader([copy = list, &sum]() mutable {
      for (const int item : copy) sum += item;
      copy = {};
    });
    for (int& item : list.edit()) item = 2;
    reader.join();
    CHECK(sum == 50);
  }
}

}  // namespace
}  // namespace oxy
