// Decompositions and lowerings on symbols beside themselves on numbers: golden graphs with symbols for sizes
// and numbers, lowered once, are run with several sets of values. What the interpreter computes must be what
// it computes of the same graph that is lowered on these numbers.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "aten/strides_that_count.h"
#include "base/error.h"
#include "graph/sizes.h"
#include "loop/interpreter.h"
#include "loop/lowering.h"
#include "ops/shape_cases.h"
#include "ops/symbolic_calls.h"
#include "passes/simplification/decompose.h"
#include "passes/staging/bring_to_device.h"

using namespace oxy;
using loop::Array;
using testing::Values;
using testing::with_values;

namespace {

// Operators that become calls of eager's kernels on some symbols, though numbers have a kernel of ours.
struct WithoutKernel {
  std::string_view name;
  std::string_view reason;
};
constexpr std::array kWithoutKernel = {
    WithoutKernel{"aten::_adaptive_avg_pool2d", "the sizes of its windows may differ"},
    WithoutKernel{"aten::as_strided", "it may reach beyond the tensor"},
    WithoutKernel{"aten::clamp", "a small integer may not hold the bound"},
    WithoutKernel{"aten::cumprod", "a row alone may be long"},
    WithoutKernel{"aten::cumsum", "a row alone may be long"},
    WithoutKernel{"aten::div.Scalar_mode", "an integer divisor may be 0"},
    WithoutKernel{"aten::floor_divide.Scalar", "an integer divisor may be 0"},
    WithoutKernel{"aten::logcumsumexp", "a row alone may be long"},
    WithoutKernel{"aten::pixel_unshuffle", "its view is one where a size is 1 alone"},
    WithoutKernel{"aten::remainder.Scalar", "an integer divisor may be 0"},
};

constexpr int64_t kMaxElements = 4096;  // of a tensor: the interpreter is slow

// A graph over symbols, and what their values have to satisfy.
struct Symbolic {
  graph::Graph graph;
  sym::ShapeEnvironment environment;
  std::vector<sym::Demand> guards;
};

bool is_in_schema(const graph::Node& node, const ArgumentInfo& argument, std::string_view type) {
  const std::string_view text = ops::find(node.op->name)->schema;
  const std::string named = " " + argument.name;
  for (size_t at = text.find(named); at != text.npos; at = text.find(named, at + 1)) {
    const size_t behind = at + named.size();
    if (behind < text.size() && text[behind] != ',' && text[behind] != ')' && text[behind] != '=') continue;
    const size_t begin = text.find_last_of("(,", at == 0 ? 0 : at - 1) + 1;
    const size_t first = text.find_first_not_of(' ', begin);
    return text.substr(first).starts_with(type);
  }
  return false;
}

// Arguments may be symbols where the schema says so, and numbers beside tensors always.
class Replacer {
 public:
  Replacer(sym::ShapeEnvironment& environment, std::vector<Expr> sizes)
      : environment_(environment), sizes_(std::move(sizes)) {}

  void replace(graph::Node& node) {
    for (size_t i = 0; i < node.args.size(); ++i) {
      const ArgumentInfo& argument = node.op->arguments[i];
      graph::Argument& value = node.args.edit()[i];
      if (auto* list = std::get_if<std::vector<Expr>>(&value);
          list != nullptr && is_in_schema(node, argument, "SymInt"))
        for (Expr& e : *list) e = size_of(e);
      const bool is_number = argument.kind == ArgumentKind::Scalar || argument.kind == ArgumentKind::Tensor;
      if (auto* e = std::get_if<Expr>(&value);
          e != nullptr && (is_number || is_in_schema(node, argument, "SymInt")) && is_replaced(*e))
        *e = testing::new_symbol(environment_, sym::SymbolKind::Integer, e->constant());
    }
  }

 private:
  static bool is_replaced(const Expr& e) {
    return e.is_constant() && std::abs(e.constant()) >= 2 && std::abs(e.constant()) < 1000000;
  }

  // A size of an input, or the product of neighbours, which is that number at hand.
  Expr size_of(const Expr& e) const {
    if (!is_replaced(e)) return e;
    for (const Expr& size : sizes_)
      if (environment_.hint(size) == e.constant()) return size;
    for (size_t begin = 0; begin < sizes_.size(); ++begin) {
      Expr product = 1;
      for (size_t end = begin; end < sizes_.size(); ++end) {
        product = product * sizes_[end];
        if (environment_.hint(product) == e.constant()) return product;
      }
    }
    return e;
  }

