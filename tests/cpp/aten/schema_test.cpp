#include <doctest/doctest.h>

#include "aten/opaque.h"
#include "aten/schema.h"
#include "base/error.h"

using namespace oxy;

TEST_CASE("a schema's arguments have kinds, defaults and positions") {
  const OperatorSchema* add =
      intern_schema("test::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor");
  CHECK(add->name == "test::add.Tensor");
  REQUIRE(add->arguments.size() == 3);
  CHECK(add->arguments[2].name == "alpha");
  CHECK(add->arguments[2].kind == ArgumentKind::Scalar);
  CHECK(add->arguments[2].kwarg_only);
  CHECK(!add->arguments[1].kwarg_only);
  CHECK(add->arguments[2].default_text == "1");
  REQUIRE(add->returns.size() == 1);
  CHECK(add->returns[0].kind == ArgumentKind::Tensor);
  CHECK(!add->is_mutating());
  CHECK(!add->is_view());
}

TEST_CASE("alias annotations say what is written and what is viewed") {
  const OperatorSchema* relu = intern_schema("test::relu_(Tensor(a!) self) -> Tensor(a!)");
  CHECK(relu->is_mutating());
  CHECK(!relu->is_view());
  CHECK(relu->arguments[0].alias_set == relu->returns[0].alias_set);
  const OperatorSchema* split =
      intern_schema("test::split(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]");
  CHECK(split->is_view());
  CHECK(split->returns[0].kind == ArgumentKind::TensorList);
  CHECK(split->returns[0].alias_set == split->arguments[0].alias_set);
  const OperatorSchema* out = intern_schema(
      "test::max.out(Tensor self, *, Tensor(a!) max, Tensor(b!) v) -> (Tensor(a!) values, Tensor(b!) "
      "indices)");
  CHECK(out->returns[0].alias_set != out->returns[1].alias_set);
  CHECK(out->returns[1].is_written);
  CHECK(intern_schema("test::foreach_(Tensor(a!)[] self) -> ()")->arguments[0].kind ==
        ArgumentKind::TensorList);
}

TEST_CASE("lists and optionals") {
  const OperatorSchema* op = intern_schema(
      "test::many(Tensor?[] a, SymInt[]? b, int[2] c=[0, 1], Scalar? d=None, ScalarType? e=None, Tensor? "
      "f={}, "
      "bool[3] g, float[]? h, str i=\"a, (b\", Generator? j=None, MemoryFormat k=contiguous_format, "
      "Tensor[]? l, "
      "Device m, Layout? n, Dict(str, Tensor) o, int[][] p) -> ()");
  using K = ArgumentKind;
  const std::pair<K, bool> expected[] = {{K::OptionalTensorList, false},
                                         {K::IntList, true},
                                         {K::IntList, false},
                                         {K::Scalar, true},
                                         {K::DType, true},
                                         {K::Tensor, true},
                                         {K::BoolList, false},
                                         {K::FloatList, true},
                                         {K::String, false},
                                         {K::Generator, true},
                                         {K::MemoryFormat, false},
                                         {K::TensorList, true},
                                         {K::Device, false},
                                         {K::Layout, true},
                                         {K::Other, false},
                                         {K::Other, false}};
  REQUIRE(op->arguments.size() == std::size(expected));
  for (size_t i = 0; i < std::size(expected); ++i) {
    CAPTURE(op->arguments[i].name);
    CHECK(op->arguments[i].kind == expected[i].first);
    CHECK(op->arguments[i].optional == expected[i].second);
  }
  CHECK(op->arguments[2].default_text == "[0, 1]");
  CHECK(op->arguments[8].default_text == "\"a, (b\"");
  CHECK(op->returns.empty());
  CHECK(op->is_random);
}

TEST_CASE("interning gives one pointer a name") {
  const OperatorSchema* first = intern_schema("test::once(Tensor self) -> Tensor");
  CHECK(intern_schema("test::once(Tensor self) -> Tensor") == first);
  CHECK(find_schema("test::once") == first);
  CHECK(find_schema("test::never") == nullptr);
  intern_schema("oxyfuel::once(Tensor self) -> Tensor");
  CHECK_THROWS_AS(intern_schema("oxyfuel::once(Tensor self, int dim) -> Tensor"), UserError);
}

TEST_CASE("operators of the program's may be declared anew") {
  const OperatorSchema* first = intern_schema("test::again(Tensor self) -> Tensor");
  CHECK(is_opaque(*first));
  CHECK_FALSE(is_opaque(*intern_schema("aten::again(Tensor self) -> Tensor")));
  const OperatorSchema* second = intern_schema("test::again(Tensor(a) self) -> Tensor(a)");
  CHECK(second != first);
  CHECK(find_schema("test::again") == second);
  CHECK(first->returns[0].alias_set < 0);
  CHECK(intern_schema("test::again(Tensor(a) self) -> Tensor(a)", true) != second);
}

TEST_CASE("malformed text is a user error with its column") {
  for (const char* text : {"", "add(Tensor a) -> Tensor", "test::a(Tensor", "test::a(Tensor x) Tensor",
                           "test::a(Tensor x=) -> Tensor", "test::a(Tensor(a! x) -> Tensor",
                           "test::a(Tensor x) -> Tensor rest more", "test::a(Tensor) -> Tensor"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(intern_schema(text), UserError);
  }
}
