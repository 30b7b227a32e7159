// tests/golden/passes/*.txt: each file is one or more cases of
//
//   pass NAME
//   operator SCHEMA          any number: interned first; "# random" behind it: draws from a generator
//   --- input
//   graph(...) {...}
//   --- expected
//   graph(...) {...}
//
// OXYFUEL_UPDATE_GOLDEN=1 writes what the passes give into the files.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "aten/operators.h"
#include "ops/core/registry.h"
#include "passes/pipeline/pipeline.h"
#include "passes/simplification/dead_code.h"

using namespace oxy;
using namespace oxy::passes;

namespace {

namespace fs = std::filesystem;

// Handles from 100 on, in output order.
std::optional<std::vector<int32_t>> number_results(const graph::Graph& constant_part) {
  graph::verify(constant_part, true);
  std::vector<int32_t> handles;
  for (size_t i = 0; i < constant_part.outputs.size(); ++i) handles.push_back(100 + static_cast<int32_t>(i));
  return handles;
}

const OperatorSchema* attention_operator() {
  return ops::schema_of(*ops::find("aten::_scaled_dot_product_flash_attention_for_cpu"));
}

// Everything that the target may refuse is done.
const Options& permissive_options() {
  static const Options options = [] {
    Options result;
    const FusesEpilogue fuses = [](std::string_view, bool) { return true; };
    result.evaluate_constants = number_results;
    result.keep_size_constants = number_results;
    result.linear = {[](const LinearSite&) { return true; }, fuses};
    result.convolution = {[](const ConvolutionSite&) { return true; }, fuses};
    result.choose_layout = [](const ConvolutionSite&) { return ConvolutionLayout::ChannelsLast; };
    result.separates_bias = true;
    result.generates_vector_products = [](DType dtype) { return dtype != DType::Float64; };
    result.generates_depthwise_convolutions = [](DType dtype) { return dtype != DType::Float64; };
    result.widens_products = [](DType dtype) { return dtype == DType::BFloat16; };
    result.product_applies_activation = [](std::string_view activation, DType) {
      return activation == "relu" || activation == "gelu_tanh";
    };
    // A GPU's operators for heads that only its cases have.
    result.choose_attention = [](const AttentionSite& site) {
      constexpr int64_t kWidthOfGpu = 64;
      if (site.width != kWidthOfGpu) return AttentionKernel{attention_operator(), true, true};
      return AttentionKernel{.op = site.is_masked ? op::cudnn_attention() : op::flash_attention(),
                             .alignment = 8};
    };
    result.products = {[](DType dtype) { return dtype == DType::BFloat16 ? 8 : 1; },
                       [](const ProductSite&) { return true; }};
    result.dropout_threads = [](DType dtype, Device) {
      return std::optional(
          DropoutThreads{.width = dtype == DType::Float32 ? 4 : 8, .threads = 1024, .block = 256});
    };
    return result;
  }();
  return options;
}

using RunPass = std::function<graph::Graph(const graph::Graph&)>;

// Nothing where there is no pass of that name.
RunPass pass_named(std::string_view name) {
  const auto passes = all_passes();
  const auto found = std::ranges::find_if(passes, [&](const Pass* pass) { return pass->name() == name; });
  if (found == passes.end()) return nullptr;
  return [pass = *found](const graph::Graph& graph) {
    return pass->run(graph, PassContext{permissive_options(), {}});
  };
}

struct Case {
  std::string head;  // everything before "--- input"
  std::string pass, input, expected;
};

void intern_line(std::string_view schema) {
  constexpr std::string_view kRandom = " # random";
  bool is_random = schema.ends_with(kRandom);
  if (is_random) schema.remove_suffix(kRandom.size());
  intern_schema(schema, is_random);
}

std::vector<Case> read_cases(const fs::path& path) {
  std::ifstream file(path);
  std::vector<Case> cases;
  std::string* part = nullptr;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("pass ")) {
      cases.emplace_back();
      cases.back().pass = line.substr(5);
      part = &cases.back().head;
    }
    if (part == nullptr) continue;
    if (line == "--- input") {
      part = &cases.back().input;
    } else if (line == "--- expected") {
      part = &cases.back().expected;
    } else {
      if (line.starts_with("operator ")) intern_line(line.substr(9));
      *part += line + "\n";
    }
  }
  return cases;
}

void write_cases(const fs::path& path, const std::vector<Case>& cases) {
  std::ofstream file(path);
  for (const Case& c : cases) file << c.head << "--- input\n" << c.input << "--- expected\n" << c.expected;
}

std::string trimmed(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

void intern_built_operators() {
  op::view(), op::permute(), op::slice(), op::select(), op::clone(), op::to_copy(), op::add(), op::sub();
  op::mul(), op::vector_product(), op::rsqrt(), op::neg(), op::cat(), op::full(), op::pack_linear(),
      op::packed_linear();
  op::pack_convolution(), op::packed_convolution(), op::depthwise_convolution(), op::philox_states(),
      op::philox_mask(), op::scale_kept();
}

}  // namespace

TEST_CASE("passes: each has a golden file") {
  for (const Pass* pass : all_passes()) {
    CAPTURE(pass->stage);
    const fs::path path =
        fs::path(OXYFUEL_SOURCE_DIR) / "tests/golden/passes" / (std::string(pass->name()) + ".txt");
    REQUIRE(fs::exists(path));
    const std::vector<Case> cases = read_cases(path);
    CHECK(std::ranges::any_of(cases, [&](const Case& c) { return c.pass == pass->name(); }));
  }
}

TEST_CASE("passes: golden files") {
  intern_built_operators();
  const bool update = std::getenv("OXYFUEL_UPDATE_GOLDEN") != nullptr;
  int count = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(OXYFUEL_SOURCE_DIR) / "tests/golden/passes")) {
    if (entry.path().extension() != ".txt") continue;
    std::vector<Case> cases = read_cases(entry.path());
    REQUIRE_MESSAGE(!cases.empty(), entry.path().string());
    for (Case& c : cases) {
      CAPTURE(entry.path().string());
      CAPTURE(c.head);
      const RunPass pass = pass_named(c.pass);
      REQUIRE(pass);
      graph::Graph input = graph::parse(c.input);
      graph::verify(input, true);
      graph::Graph result = pass(input);
      CHECK_NOTHROW(graph::verify(result, true));
      std::string text = graph::print(result);
      if (update)
        c.expected = text + "\n";
      else
        CHECK(text == trimmed(c.expected) + "\n");
      // A pass that has run has nothing left to do.
      CHECK(graph::print(remove_dead_code(pass(remove_dead_code(result)))) ==
            graph::print(remove_dead_code(result)));
      ++count;
    }
    if (update) write_cases(entry.path(), cases);
  }
  CHECK(count > 20);
}