  sym::ShapeEnvironment& environment_;
  std::vector<Expr> sizes_;
};

// Results by the shape rules of the nodes. Throws Unsupported.
void infer(graph::Graph& g, const ops::SizeQuestions* questions, const sym::ShapeEnvironment* environment) {
  const auto simplified = [&](TensorMeta meta) {
    if (environment == nullptr) return meta;
    for (Expr& size : meta.sizes) size = environment->simplify(size);
    for (Expr& stride : meta.strides) stride = environment->simplify(stride);
    meta.storage_offset = environment->simplify(meta.storage_offset);
    return meta;
  };
  for (const graph::Node& node : g.nodes) {
    std::map<graph::ValueId, TensorMeta> inputs;
    graph::for_each_input(node, [&](graph::ValueId id) { inputs[id] = simplified(g.meta(id)); });
    const std::function<const TensorMeta&(graph::ValueId)> meta_of =
        [&](graph::ValueId id) -> const TensorMeta& { return inputs.at(id); };
    const ops::OperatorEntry* entry = ops::find(node.op->name);
    if (entry == nullptr || !entry->shape) throw Unsupported("no rule");
    const std::vector<TensorMeta> metas =
        entry->shape(ops::ShapeContext(*node.op, node.args, meta_of, DType::Float32, false, questions));
    if (metas.size() != node.outputs.size()) throw Unsupported("another number of results");
    for (size_t k = 0; k < metas.size(); ++k)
      if (node.outputs[k] != graph::kNoValue) g.values[node.outputs[k]].meta = metas[k];
  }
}

// Nothing if a rule refuses the call or the graph has no number that may be a symbol.
std::optional<Symbolic> with_symbols(const graph::Graph& source) {
  Symbolic result{source, sym::ShapeEnvironment(), {}};
  const testing::Questions questions(result.environment);
  std::vector<Expr> sizes;
  for (const graph::ValueId id : source.inputs) {
    TensorMeta meta = testing::with_symbols(result.environment, result.graph.meta(id), 2);
    result.graph.values[id].meta = meta;
    sizes.insert(sizes.end(), meta.sizes.begin(), meta.sizes.end());
  }
  Replacer replacer(result.environment, sizes);
  for (graph::Node& node : result.graph.nodes) replacer.replace(node);
  if (result.environment.symbols().empty()) return std::nullopt;
  try {
    infer(result.graph, &questions, &result.environment);
  } catch (const Unsupported&) {
    return std::nullopt;
  }
  graph::map_expressions(result.graph, [&](const Expr& e) { return result.environment.simplify(e); });
  result.guards = result.environment.guards();
  return result;
}

graph::Graph with_numbers(const graph::Graph& symbolic, const Values& values) {
  graph::Graph g = symbolic;
  graph::map_expressions(g, [&](const Expr& e) { return with_values(e, values); });
  const graph::Graph said = g;
  infer(g, nullptr, nullptr);
  for (const graph::ValueId id : g.values.ids())
    check(with_strides_that_count(said.meta(id)) == with_strides_that_count(g.meta(id)),
          "the rules say something else of the numbers");
  return g;
}

std::set<std::string> extern_calls(const loop::Program& program) {
  std::set<std::string> names;
  for (const loop::Step& step : program.steps)
    if (const auto* call = std::get_if<loop::ExternCall>(&step)) names.insert(call->op->name);
  return names;
}

// Small numbers, of which integers are indices.
Array array_of(DType dtype, std::vector<int64_t> sizes, uint64_t seed) {
  Array array{dtype, std::move(sizes), {}, {}};
  int64_t count = 1;
  for (const int64_t size : array.sizes) count *= size;
  for (int64_t i = 0; i < count; ++i) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    const auto bits = static_cast<int64_t>(seed >> 40U);
    if (is_floating(dtype))
      array.floats.push_back(static_cast<double>(bits % 64) / 16 - 1.5);
    else
      array.ints.push_back(bits % 2);
  }
  return array;
}

struct Outcome {
  std::vector<Array> outputs;
  std::string error;  // of an index out of range
};

