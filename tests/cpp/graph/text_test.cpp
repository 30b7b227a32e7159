#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <random>

#include "base/error.h"
#include "graph/graph.h"

using namespace oxy;
using namespace oxy::graph;

namespace {

const OperatorSchema* add_op() {
  return intern_schema("aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor");
}
const OperatorSchema* cat_op() {
  return intern_schema("aten::cat(Tensor[] tensors, int dim=0) -> Tensor");
}
const OperatorSchema* relu_in_place_op() {
  return intern_schema("aten::relu_(Tensor(a!) self) -> Tensor(a!)");
}
// Has a parameter of every kind that a literal can be written for.
const OperatorSchema* everything_op() {
  return intern_schema(
      "graph_test::everything(Tensor x, Tensor? y, Tensor[] xs, Tensor?[] ys, Scalar s, int i, int[] sizes, "
      "float f, float[] reals, bool b, bool[3] flags, str text, *, ScalarType? dtype=None, Device? "
      "device=None, "
      "MemoryFormat? memory_format=None, Generator? generator=None) -> (Tensor, Tensor, Tensor)");
}

TensorMeta contiguous(DType dtype, std::vector<Expr> sizes) {
  TensorMeta meta;
  meta.dtype = dtype;
  meta.strides = contiguous_strides(sizes);
  meta.sizes = std::move(sizes);
  return meta;
}

class Generator {
 public:
  explicit Generator(uint32_t seed) : random_(seed) {
    symbols_ = {Expr::variable("s0", 100, {2, 1024}), Expr::variable("batch", 7, {0, sym::kMaxInt})};
  }

  Graph graph() {
    Graph g;
    for (int i = pick(1, 4); i > 0; --i) g.add_input(meta());
    for (int i = pick(0, 2); i > 0; --i) g.add_constant(meta(), pick(0, 50));
    g.locations = {{"model.py:12 in forward"},
                   {"a\\b # \"x\"\nsecond.py:1 in <lambda>", 3},
                   {"  spaces ", kInBackwardPass}};
    for (int i = pick(0, 12); i > 0; --i) add_node(g);
    for (int i = pick(0, 4); i > 0; --i) add_output(g);
    for (size_t i = 0; i < g.inputs.size(); ++i)
      if (pick(0, 3) == 0) g.mutations.push_back({static_cast<int32_t>(i), value(g)});
    return g;
  }

 private:
  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  ValueId value(const Graph& g) { return ValueId(pick(0, static_cast<int>(g.values.size()) - 1)); }

  Expr size() {
    switch (pick(0, 5)) {
      case 0:
        return symbols_[0];
      case 1:
        return symbols_[1] * 3 + symbols_[0];
      case 2:
        return floordiv(symbols_[0] + 1, 2) * symbols_[1];
      case 3:
        return sym::max(mod(symbols_[0], 8), symbols_[1]);
      default:
        return pick(0, 64);
    }
  }

  std::vector<Expr> sizes() {
    std::vector<Expr> out;
    for (int i = pick(0, 4); i > 0; --i) out.push_back(size());
    return out;
  }

  TensorMeta meta() {
    TensorMeta m = contiguous(static_cast<DType>(pick(0, 14)), sizes());
    if (pick(0, 2) == 0)
      for (Expr& stride : m.strides) stride = size();
    if (pick(0, 4) == 0) m.storage_offset = size();
    if (pick(0, 4) == 0) m.device = {Device::Kind::Cuda, static_cast<int8_t>(pick(-1, 3))};
    return m;
  }

  double real() {
    switch (pick(0, 6)) {
      case 0:
        return std::numeric_limits<double>::infinity();
      case 1:
        return -std::numeric_limits<double>::infinity();
      case 2:
        return std::nan("");
      case 3:
        return pick(-3, 3);
      case 4:
        return std::numeric_limits<double>::denorm_min();
      default:
        return std::uniform_real_distribution<double>(-1e6, 1e6)(random_) * std::pow(10.0, pick(-30, 30));
    }
  }

  Argument scalar() {
    switch (pick(0, 4)) {
      case 0:
        return pick(0, 1) == 1;
      case 1:
        return std::complex<double>(real(), real());
      case 2:
        return Expr(pick(-100, 100));
      case 3:
        return size();
      default:
        return real();
    }
  }

  ValueList values(const Graph& g, bool optional) {
    ValueList list;
    for (int i = pick(0, 3); i > 0; --i)
      list.ids.push_back(optional && pick(0, 1) == 0 ? kNoValue : value(g));
    return list;
  }

  Argument maybe(Argument argument) { return pick(0, 2) == 0 ? Argument(None{}) : argument; }

