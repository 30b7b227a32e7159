// oxyfuel_triton_scripts GRAPHS FOLDER [SEED | early]: for each graph in the file GRAPHS, which lines "----"
// divide, the plan for a GPU as FOLDER/<number>.py (backend/cuda/print/plan_script.h), and as
// FOLDER/<number>.plan. Prints the number of launches of each. A graph that cannot be compiled has a file
// <number>.error with the reason instead. With a seed, each kernel has one of the block shapes that are tried
// on a device (backend/cuda/tune), by chance. With "early", kernels start early (EarlyStart).
#include <fmt/format.h>

#include <fstream>
#include <random>
#include <sstream>

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/print/plan_script.h"
#include "backend/shared/schedule.h"
#include "base/error.h"
#include "loop/lowering.h"
#include "ops/core/registry.h"
#include "passes/pipeline/pipeline.h"

using namespace oxy;

namespace {

constexpr std::string_view kSeparator = "----\n";

std::unique_ptr<backend::Backend> backend_of(const std::string& option) {
  using namespace backend::cuda;
  if (option.empty()) return make_backend();
  if (option == "early") return make_printer(std::nullopt, EarlyStart::Yes);
  const auto random = std::make_shared<std::mt19937>(std::stoul(option));
  const auto any_of = [random](auto trials, auto choices) {
    std::vector<size_t> chosen;
    for (const auto& trial : trials) chosen.push_back((*random)() % choices(trial).size());
    return chosen;
  };
  return make_printer(Choosers{
      .shapes = [any_of](auto trials) { return any_of(trials, [](const Trial& t) { return t.candidates; }); },
      .ways = [any_of](auto trials) { return any_of(trials, [](const WaysTrial& t) { return t.ways; }); }});
}

plan::Plan plan_of(const std::string& text, const backend::Backend& backend) {
  passes::Options options;
  options.generates_depthwise_convolutions = [](DType) { return true; };
  loop::Program program =
      loop::lower(passes::run_passes(graph::parse(text), options), backend.lowering_options());
  loop::verify(program);
  plan::Plan plan = backend::schedule(std::move(program), backend, {.parallelism = 132, .tune = true});
  plan::verify(plan);
  fmt::print("{}\n", plan.steps.size());
  return plan;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) return 2;
  const auto backend = backend_of(argc == 4 ? argv[3] : "");
  std::stringstream content;
  content << std::ifstream(argv[1]).rdbuf();
  const std::string text = content.str();
  ops::intern_schemas();
  int number = 0;
  for (size_t begin = 0; begin < text.size(); ++number) {
    const size_t end = std::min(text.find(kSeparator, begin), text.size());
    const std::string file = fmt::format("{}/{}", argv[2], number);
    try {
      const plan::Plan plan = plan_of(text.substr(begin, end - begin), *backend);
      std::ofstream(file + ".py") << backend::cuda::plan_script(plan);
      std::ofstream(file + ".plan") << plan::print(plan);
    } catch (const std::exception& error) {
      fmt::print("0\n");
      std::ofstream(file + ".error") << error.what();
    }
    begin = end + kSeparator.size();
  }
  return 0;
}
