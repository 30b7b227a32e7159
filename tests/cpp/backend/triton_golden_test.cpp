// tests/golden/triton/*.txt: a graph, a line "----", and the plan that is made of it for a GPU, as a Python
// program with its kernels (backend/cuda/print/plan_script.h). OXYFUEL_UPDATE_GOLDEN=1 writes what is made
// now into the files. tests/golden/triton/generate.py writes the graphs.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/print/plan_script.h"
#include "backend/shared/schedule.h"
#include "loop/lowering.h"
#include "ops/core/registry.h"
#include "passes/pipeline/pipeline.h"

using namespace oxy;
namespace fs = std::filesystem;

namespace {

constexpr std::string_view kSeparator = "----\n";
constexpr int kMultiprocessors = 132;

std::string script_of(const std::string& text) {
  const auto backend = backend::cuda::make_backend();
  passes::Options options;
  options.generates_vector_products = [](DType) { return true; };
  options.generates_depthwise_convolutions = [](DType) { return true; };
  const plan::Plan plan = backend::schedule(
      loop::lower(passes::run_passes(graph::parse(text), options), backend->lowering_options()), *backend,
      {.parallelism = kMultiprocessors});
  plan::verify(plan);
  return backend::cuda::plan_script(plan);
}

}  // namespace

TEST_CASE("backend: golden Triton kernels") {
  const bool update = std::getenv("OXYFUEL_UPDATE_GOLDEN") != nullptr;
  ops::intern_schemas();
  size_t seen = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(OXYFUEL_SOURCE_DIR) / "tests/golden/triton")) {
    if (entry.path().extension() != ".txt") continue;
    ++seen;
    CAPTURE(entry.path().string());
    std::stringstream content;
    content << std::ifstream(entry.path()).rdbuf();
    const std::string text = content.str();
    const size_t separator = text.find(kSeparator);
    REQUIRE(separator != std::string::npos);
    const std::string graph = text.substr(0, separator);
    const std::string actual = script_of(graph);
    if (update)
      std::ofstream(entry.path()) << graph << kSeparator << actual;
    else
      CHECK(text.substr(separator + kSeparator.size()) == actual);
  }
  CHECK(seen >= 25);
}