  void add_node(Graph& g) {
    const LocationId location(pick(-1, 2));
    switch (pick(0, 2)) {
      case 0:
        g.add_node(add_op(),
                   {ValueRef{value(g)}, pick(0, 1) == 0 ? Argument(ValueRef{value(g)}) : scalar(), scalar()},
                   {meta()}, location);
        return;
      case 1:
        g.add_node(cat_op(), {values(g, false), Expr(pick(-2, 2))}, {meta()}, location);
        return;
      default:
        break;
    }
    std::vector<bool> flags;
    for (int i = 0; i < 3; ++i) flags.push_back(pick(0, 1) == 0);
    std::vector<double> reals;
    for (int i = pick(0, 3); i > 0; --i) reals.push_back(real());
    std::vector<Argument> args = {ValueRef{value(g)},
                                  maybe(ValueRef{value(g)}),
                                  values(g, false),
                                  values(g, true),
                                  scalar(),
                                  size(),
                                  sizes(),
                                  real(),
                                  reals,
                                  pick(0, 1) == 0,
                                  flags,
                                  std::string("a \"b\" \\ \n c"),
                                  maybe(static_cast<DType>(pick(0, 14))),
                                  maybe(Device{Device::Kind::Cuda, 1}),
                                  maybe(static_cast<MemoryFormat>(pick(0, 3))),
                                  None{}};
    NodeId node = g.add_node(everything_op(), std::move(args), {meta(), meta()}, location);
    g.nodes[node].outputs.edit().push_back(kNoValue);
  }

  void add_output(Graph& g) {
    Output out{value(g), OutputKind::Value, -1};
    if (pick(0, 3) == 0)
      out = {value(g), OutputKind::InputAlias, pick(0, static_cast<int>(g.inputs.size()) - 1)};
    else if (!g.outputs.empty() && pick(0, 3) == 0)
      out = {value(g), OutputKind::OutputAlias, pick(0, static_cast<int>(g.outputs.size()) - 1)};
    g.outputs.push_back(out);
  }