Outcome run(const graph::Graph& numbers, const loop::Program& program, const Values& values) {
  std::vector<Array> inputs;
  const auto sizes_of = [&](const std::vector<Expr>& sizes) {
    std::vector<int64_t> known;
    for (const Expr& size : sizes) known.push_back(with_values(size, values).constant());
    return known;
  };
  for (const graph::ValueId id : numbers.inputs)
    inputs.push_back(array_of(numbers.meta(id).dtype, sizes_of(numbers.meta(id).sizes), inputs.size() + 1));
  std::vector<Array> constants;
  for (const graph::Constant& constant : numbers.constants) {
    const auto handle = static_cast<size_t>(constant.handle);
    constants.resize(std::max(constants.size(), handle + 1));
    const TensorMeta& meta = numbers.meta(constant.value);
    constants[handle] = array_of(meta.dtype, sizes_of(meta.sizes), handle + 100);
  }
  loop::InterpreterOptions options;
  options.symbol = [&](int64_t id) { return std::optional(values.at(static_cast<size_t>(id))); };
  // Something that depends on the operator and its operands.
  options.call = [&](const loop::ExternCall& call, const std::vector<Array>& args) {
    uint64_t seed = call.args.size();
    for (const Array& arg : args)
      for (size_t i = 0; i < std::max(arg.floats.size(), arg.ints.size()); ++i)
        seed = seed * 31 + static_cast<uint64_t>(std::llround(std::abs(arg.number(i)) * 1024));
    std::vector<Array> results;
    for (const loop::BufferId id : call.outputs) {
      if (id == loop::kNoBuffer) {
        results.emplace_back();
        continue;
      }
      const loop::Buffer& buffer = program.buffers[id];
      results.push_back(array_of(buffer.dtype, sizes_of(buffer.sizes), ++seed));
    }
    return results;
  };
  try {
    return {loop::interpret(program, inputs, constants, options).outputs, ""};
  } catch (const UserError& error) {
    return {{}, error.what()};
  }
}

bool is_close(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= 1e-4 * std::abs(b) + 1e-5;
}

bool is_same(const Outcome& a, const Outcome& b) {
  if (a.error != b.error || a.outputs.size() != b.outputs.size()) return false;
  for (size_t k = 0; k < a.outputs.size(); ++k) {
    const Array& x = a.outputs[k];
    const Array& y = b.outputs[k];
    if (x.dtype != y.dtype || x.sizes != y.sizes || x.floats.size() != y.floats.size() ||
        x.ints.size() != y.ints.size())
      return false;
    for (size_t i = 0; i < std::max(x.floats.size(), x.ints.size()); ++i)
      if (!is_close(x.number(i), y.number(i))) return false;
  }
  return true;
}

bool is_small(const graph::Graph& g) {
  return std::ranges::all_of(g.values, [](const graph::Value& value) {
    const Expr count = element_count(*value.meta);
    return count.is_constant() && count.constant() <= kMaxElements;
  });
}

// Each size becomes another one, wherever it stands, and all of them do.
std::vector<Values> other_values(const Values& at_hand) {
  std::vector<int64_t> different = at_hand;
  std::ranges::sort(different);
  different.erase(std::ranges::unique(different).begin(), different.end());
  std::vector<Values> tried{at_hand};
  for (const int64_t size : different)
    for (const int64_t other : {int64_t{0}, int64_t{1}, size + 1, 2 * size}) {
      tried.push_back(at_hand);
      std::ranges::replace(tried.back(), size, other);
    }
  tried.push_back(at_hand);
  for (int64_t& value : tried.back()) value += 1;
  // Large ones as small ones in about the same ratio.
  for (const int64_t scale : {64, 32, 16, 8}) {
    tried.push_back(at_hand);
    for (int64_t& value : tried.back())
      value = value >= scale ? value / scale + 1 - value / scale % 2 : std::min<int64_t>(value, 3);
    tried.push_back(at_hand);
    for (int64_t& value : tried.back()) value = std::max<int64_t>(value / scale, std::min<int64_t>(value, 2));
  }
  std::ranges::sort(tried.begin() + 1, tried.end());
  tried.erase(std::unique(tried.begin() + 1, tried.end()), tried.end());
  return tried;
}

struct Report {
  int graphs = 0;
  int runs = 0;
  std::map<std::string, int> refused;         // by operator: no rule on symbols
  std::map<std::string, int> without_kernel;  // by operator: a kernel on numbers alone
  std::map<std::string, int> wrong;           // by operator

  void wrong_one(const std::string& name, const std::string& what, const Symbolic& symbolic) {
    if (++wrong[name] > 2) return;
    std::string guards;
    for (const sym::Demand& guard : symbolic.guards)
      guards += symbolic.environment.text(guard.condition) + "; ";
    MESSAGE(name, ": ", what, "\n", graph::print(symbolic.graph), "\n  guards: ", guards);
  }
};

