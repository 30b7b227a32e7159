#include <doctest/doctest.h>

#include <map>

#include "base/config.h"
#include "base/error.h"

namespace oxy {
namespace {

Config read(const std::map<std::string, std::string, std::less<>>& variables) {
  return read_config([&](std::string_view name) -> std::optional<std::string> {
    auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

std::string message(const std::map<std::string, std::string, std::less<>>& variables) {
  try {
    read(variables);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

TEST_CASE("config: nothing set") {
  Config config = read({});
  CHECK(config.logs.empty());
  CHECK(config.dump.empty());
  CHECK_FALSE(config.strict);
  CHECK(config.compiler.empty());
  CHECK(config.compile_threads == 0);
  CHECK(config.cache.empty());
}

TEST_CASE("config: everything set") {
  Config config = read({{"OXYFUEL_LOGS", "graph,code"},
                        {"OXYFUEL_DUMP", "/tmp/dump"},
                        {"OXYFUEL_STRICT", "1"},
                        {"OXYFUEL_COMPILER", "system"},
                        {"OXYFUEL_CXX", "clang++-19"},
                        {"OXYFUEL_ISA", "avx2"},
                        {"OXYFUEL_COMPILE_THREADS", "3"}});
  CHECK(config.logs == "graph,code");
  CHECK(config.dump == "/tmp/dump");
  CHECK(config.strict);
  CHECK(config.compiler == "system");
  CHECK(config.system_cxx == "clang++-19");
  CHECK(config.isa == "avx2");
  CHECK(config.compile_threads == 3);
  CHECK(read({{"OXYFUEL_CACHE", "/a"}, {"HOME", "/h"}}).cache == "/a");
  CHECK(read({{"CUDA_LAUNCH_BLOCKING", "1"}}).launch_blocking);
  CHECK(!read({{"CUDA_LAUNCH_BLOCKING", "0"}}).launch_blocking);
  CHECK(!read({}).launch_blocking);
  CHECK(read({{"OXYFUEL_CACHE", "off"}, {"HOME", "/h"}}).cache.empty());
  CHECK(read({{"XDG_CACHE_HOME", "/x"}, {"HOME", "/h"}}).cache == "/x/oxyfuel");
  CHECK(read({{"HOME", "/h"}}).cache == "/h/.cache/oxyfuel");
}

TEST_CASE("config: a wrong value is named with the values it may have") {
  CHECK(message({{"OXYFUEL_STRICT", "0"}}) == "accepted");
  CHECK(message({{"OXYFUEL_STRICT", "maybe"}}) == "OXYFUEL_STRICT=maybe: expected 0 or 1");
  CHECK(message({{"OXYFUEL_COMPILER", "gcc"}}) == "OXYFUEL_COMPILER=gcc: expected one of clang, system");
  CHECK(message({{"OXYFUEL_ISA", "sse"}}).find("scalar, avx2, avx512") != std::string::npos);
  CHECK(message({{"OXYFUEL_COMPILE_THREADS", "-1"}}) != "accepted");
  CHECK(message({{"OXYFUEL_COMPILE_THREADS", "2x"}}) != "accepted");
}

TEST_CASE("config: strict mode can be changed") {
  bool before = strict();
  set_strict(!before);
  CHECK(strict() == !before);
  set_strict(before);
}

}  // namespace
}  // namespace oxy
