#include <doctest/doctest.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "base/dump.h"
#include "base/hash.h"
#include "base/log.h"

namespace oxy {
namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST_CASE("dump: a folder a compilation, a file a stage") {
  std::filesystem::path root =
      std::filesystem::temp_directory_path() / ("oxyfuel-dump-" + std::to_string(getpid()));
  Dump first("model/<lambda>", root / "deep"), second("model/<lambda>", root / "deep");
  CHECK(first.folder() == root / "deep" / "model__lambda__0");
  CHECK(second.folder() == root / "deep" / "model__lambda__1");
  first.write("graph", "text of the graph");
  first.write("kernels/gelu.cpp", "int x;");
  first.write("../escape", "text");
  CHECK(read(first.folder() / "graph.txt") == "text of the graph");
  CHECK(read(first.folder() / "kernels" / "gelu.cpp") == "int x;");
  CHECK(read(first.folder() / "_." / "escape.txt") == "text");
  std::filesystem::remove_all(root);
}

TEST_CASE("dump: without a folder nothing is written, and a folder that cannot be made is a warning") {
  Dump none("function", std::filesystem::path());
  CHECK_FALSE(none.enabled());
  none.write("graph", "text");
  std::string warnings;
  set_log_sink([&](std::string_view block) { warnings += block; });
  Dump refused("function", "/proc/no-such-folder");
  refused.write("graph", "text");
  Dump again("function", "/proc/no-such-folder");
  set_log_sink({});
  CHECK_FALSE(refused.enabled());
  CHECK(warnings.starts_with("oxyfuel: OXYFUEL_DUMP: cannot write /proc/no-such-folder"));
  CHECK(std::count(warnings.begin(), warnings.end(), '\n') == 1);
}

TEST_CASE("hash: equal on every machine") {
  CHECK(hash64("") == 0x2d06800538d394c2u);
  CHECK(to_hex(hash128("")) == "99aa06d3014798d86001c324468d497f");
  CHECK(hash128("kernel") != hash128("kernel2"));
  CHECK(hash_combine(hash_combine(0, 1), 2) != hash_combine(hash_combine(0, 2), 1));
}

}  // namespace
}  // namespace oxy