void check_graph(const graph::Graph& source, Report& report) {
  const std::string name = source.nodes.empty() ? "" : source.nodes.begin()->op->name;
  const std::optional<Symbolic> symbolic = with_symbols(source);
  if (!symbolic) {
    ++report.refused[name];
    return;
  }
  ++report.graphs;
  loop::Program program;
  std::set<std::string> calls;
  try {
    const graph::Graph decomposed = passes::decompose(symbolic->graph);
    program = loop::lower(decomposed, {.has_scans = true});
    loop::verify(program);
    calls = extern_calls(program);
  } catch (const std::exception& error) {
    return report.wrong_one(name, error.what(), *symbolic);
  }
  const Values at_hand = testing::at_hand(symbolic->environment);
  for (const Values& values : other_values(at_hand)) {
    if (!testing::hold(symbolic->guards, values)) continue;
    try {
      const graph::Graph numbers = with_numbers(symbolic->graph, values);
      if (!is_small(numbers)) continue;
      const loop::Program expected = loop::lower(passes::decompose(numbers), {.has_scans = true});
      const std::set<std::string> expected_calls = extern_calls(expected);
      if (calls != expected_calls) {
        for (const std::string& call : calls)
          if (values == at_hand && !expected_calls.contains(call)) ++report.without_kernel[call];
        continue;
      }
      ++report.runs;
      if (!is_same(run(numbers, program, values), run(numbers, expected, values)))
        return report.wrong_one(name, fmt::format("other results for {}", fmt::join(values, ",")), *symbolic);
    } catch (const std::exception& error) {
      return report.wrong_one(name, fmt::format("{} for {}", error.what(), fmt::join(values, ",")),
                              *symbolic);
    }
  }
}

// The node alone.
graph::Graph graph_of(const graph::Graph& source, const graph::Node& node) {
  graph::Graph g;
  std::map<graph::ValueId, graph::ValueId> renamed;
  graph::Node copy = node;
  graph::rename_inputs(copy, [&](graph::ValueId id) {
    const auto [found, is_new] = renamed.try_emplace(id);
    if (is_new) found->second = g.add_input(source.meta(id));
    return found->second;
  });
  for (graph::ValueId& id : copy.outputs.edit()) {
    if (id == graph::kNoValue) continue;
    id = g.add_value(source.meta(id));
    g.values[id].node = g.nodes.next_id();
    g.outputs.push_back({id});
  }
  g.nodes.add(std::move(copy));
  return g;
}

std::string listed(const std::map<std::string, int>& counts) {
  std::string text;
  for (const auto& [name, count] : counts) text += fmt::format("{} {}, ", name, count);
  return text;
}

void expect_nothing_wrong(const Report& report) {
  for (const auto& [name, count] : report.wrong) FAIL_CHECK(name, ": ", count, " wrong");
  for (const auto& [name, count] : report.without_kernel)
    CHECK_MESSAGE(std::ranges::find(kWithoutKernel, name, &WithoutKernel::name) != kWithoutKernel.end(),
                  name);
  MESSAGE("graphs ", report.graphs, ", runs ", report.runs, "\n  refused: ", listed(report.refused),
          "\n  with a kernel on numbers alone: ", listed(report.without_kernel));
}

}  // namespace

TEST_CASE("lowerings on symbols compute what they compute on numbers") {
  Report report;
  for (const char* family :
       {"attention", "comparison", "convolution", "creation", "fourier", "indexing", "linear_algebra", "loss",
        "matmul", "normalization", "pointwise", "pooling", "random", "reductions", "views"}) {
    const graph::Graph g = testing::shape_cases(family);
    for (const graph::Node& node : g.nodes) check_graph(graph_of(g, node), report);
  }
  expect_nothing_wrong(report);
  for (const WithoutKernel& operation : kWithoutKernel)
    CHECK_MESSAGE(report.without_kernel.contains(std::string(operation.name)), operation.name,
                  " has a kernel: leave it out of the list");
  CHECK(report.runs > 20000);
}

TEST_CASE("decompositions on symbols compute what they compute on numbers") {
  ops::intern_schemas();
  Report report;
  std::ifstream file(fmt::format("{}/tests/golden/decompositions/cases.txt", OXYFUEL_SOURCE_DIR));
  REQUIRE(file.good());
  std::string text;
  for (std::string line; std::getline(file, line);) {
    if (line == "end") {
      check_graph(graph::parse(text), report);
      text.clear();
    } else if (!line.starts_with("input") && !line.starts_with("result")) {
      text += line + "\n";
    }
  }
  expect_nothing_wrong(report);
  CHECK(report.runs > 100);
}

