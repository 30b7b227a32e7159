#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "base/background.h"

namespace oxy {
namespace {

TEST_CASE("background: work is done in order, by one thread, and waited for") {
  std::vector<int> done;
  const auto here = std::this_thread::get_id();
  for (int i = 0; i < 20; ++i)
    background::submit([&done, i, here] { done.push_back(std::this_thread::get_id() == here ? -1 : i); });
  background::wait();
  REQUIRE(done.size() == 20);
  for (int i = 0; i < 20; ++i) CHECK(done[static_cast<size_t>(i)] == i);
}

TEST_CASE("background: threads may submit at once, and the thread comes back when there is work again") {
  std::atomic<int> done = 0;
  for (int round = 0; round < 50; ++round) {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back([&] { background::submit([&] { ++done; }); });
    threads.clear();
    background::wait();
    CHECK(done == 4 * (round + 1));
  }
}

TEST_CASE("background: awaited work does not wait for spare work, and can be held") {
  std::atomic<bool> goes_on = false, awaited = false, later = false;
  background::submit([&] {
    while (!goes_on) std::this_thread::yield();
  });
  CHECK(background::submit([&] { awaited = true; }, background::Lane::Awaited));
  while (!awaited) std::this_thread::yield();
  goes_on = true;
  background::wait();
  background::hold();
  CHECK(background::submit([&] { later = true; }, background::Lane::Awaited));
  background::wait();  // for what may begin
  CHECK(!later);
  background::release();
  background::wait();
  CHECK(later);
}

TEST_CASE("background: a child of a fork knows that it is one") {
  const int64_t here = background::generation();
  const pid_t child = fork();
  if (child == 0) _exit(background::generation() == here + 1 ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  CHECK(background::generation() == here);
}

// ThreadSanitizer ends a child that starts threads.
#if defined(__SANITIZE_THREAD__)
constexpr bool kChildMayWork = false;
#else
constexpr bool kChildMayWork = true;
#endif

TEST_CASE("background: a child of a fork has none of the work, and a thread of its own") {
  std::atomic<bool> goes_on = false;
  std::atomic<bool> in_piece = false;
  background::submit([&] {
    {
      const background::Piece piece;
      in_piece = true;
    }
    while (!goes_on) std::this_thread::yield();
  });
  while (!in_piece) std::this_thread::yield();
  const pid_t child = fork();
  if (child == 0) {
    std::atomic<bool> done = false;
    background::wait();  // for nothing
    if (kChildMayWork) background::submit([&] { done = true; });
    background::wait();
    background::end();
    background::submit([&] { done = false; });
    background::wait();
    _exit(done == kChildMayWork ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  goes_on = true;
  background::wait();
}

}  // namespace
}  // namespace oxy
