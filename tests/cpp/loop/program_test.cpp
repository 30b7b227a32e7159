// Builders, views, the verifier and the interpreter of loop programs.
#include <doctest/doctest.h>

#include <random>

#include "base/error.h"
#include "loop/builder.h"
#include "loop/interpreter.h"
#include "loop/variables.h"
#include "loop/view.h"

using namespace oxy;
using namespace oxy::loop;

namespace {

constexpr BufferId kIn(0), kOut(1);  // of small_program()

// out[i] = a[i] + 1
Program small_program() {
  Program program;
  program.buffers = {
      {.name = "arg0", .sizes = {4}, .kind = BufferKind::Input, .source = 0, .strides = std::vector<Expr>{1}},
      {.name = "buf1", .sizes = {4}, .strides = std::vector<Expr>{1}}};
  Computation c;
  c.loops.push_back({loop_variable(0, 4), 4});
  Index index{c.loops[0].variable};
  BodyBuilder b;
  InstId value = (b.load(kIn, DType::Float32, index) + 1).id;
  c.body = b.take({&value});
  c.stores.push_back({kOut, index, value});
  program.steps.add(c);
  program.outputs.push_back({.view = {kOut, {4}, {1}, 0}});
  return program;
}

Computation& first(Program& program) {
  return std::get<Computation>(program.steps.front());
}

}  // namespace

TEST_CASE("loop: equal instructions are shared, useless ones dropped") {
  BodyBuilder b;
  Expr i = loop_variable(0, 8);
  Value x = b.load(kIn, DType::Float32, {i});
  Value y = b.load(kIn, DType::Float32, {i});
  CHECK(x.id == y.id);
  CHECK((x * 1.0).id == x.id);
  CHECK((x + 2).id == (y + 2).id);
  CHECK((x + 0.0).id != (x + -0.0).id);
  exp(x);
  InstId root = (x + 2).id;
  Body body = b.take({&root});
  CHECK(body.insts.size() == 3);
  CHECK(root == InstId(2));
  CHECK(b.size() == 0);
}

TEST_CASE("loop: under a mask, loads are masked and indices safe") {
  BodyBuilder b;
  Expr i = loop_variable(0, 8);
  Value mask = b.index(i) < 4.0;
  Value x = b.masked(mask, [&] { return b.load(kIn, DType::Float32, {i}); }, b.constant(7.0, DType::Float32));
  CHECK(b.inst(x).op == Op::Load);  // no select: the load itself gives the other value
  CHECK(b.inst(x).operands[0] == mask.id);
  Value always = b.constant(Scalar{true}, DType::Bool);
  Value plain = b.masked(always, [&] { return b.load(kIn, DType::Float32, {i}); }, x);
  CHECK(b.inst(plain).operands[0] == kNoInst);
}

TEST_CASE("loop: reshapes merge and split dimensions without division where they can") {
  std::vector<Expr> from{2, 3, 4};
  auto text = [&](const std::vector<Expr>& to) {
    std::string out;
    for (const Expr& e : reshape_index(from, to, view_index(to))) out += (out.empty() ? "" : ", ") + e.str();
    return out;
  };
  CHECK(text({6, 4}) == "d0 // 3, d0 % 3, d1");
  CHECK(text({2, 12}) == "d0, d1 // 4, d1 % 4");
  CHECK(text({2, 1, 3, 2, 2}) == "d0, d2, 2*d3 + d4");
  CHECK(text({1, 2, 3, 4, 1}) == "d1, d2, d3");

  // Any reshape keeps the row-major position.
  std::mt19937 random(3);
  std::vector<std::vector<int64_t>> shapes = {{24},      {2, 12},   {4, 6},  {3, 8},
                                              {2, 3, 4}, {4, 3, 2}, {1, 24}, {2, 2, 2, 3}};
  for (const auto& a : shapes)
    for (const auto& b : shapes) {
      std::vector<Expr> source(a.begin(), a.end());
      std::vector<Expr> view(b.begin(), b.end());
      Expr linear = ravel(reshape_index(source, view, view_index(view)), source);
      for (int64_t k = 0; k < 24; ++k) {
        int64_t rest = k;
        std::vector<int64_t> index(b.size());
        for (size_t d = b.size(); d-- > 0; rest /= b[d]) index[d] = rest % b[d];
        CHECK(sym::evaluate(
                  linear, [&](int64_t id) { return index[static_cast<size_t>(id - kViewVariables)]; }) == k);
      }
    }
  Expr s = Expr::variable("s", 1, {2, 100});
  Index symbolic = reshape_index({s, 4, 3}, {4 * s, 3}, view_index({4 * s, 3}));
  CHECK(symbolic[2] == view_index({4 * s, 3})[1]);
}

TEST_CASE("loop: affine views have strides, others none") {
  std::vector<Expr> to{6, 4};
  Index map = reshape_index({2, 3, 4}, to, view_index(to));
  auto dense = strided(map, to, {12, 4, 1});
  REQUIRE(dense);
  CHECK(dense->strides == std::vector<Expr>{4, 1});
  CHECK_FALSE(strided(map, to, {4, 8, 1}));
}

TEST_CASE("loop: the interpreter runs what the builder wrote") {
  Program program = small_program();
  verify(program);
  auto out = interpret(program, {{DType::Float32, {4}, {1, 2, 3, 4}, {}}}).outputs;
  CHECK(out[0].floats == std::vector<double>{2, 3, 4, 5});
  CHECK_THROWS_AS(interpret(program, {}), InternalError);
}

TEST_CASE("loop: the verifier names broken rules") {
  auto broken = [](const std::function<void(Program&)>& breakage) {
    Program program = small_program();
    breakage(program);
    CHECK_THROWS_AS(verify(program), InternalError);
  };
  broken([](Program& p) { first(p).body.insts[InstId(0)].buffer = BufferId(7); });
  broken([](Program& p) { first(p).body.insts[InstId(0)].buffer = kOut; });  // read before it is written
  broken([](Program& p) { first(p).body.insts[InstId(2)].operands[0] = InstId(2); });  // uses itself
  broken([](Program& p) { first(p).body.insts[InstId(1)].dtype = DType::Float64; });  // operands of two types
  broken([](Program& p) { first(p).body.indices.front().push_back(0); });             // index of another rank
  broken([](Program& p) { first(p).body.indices.front()[0] = loop_variable(3, 4); });  // not in scope
  broken([](Program& p) { first(p).stores[0].buffer = kIn; });                         // writes an input
  broken([](Program& p) { first(p).stores.clear(); });
  broken(
      [](Program& p) { first(p).body.insts[InstId(2)].op = Op::Scan; });  // which is a computation of its own
  broken([](Program& p) { first(p).kind = ReductionKind::RunningSum; });  // without a row
  broken([](Program& p) { first(p).kind = ReductionKind::Sum; });         // without loops
  broken([](Program& p) { p.buffers[kOut].strides.reset(); });            // an output of free layout
  broken([](Program& p) { p.buffers[kIn].strides.reset(); });
}