  std::mt19937 random_;
  std::vector<Expr> symbols_;
};

std::string error_of(std::string_view text) {
  try {
    parse(text);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

std::string broken_rule(const Graph& g, bool functional = true) {
  try {
    verify(g, functional);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "no error";
}

constexpr ValueId kInput(0), kSum(1);  // of small_graph()

Graph small_graph() {
  Graph g;
  ValueId x = g.add_input(contiguous(DType::Float32, {4, 8}));
  g.add_node(add_op(), {ValueRef{x}, Expr(1), Expr(1)}, {contiguous(DType::Float32, {4, 8})});
  g.outputs.push_back({kSum, OutputKind::Value, -1});
  return g;
}

}  // namespace

TEST_CASE("graph: generated graphs are legal and survive printing and parsing") {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    Graph g = Generator(seed).graph();
    CHECK_NOTHROW(verify(g, true));
    std::string text = print(g);
    INFO(text);
    Graph back = parse(text);
    CHECK(same(back, g));
    CHECK(print(back) == text);
  }
}

TEST_CASE("graph: the text reads as documented") {
  add_op();
  std::string text =
      "graph(%0 : float32[4, 8], %1 : float32[8]{strides=[2], offset=3, device=cuda:0}) {\n"
      "  %2 : float32[] = constant 0\n"
      "  %3 : float32[4, 8] = aten::add.Tensor(%0, %1, alpha=1)  # model.py:12 in forward\n"
      "  mutate input 0 = %3\n"
      "  return %3, alias(input 0, %3), alias(output 0, %2)\n"
      "}\n";
  Graph g = parse(text);
  CHECK(print(g) == text);
  CHECK(g.outputs.at(1).kind == OutputKind::InputAlias);
  CHECK(g.constants.at(0).handle == 0);
  CHECK(g.locations.front() == Location{"model.py:12 in forward"});
}

TEST_CASE("graph: arguments may be named, left out and commented") {
  add_op();
  Graph g = parse(
      "# a comment\n\ngraph(%0 : int64[]) {\n  # another\n  %1 : int64[] = aten::add.Tensor(other=%0, "
      "self=2)\n"
      "  return %1\n}");
  CHECK(g.nodes.front().args.at(0) == Argument(Expr(2)));
  CHECK(g.nodes.front().args.at(2) == Argument(Expr(1)));
}

TEST_CASE("graph: references to metadata remain valid while nodes are added") {
  add_op();
  Graph g = parse("graph(%0 : int64[7]) {\n  %1 : int64[7] = aten::add.Tensor(%0, 2, 1)\n  return %1\n}\n");
  const TensorMeta& first = g.meta(ValueId(0));
  for (int i = 0; i < 1000; ++i) {
    g.add_node(g.nodes.front().op, g.nodes.front().args, {first});
    CHECK(&first == &g.meta(ValueId(0)));
  }
}

TEST_CASE("graph: an empty graph") {
  Graph g = parse("graph() {\n  return\n}\n");
  CHECK(print(g) == "graph() {\n  return\n}\n");
}

TEST_CASE("graph: malformed text is an error with its place") {
  add_op();
  auto body = [](std::string_view line) {
    return fmt::format("graph(%0 : float32[2]) {{\n  {}\n  return %0\n}}\n", line);
  };
  CHECK(error_of("") == "line 1, column 1: expected 'graph'");
  CHECK(error_of("graph(%0 : float31[2]) {\n") == "line 1, column 19: unknown dtype 'float31'");
  CHECK(error_of(body("%1 : float32[2] = aten::nothing(%0)")) ==
        "line 2, column 21: unknown operator 'aten::nothing'");
  CHECK(error_of(body("%1 : float32[2] = aten::add.Tensor(%0, %5)")) ==
        "line 2, column 44: %5 is not defined before this");
  CHECK(error_of(body("%0 : float32[2] = aten::add.Tensor(%0, %0)")) ==
        "line 2, column 5: %0 is defined twice");
  CHECK(error_of(body("%1 : float32[q] = aten::add.Tensor(%0, %0)")) ==
        "line 2, column 17: unknown symbol 'q'");
  CHECK(error_of(body("%1 : float32[2] = aten::add.Tensor(%0)")).ends_with("missing argument 'other'"));
  CHECK(error_of(body("%1 : float32[2] = aten::add.Tensor(%0, %0, beta=1)"))
            .ends_with("aten::add.Tensor has no argument 'beta'"));
  CHECK(error_of(body("%1 : float32[2] = aten::add.Tensor(%0, %0, 1, 1)")).ends_with("takes 3 arguments"));
  CHECK(error_of(body("%1 : float32[2 // 0] = aten::add.Tensor(%0, %0)")).ends_with("division by zero"));
  CHECK(error_of("graph(%99999999 : float32[]) {\n  return\n}\n").ends_with("out of range"));
  CHECK(error_of("graph() {\n  return\n}\nmore").ends_with("expected the end of the text"));
  CHECK(error_of("graph(%0 : float32[" + std::string(100000, '(')).ends_with("nested too deeply"));
}

TEST_CASE("graph: every prefix of a legal text is an error, never a crash") {
  std::string text = print(Generator(3).graph());
  size_t end = text.find_last_of('}');
  for (size_t length = 0; length < end; ++length) CHECK_THROWS_AS(parse(text.substr(0, length)), UserError);
}

TEST_CASE("graph: the verifier names the broken rule") {
  CHECK(broken_rule(small_graph()) == "no error");

  Graph g = small_graph();
  g.nodes.front().args.edit()[0] = ValueRef{kSum};
  CHECK(broken_rule(g).find("%1 is used before it is defined") != std::string::npos);

  g = small_graph();
  g.nodes.front().args.edit().pop_back();
  CHECK(broken_rule(g).find("2 arguments instead of 3") != std::string::npos);

  g = small_graph();
  g.nodes.front().args.edit()[2] = std::string("one");
  CHECK(broken_rule(g).find("argument 'alpha' is of a kind") != std::string::npos);

  g = small_graph();
  g.nodes.front().outputs = {kInput};
  CHECK(broken_rule(g).find("%0 is defined twice") != std::string::npos);

  g = small_graph();
  g.values[kSum].node = NodeId(4);
  CHECK(broken_rule(g).find("names node 4 as its producer") != std::string::npos);

  g = small_graph();
  g.outputs[0] = {kSum, OutputKind::OutputAlias, 0};
  CHECK(broken_rule(g).find("not before it") != std::string::npos);

  g = small_graph();
  g.mutations = {{0, kSum}, {0, kSum}};
  CHECK(broken_rule(g).find("mutated twice") != std::string::npos);

  g = small_graph();
  g.nodes.front().outputs.edit().clear();
  CHECK(broken_rule(g).find("0 outputs instead of 1") != std::string::npos);

  g = small_graph();
  g.add_node(relu_in_place_op(), {ValueRef{kSum}}, {contiguous(DType::Float32, {4, 8})});
  CHECK(broken_rule(g, false) == "no error");
  CHECK(broken_rule(g, true).find("a functional graph mutates") != std::string::npos);
}
