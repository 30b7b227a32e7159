// tests/golden/kernels/*.txt: a graph, a line "----", and what the back end makes of it for AVX-512 and two
// threads: the plan and the kernels without their preludes. OXYFUEL_UPDATE_GOLDEN=1 writes what it makes now
// into the files.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "backend/graph_checks.h"

using namespace oxy;
namespace fs = std::filesystem;

namespace {

constexpr std::string_view kSeparator = "----\n";

std::string back_end_text(const std::string& graph) {
  backend::cpu::Target target;
  target.isa = backend::cpu::Isa::Avx512;
  target.vector_bytes = 64;
  plan::Plan plan = oxy::testing::scheduled(oxy::testing::lowered(graph), target, {.parallelism = 2});
  // The names are hashes of the whole text, prelude included.
  std::string text = plan::print(plan);
  for (const plan::Kernel& kernel : plan.kernels)
    text += "\n" + kernel.source.substr(kernel.source.find("extern \"C\" int oxy_"));
  for (const plan::KernelId k : plan.kernels.ids())
    for (size_t at; (at = text.find(plan.kernels[k].name)) != std::string::npos;)
      text.replace(at, plan.kernels[k].name.size(), fmt::format("kernel{}", k));
  for (size_t at; (at = text.find(" bytes of source)")) != std::string::npos;) {  // the prelude is not shown
    size_t start = text.rfind(" (", at);
    text.erase(start, text.find(')', at) + 1 - start);
  }
  return text;
}

}  // namespace

TEST_CASE("backendule: golden plans and kernels") {
  const bool update = std::getenv("OXYFUEL_UPDATE_GOLDEN") != nullptr;
  size_t seen = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(OXYFUEL_SOURCE_DIR) / "tests/golden/kernels")) {
    if (entry.path().extension() != ".txt") continue;
    ++seen;
    CAPTURE(entry.path().string());
    std::stringstream content;
    content << std::ifstream(entry.path()).rdbuf();
    std::string text = content.str();
    size_t separator = text.find(kSeparator);
    std::string graph = text.substr(0, separator);
    std::string actual = back_end_text(graph);
    if (update)
      std::ofstream(entry.path()) << graph << kSeparator << actual;
    else
      CHECK(text.substr(std::min(text.size(), separator + kSeparator.size())) == actual);
  }
  CHECK(seen >= 4);
}
