#include <doctest/doctest.h>

#include <thread>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/timing.h"

namespace oxy {
namespace {

// Collects what is logged, and puts everything back.
struct Collector {
  Collector() {
    set_log_sink([this](std::string_view block) { text += block; });
  }
  ~Collector() {
    enable_logs("");
    set_log_sink({});
  }
  std::string text;
};

TEST_CASE("log: a channel that is off writes nothing, one that is on prefixes every line") {
  Collector collector;
  enable_logs("graph");
  log(Channel::Loops, "hidden {}", 1);
  log(Channel::Graph, "two\nlines and {}", "an argument");
  CHECK(collector.text == "[graph] two\n[graph] lines and an argument\n");
}

TEST_CASE("log: lists, blanks, all") {
  Collector collector;
  enable_logs(" code , guards,");
  CHECK(enabled_logs() == "code,guards");
  CHECK(log_enabled(Channel::Code));
  CHECK_FALSE(log_enabled(Channel::Graph));
  enable_logs("all");
  CHECK(enabled_logs() == "graph,loops,schedule,code,guards,breaks,recompiles,dynamic,device_graphs,timing");
  enable_logs("");
  CHECK(enabled_logs().empty());
}

TEST_CASE("log: an unknown channel is named, with those that exist, and changes nothing") {
  Collector collector;
  enable_logs("code");
  try {
    enable_logs("graph,kernels");
    FAIL("nothing was thrown");
  } catch (const UserError& error) {
    CHECK(std::string(error.what()) ==
          "unknown log channel 'kernels': the channels are graph, loops, schedule, code, guards, breaks, "
          "recompiles, dynamic, device_graphs, timing, all, help");
  }
  CHECK(enabled_logs() == "code");
}

TEST_CASE("log: help describes every channel") {
  Collector collector;
  enable_logs("help");
  for (std::string name : {"graph", "loops", "schedule", "code", "guards", "breaks", "recompiles", "timing"})
    CHECK(collector.text.find("  " + name + " ") != std::string::npos);
  CHECK(enabled_logs().empty());
}

TEST_CASE("log: blocks of several threads are not mixed") {
  Collector collector;
  enable_logs("breaks");
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([t] {
        for (int i = 0; i < 50; ++i) log(Channel::Breaks, "{0}a\n{0}b", t);
      });
  }
  size_t lines = 0;
  for (size_t at = 0; at < collector.text.size(); ++lines) {
    std::string first = collector.text.substr(at, 11), second = collector.text.substr(at + 12, 11);
    REQUIRE(first.substr(0, 10) == second.substr(0, 10));
    REQUIRE(first.back() == 'a');
    REQUIRE(second.back() == 'b');
    at += 24;
  }
  CHECK(lines == 200);
}

TEST_CASE("timing: spans add up by stage and nest") {
  reset_stage_times();
  for (int i = 0; i < 3; ++i) {
    Span outer("test outer");
    Span inner("test inner");
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    Span same("test inner");
    CHECK(outer.seconds() >= 0.002);
  }
  auto times = stage_times();
  CHECK(times.at("test outer").count == 3);
  CHECK(times.at("test inner").count == 6);
  CHECK(times.at("test inner").seconds >= 0.006);
  CHECK(times.at("test inner").seconds <= times.at("test outer").seconds);  // not counted twice
  reset_stage_times();
  CHECK(stage_times().empty());
}

TEST_CASE("timing: the tree of an outermost span is logged") {
  Collector collector;
  enable_logs("timing");
  {
    Span outer("compile");
    for (int i = 0; i < 2; ++i) Span inner("pass");
  }
  CHECK(collector.text.starts_with("[timing] compile "));
  CHECK(collector.text.find("[timing]   pass ") != std::string::npos);
  CHECK(collector.text.find("2 times") != std::string::npos);
}

}  // namespace
}  // namespace oxy