namespace {

// The graphs that the texts of a folder have.
std::vector<graph::Graph> golden_graphs(const std::string& folder) {
  std::vector<graph::Graph> graphs;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".txt") paths.push_back(entry.path());
  std::ranges::sort(paths);
  for (const std::filesystem::path& path : paths) {
    std::ifstream file(path);
    std::string text;
    bool is_graph = false;
    bool is_expected = false;  // what a pass makes of the graph before it
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("operator ")) intern_schema(line.substr(9, line.find(" #") - 9));
      if (line.starts_with("symbol ")) break;  // it has symbols already
      if (line.starts_with("---")) is_expected = line == "--- expected";
      is_graph = is_graph || (line.starts_with("graph(") && !is_expected);
      if (is_graph) text += line + "\n";
      if (!is_graph || line != "}") continue;
      graphs.push_back(graph::parse(text));
      text.clear();
      is_graph = false;
    }
  }
  return graphs;
}

}  // namespace

TEST_CASE("golden graphs on symbols compute what they compute on numbers") {
  ops::intern_schemas();
  Report report;
  for (const char* folder : {"kernels", "triton", "passes"})
    for (const graph::Graph& g : golden_graphs(fmt::format("{}/tests/golden/{}", OXYFUEL_SOURCE_DIR, folder)))
      if (!passes::has_several_devices(g)) check_graph(g, report);  // the interpreter has one
  expect_nothing_wrong(report);
  CHECK(report.graphs > 50);
  CHECK(report.runs > 100);
}

TEST_CASE("numbers that are symbols are integers that the kernel is given at run time") {
  ops::intern_schemas();
  const graph::Graph g = graph::parse(R"(symbol s0: id 0 in [1, 100]
symbol s1: id 1 in [0, 50]
graph(%0: float32[s0], %1: int64[s0]) {
  %2: float32[s0] = aten::mul.Tensor(%0, s1)
  %3: float32[s0] = aten::add.Tensor(%2, %0, alpha=s1)
  %4: float32[s0] = aten::div.Tensor(%3, s0)
  %5: float32[3] = aten::full([3], s1, dtype=float32)
  %6: int64[s1] = aten::arange(s1)
  %7: float32[s0] = aten::clamp(%0, None, s1)
  %8: float32[s0] = aten::pow.Tensor_Scalar(%0, s1)
  %9: bool[s0] = aten::lt.Scalar(%1, s1)
  %10: int64[s0] = aten::sub.Tensor(%1, s1)
  %11: float32[s0] = aten::masked_fill.Scalar(%0, %9, s1)
  %12: float32[s0] = aten::where.self(%9, %0, s1)
  %13: float32[s0] = aten::linspace(0, s1, s0)
  %14: int64[s0] = aten::remainder.Scalar(%1, s0)
  %15: float32[s0] = aten::arange.start_step(0, s0, 1, dtype=float32)
  return %4, %5, %6, %7, %8, %10, %11, %12, %13, %14, %15
})");
  const loop::Program program = loop::lower(g);
  loop::verify(program);
  CHECK(extern_calls(program).empty());
  for (const Values& values : {Values{3, 2}, Values{1, 0}, Values{4, 5}}) {
    const auto n = static_cast<double>(values[0]);
    const auto m = static_cast<double>(values[1]);
    Array x{DType::Float32, {values[0]}, {}, {}};
    Array i{DType::Int64, {values[0]}, {}, {}};
    for (int64_t k = 0; k < values[0]; ++k) {
      x.floats.push_back(0.5 * static_cast<double>(k) - 0.75);
      i.ints.push_back(2 * k - 1);
    }
    loop::InterpreterOptions options;
    options.symbol = [&](int64_t id) { return std::optional(values.at(static_cast<size_t>(id))); };
    const std::vector<Array> out = loop::interpret(program, {x, i}, {}, options).outputs;
    REQUIRE(out[1].floats == std::vector<double>(3, m));
    REQUIRE(out[2].ints.size() == static_cast<size_t>(values[1]));
    for (size_t k = 0; k < out[2].ints.size(); ++k) CHECK(out[2].ints[k] == static_cast<int64_t>(k));
    for (size_t k = 0; k < x.floats.size(); ++k) {
      const double v = x.floats[k];
      const auto w = static_cast<double>(i.ints[k]);
      const auto is = [&](size_t output, double expected) {
        CAPTURE(output);
        CAPTURE(k);
        CHECK(out[output].number(k) == doctest::Approx(expected));
      };
      is(0, (v * m + v * m) / n);
      is(3, std::min(v, m));
      is(4, std::pow(v, m));
      is(5, w - m);
      is(6, w < m ? m : v);
      is(7, w < m ? v : m);
      is(8, values[0] == 1 ? 0 : m * static_cast<double>(k) / (n - 1));
      is(9, w - n * std::floor(w / n));
      is(10, static_cast<double>(k));
    }
  }
}
