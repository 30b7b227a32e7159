// Writes element programs: the ops handler that lowering rules call.
//
// A Value is an element in a Body under construction; arithmetic on Values appends instructions. Elements of
// float16 and bfloat16 are computed in float32: load() widens them, and whoever stores narrows
// (BodyBuilder::store). Equal instructions are shared and constants are folded where that is exact.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "loop/program.h"

namespace oxy::loop {

using Index = std::vector<Expr>;  // one expression a dimension

class BodyBuilder;

struct Value {
  BodyBuilder* builder = nullptr;
  InstId id;
  DType dtype = DType::Float32;
};

// The type in which elements of `dtype` are computed.
constexpr DType compute_dtype(DType dtype) {
  return dtype == DType::Float16 || dtype == DType::BFloat16 ? DType::Float32 : dtype;
}

class BodyBuilder {
 public:
  // `location`: the user's line that asks for the body.
  explicit BodyBuilder(graph::LocationId location = {}) : location_(location) {}
  BodyBuilder(const BodyBuilder&) = delete;
  BodyBuilder& operator=(const BodyBuilder&) = delete;

  // The element at `index` of a buffer of elements `dtype`, as compute_dtype(dtype). Inside masked(): zero
  // where the mask is false.
  Value load(BufferId buffer, DType dtype, Index index);
  Value constant(Scalar value, DType dtype);
  Value constant(double value, DType dtype) { return constant(Scalar{value}, dtype); }
  Value index(const Expr& e, DType dtype = DType::Int64);  // the value of an expression
  Value cast(Value x, DType dtype);
  Value bitcast(Value x, DType dtype);
  Value unary(Op op, Value x);            // IsNan, IsInf give Bool, the others x's type
  Value binary(Op op, Value a, Value b);  // of equal types; comparisons give Bool
  Value where(Value condition, Value a, Value b);
  Value fma(Value a, Value b, Value c);
  Value philox(Value seed, Value counter, Value position);
  // x rounded to `dtype` (float16 or bfloat16; others are left alone), in x's type.
  Value round_to(Value x, DType dtype);
  // `x` (an integer) as an index into a dimension of `size` elements. Negative values count from the end if
  // `wrap`; values out of range make the kernel report an index error if `checked`.
  Expr bind_index(Value x, const Expr& size, bool checked, bool wrap = true);
  // body() where `mask` is true, evaluated without touching memory elsewhere; `otherwise` there.
  Value masked(Value mask, const std::function<Value()>& body, Value otherwise);
  // x converted to a buffer's element type.
  Value store(Value x, DType dtype) { return cast(x, dtype); }

  size_t size() const { return body_.insts.size(); }
  const Inst& inst(Value x) const { return body_.insts.at(x.id); }
  // body(), or what it gave before for the same source, index and mask: an element used twice is written
  // once.
  Value element(const void* source, const Index& index, const std::function<Value()>& body);
  // body(), asked for by another line of the user's.
  Value at(graph::LocationId location, const std::function<Value()>& body);
  // body(), an operator whose result eager rounds to `dtype` (Inst::rounded_to).
  Value rounded_to(DType dtype, const std::function<Value()>& body);
  // Hands the body over without the instructions that nobody needs: neither the roots (which are renumbered),
  // nor the bound variables in `used`, nor a checked index. The builder is empty afterwards.
  Body take(const std::vector<InstId*>& roots, std::span<const Expr> used = {});

 private:
  Value append(Inst inst);
  IndexId add_index(Index index);
  bool is_zero(InstId id) const;
  bool is_zero_where_false(InstId id, InstId mask) const;

  Body body_;
  InstId mask_;
  graph::LocationId location_;
  std::optional<DType> rounded_to_;
  int64_t bound_ = 0;
  std::unordered_multimap<size_t, InstId> known_insts_;
  std::unordered_multimap<size_t, IndexId> known_indices_;
  struct Element {
    const void* source;
    InstId mask;
    Index index;
    Value value;
  };
  std::unordered_multimap<size_t, Element> known_elements_;
};

Value operator+(Value a, Value b);
Value operator-(Value a, Value b);
Value operator*(Value a, Value b);
Value operator/(Value a, Value b);  // floating division
Value operator-(Value a);
Value operator+(Value a, double b);
Value operator-(Value a, double b);
Value operator-(double a, Value b);
Value operator*(Value a, double b);
Value operator/(Value a, double b);
Value operator<(Value a, Value b);
Value operator<=(Value a, Value b);
Value operator>(Value a, Value b);
Value operator>=(Value a, Value b);
Value operator==(Value a, Value b);
Value operator!=(Value a, Value b);
Value operator<(Value a, double b);
Value operator<=(Value a, double b);
Value operator>(Value a, double b);
Value operator>=(Value a, double b);
Value operator&(Value a, Value b);
Value operator|(Value a, Value b);
Value operator!(Value a);
Value exp(Value x);
Value log(Value x);
Value sqrt(Value x);
Value tanh(Value x);
Value sigmoid(Value x);
Value abs(Value x);
Value minimum(Value a, Value b);
Value maximum(Value a, Value b);
Value minimum(Value a, double b);
Value maximum(Value a, double b);
Value where(Value condition, Value a, Value b);
Value as_bool(Value x);  // x != 0

std::string_view op_name(Op op);  // "load", "truncdiv"
int operand_count(Op op);         // Load: 0, its optional operands not counted
bool is_comparison(Op op);

}  // namespace oxy::loop
