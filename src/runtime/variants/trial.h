// Two ways to do the same thing, timed in turn while it is done anyway.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace oxy::runtime {

class Trial {
 public:
  enum class Way : uint8_t { Old, New };

  // The way that is to be taken now.
  Way next();
  // It took so long. The first calls of the new way do not count: they ask for memory.
  void add(Way way, double seconds);
  bool is_over() const;
  // Once it is over. By a margin, both in the least time and in the median: either alone is chance at times.
  bool is_new_faster() const;
  std::string describe() const;  // the figures, for the log

  static constexpr size_t kCalls = 16;  // of each way
  static constexpr size_t kFirstCalls = 2;
  static constexpr double kMargin = 0.95;  // of the old time

 private:
  std::array<std::vector<double>, 2> seconds_;
  size_t turns_ = 0;
  size_t first_calls_ = kFirstCalls;
};

}  // namespace oxy::runtime
