#include <doctest/doctest.h>

#include "aten/tensor_meta.h"
#include "base/error.h"

using namespace oxy;

namespace {
TensorMeta strided(std::vector<Expr> sizes, std::vector<Expr> strides) {
  return {DType::Float32, {}, std::move(sizes), std::move(strides), 0};
}
}  // namespace

TEST_CASE("promotion") {
  CHECK(promote(DType::Bool, DType::UInt8) == DType::UInt8);
  CHECK(promote(DType::UInt8, DType::Int8) == DType::Int16);
  CHECK(promote(DType::UInt8, DType::Int64) == DType::Int64);
  CHECK(promote(DType::Int64, DType::Float16) == DType::Float16);
  CHECK(promote(DType::BFloat16, DType::Float16) == DType::Float32);
  CHECK(promote(DType::BFloat16, DType::Float64) == DType::Float64);
  CHECK(promote(DType::Float64, DType::Complex64) == DType::Complex128);
  CHECK(promote(DType::Float16, DType::Complex64) == DType::Complex64);
  CHECK(promote(DType::UInt16, DType::Float32) == DType::Float32);
  CHECK_THROWS_AS(promote(DType::UInt16, DType::Int32), Unsupported);
  CHECK_THROWS_AS(promote(DType::Bool, DType::UInt64), Unsupported);
}

TEST_CASE("dtype names round-trip") {
  for (int i = 0; i <= static_cast<int>(DType::Complex128); ++i) {
    DType dtype = static_cast<DType>(i);
    CHECK(dtype_from_name(name(dtype)) == dtype);
  }
  CHECK(!dtype_from_name("float").has_value());
}

TEST_CASE("layout predicates ignore dimensions of size one") {
  CHECK(contiguous_strides({2, 3, 4}) == std::vector<Expr>{12, 4, 1});
  CHECK(contiguous_strides({2, 0, 4}) == std::vector<Expr>{4, 4, 1});
  CHECK(channels_last_strides({2, 3, 4, 5}) == std::vector<Expr>{60, 1, 15, 3});
  CHECK(is_contiguous(strided({2, 1, 4}, {4, 99, 1})));
  CHECK(!is_contiguous(strided({2, 4}, {1, 2})));
  CHECK(is_non_overlapping_and_dense(strided({2, 4}, {1, 2})));
  CHECK(!is_non_overlapping_and_dense(strided({2, 4}, {8, 1})));
  CHECK(!is_non_overlapping_and_dense(strided({2, 4}, {0, 1})));
  CHECK(is_channels_last(strided({2, 3, 4, 5}, {60, 1, 15, 3})));
  CHECK(!is_channels_last(strided({2, 3, 4, 5}, {60, 20, 5, 1})));
}

TEST_CASE("symbolic sizes") {
  Expr n = Expr::variable("n", 9001, {2, 1000});
  TensorMeta meta = strided({n, 3}, contiguous_strides({n, 3}));
  CHECK(is_contiguous(meta));
  CHECK(element_count(meta) == n * 3);
  TensorMeta transposed = strided({3, n}, {1, 3});
  CHECK(!is_contiguous(transposed));
  CHECK(is_non_overlapping_and_dense(transposed));
}

TEST_CASE("symbolic sizes: a tensor is dense also where the order of its strides depends on the sizes") {
  const Expr rows = floordiv(Expr::variable("h", 9001, {1, 1000}) + 7, 8);
  const Expr columns = floordiv(Expr::variable("w", 9002, {1, 1000}) + 7, 8);
  const std::vector<Expr> sizes{Expr::variable("n", 9003, {1, 1000}), 64, rows, columns};
  CHECK(is_non_overlapping_and_dense(strided(sizes, channels_last_strides(sizes))));
  std::vector<Expr> with_gaps = channels_last_strides(sizes);
  with_gaps[2] = with_gaps[2] + 64;
  CHECK(!is_non_overlapping_and_dense(strided(sizes, with_gaps)));
  CHECK(!is_non_overlapping_and_dense(strided({rows, columns}, {1, 1})));
}

TEST_CASE("symbolic sizes: views that lie within a tensor that may be empty") {
  const Expr s = Expr::variable("s", 0, {0, 1024}), t = Expr::variable("t", 1, {0, 1024});
  const TensorMeta rows = strided({s, 8}, {8, 1});
  const auto part = [&](const Expr& first, const Expr& count, const Expr& step = 1) {
    TensorMeta view = strided({count, 8}, {step * 8, 1});
    view.storage_offset = first * 8;
    return view;
  };
  CHECK(lies_between(part(0, s), rows));
  CHECK(lies_between(part(0, sym::min(s, 2)), rows));
  CHECK(lies_between(part(sym::min(s, 2), sym::min(s, 4) - sym::min(s, 2)), rows));
  CHECK(lies_between(part(0, sym::ceildiv(s, 2), 2), rows));
  CHECK(lies_between(part(0, sym::min(s, sym::max(s - 1, 0))), rows));
  CHECK_FALSE(lies_between(part(0, 2), rows));
  CHECK_FALSE(lies_between(part(1, s), rows));
  CHECK_FALSE(lies_between(part(0, t), rows));
  CHECK_FALSE(lies_between(part(0, sym::ceildiv(s, 2) + 1, 2), rows));
}

TEST_CASE("text") {
  CHECK(str(strided({2, 3}, {3, 1})) == "float32[2, 3]");
  CHECK(str(strided({2, 3}, {1, 2})) == "float32[2, 3] strides [1, 2]");
  CHECK(str(Device{Device::Kind::Cuda, 0}) == "cuda:0");
}
