#include "loop/builder.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <ranges>
#include <utility>

#include "base/error.h"
#include "loop/variables.h"

namespace oxy::loop {

namespace {

struct OpInfo {
  Op op;
  std::string_view name;
  int operands;
};

constexpr auto kOps = std::to_array<OpInfo>({
    {Op::Load, "load", 0},
    {Op::Constant, "constant", 0},
    {Op::Index, "index", 0},
    {Op::Cast, "cast", 1},
    {Op::Bitcast, "bitcast", 1},
    {Op::Neg, "neg", 1},
    {Op::Abs, "abs", 1},
    {Op::Sign, "sign", 1},
    {Op::Exp, "exp", 1},
    {Op::Exp2, "exp2", 1},
    {Op::Expm1, "expm1", 1},
    {Op::Log, "log", 1},
    {Op::Log2, "log2", 1},
    {Op::Log10, "log10", 1},
    {Op::Log1p, "log1p", 1},
    {Op::Sqrt, "sqrt", 1},
    {Op::Rsqrt, "rsqrt", 1},
    {Op::Reciprocal, "reciprocal", 1},
    {Op::Sin, "sin", 1},
    {Op::Cos, "cos", 1},
    {Op::Tan, "tan", 1},
    {Op::Asin, "asin", 1},
    {Op::Acos, "acos", 1},
    {Op::Atan, "atan", 1},
    {Op::Sinh, "sinh", 1},
    {Op::Cosh, "cosh", 1},
    {Op::Tanh, "tanh", 1},
    {Op::Asinh, "asinh", 1},
    {Op::Acosh, "acosh", 1},
    {Op::Atanh, "atanh", 1},
    {Op::Sigmoid, "sigmoid", 1},
    {Op::NormalCdf, "normal_cdf", 1},
    {Op::Erf, "erf", 1},
    {Op::Erfc, "erfc", 1},
    {Op::Floor, "floor", 1},
    {Op::Ceil, "ceil", 1},
    {Op::Trunc, "trunc", 1},
    {Op::Round, "round", 1},
    {Op::IsNan, "isnan", 1},
    {Op::IsInf, "isinf", 1},
    {Op::Not, "not", 1},
    {Op::Add, "add", 2},
    {Op::Sub, "sub", 2},
    {Op::Mul, "mul", 2},
    {Op::Div, "div", 2},
    {Op::FloorDiv, "floordiv", 2},
    {Op::TruncDiv, "truncdiv", 2},
    {Op::Mod, "mod", 2},
    {Op::Fmod, "fmod", 2},
    {Op::Pow, "pow", 2},
    {Op::Atan2, "atan2", 2},
    {Op::Minimum, "minimum", 2},
    {Op::Maximum, "maximum", 2},
    {Op::BitAnd, "and", 2},
    {Op::BitOr, "or", 2},
    {Op::BitXor, "xor", 2},
    {Op::ShiftLeft, "shl", 2},
    {Op::ShiftRight, "shr", 2},
    {Op::Eq, "eq", 2},
    {Op::Ne, "ne", 2},
    {Op::Lt, "lt", 2},
    {Op::Le, "le", 2},
    {Op::Gt, "gt", 2},
    {Op::Ge, "ge", 2},
    {Op::Where, "where", 3},
    {Op::Fma, "fma", 3},
    {Op::Philox, "philox", 3},
    {Op::BindIndex, "bind", 1},
    {Op::Scan, "scan", 1},
});

constexpr bool in_order() {
  for (size_t i = 0; i < kOps.size(); ++i)
    if (static_cast<size_t>(kOps[i].op) != i) return false;
  return true;
}
static_assert(in_order(), "kOps has one row an Op, in the order of the enumeration");

size_t combine(size_t seed, size_t value) {
  return (seed ^ (value + 0x9E3779B97F4A7C15ull + (seed << 6) + (seed >> 2))) * 0xD6E8FEB86659FD93ull;
}

size_t hash_of(const Inst& inst) {
  size_t h = combine(static_cast<size_t>(inst.op), static_cast<size_t>(inst.dtype));
  for (InstId operand : inst.operands) h = combine(h, std::hash<InstId>()(operand));
  h = combine(h, std::hash<BufferId>()(inst.buffer));
  h = combine(h, std::hash<IndexId>()(inst.index));
  return std::visit([&](auto v) { return combine(h, std::hash<decltype(v)>()(v)); }, inst.constant.value);
}

// Equal, and with equal bits where the constant is a floating number (0.0 and -0.0 differ, a NaN is itself).
bool same(Inst a, const Inst& b) {
  if (const double* x = std::get_if<double>(&a.constant.value)) {
    const double* y = std::get_if<double>(&b.constant.value);
    if (y == nullptr || std::bit_cast<uint64_t>(*x) != std::bit_cast<uint64_t>(*y)) return false;
    a.constant = b.constant;
  }
  a.variable = b.variable;
  return a == b;
}

Scalar converted(Scalar value, DType dtype) {
  return std::visit(
      [&](auto v) -> Scalar {
        if (dtype == DType::Bool) return {v != decltype(v){}};
        if (is_floating(dtype)) return {static_cast<double>(v)};
        if constexpr (std::is_same_v<decltype(v), double>)
          if (!(v > -9.2e18 && v < 9.2e18)) return {v != v ? int64_t{0} : v > 0 ? INT64_MAX : INT64_MIN};
        return {static_cast<int64_t>(v)};
      },
      value.value);
}

}  // namespace

std::string_view op_name(Op op) {
  return kOps.at(static_cast<size_t>(op)).name;
}
int operand_count(Op op) {
  return kOps.at(static_cast<size_t>(op)).operands;
}
bool is_comparison(Op op) {
  return op >= Op::Eq && op <= Op::Ge;
}

Expr index_variable(int64_t family, int64_t position, const Expr& extent) {
  char letter = family == kLoopVariables        ? 'i'
                : family == kReductionVariables ? 'r'
                : family == kBoundVariables     ? 't'
                                                : 'd';
  int64_t high = extent.range().high;
  if (high < sym::kMaxInt) high = std::max<int64_t>(high - 1, 0);
  return Expr::variable(fmt::format("{}{}", letter, position), family + position, {0, high}, extent);
}

Value BodyBuilder::append(Inst inst) {
  size_t hash = hash_of(inst);
  auto [begin, end] = known_insts_.equal_range(hash);
  for (auto it = begin; it != end; ++it)
    if (const Inst& known = body_.insts[it->second]; same(inst, known))
      return {this, it->second, known.dtype};
  if (inst.op == Op::BindIndex) inst.variable = kBoundVariables + bound_++;
  DType dtype = inst.dtype;
  const InstId id = body_.insts.add(inst);
  known_insts_.emplace(hash, id);
  return {this, id, dtype};
}

IndexId BodyBuilder::add_index(Index index) {
  size_t hash = index.size();
  for (const Expr& e : index) hash = combine(hash, e.hash());
  auto [begin, end] = known_indices_.equal_range(hash);
  for (auto it = begin; it != end; ++it)
    if (body_.indices[it->second] == index) return it->second;
  const IndexId id = body_.indices.add(std::move(index));
  known_indices_.emplace(hash, id);
  return id;
}

Value BodyBuilder::load(BufferId buffer, DType dtype, Index index) {
  Inst inst{.op = Op::Load, .dtype = dtype, .buffer = buffer, .index = add_index(std::move(index))};
  if (mask_ != kNoInst) {
    inst.operands[0] = mask_;
    inst.operands[1] = constant(Scalar{}, dtype).id;
  }
  return cast(append(inst), compute_dtype(dtype));
}

Value BodyBuilder::constant(Scalar value, DType dtype) {
  return append({.op = Op::Constant, .dtype = dtype, .constant = converted(value, dtype)});
}

Value BodyBuilder::index(const Expr& e, DType dtype) {
  if (auto c = e.as_constant()) return constant(Scalar{*c}, dtype);
  DType integer = is_integral(dtype) ? dtype : DType::Int64;
  return cast(append({.op = Op::Index, .dtype = integer, .index = add_index({e})}), dtype);
}

Value BodyBuilder::cast(Value x, DType dtype) {
  if (x.dtype == dtype) return x;
  const Inst& source = inst(x);
  if (source.op == Op::Cast)  // back to the type that all of these elements have
    if (const InstId before = source.operands[0]; body_.insts[before].dtype == dtype && is_floating(dtype) &&
                                                  is_floating(x.dtype) &&
                                                  item_size(x.dtype) > item_size(dtype))
      return {this, before, dtype};
  if (source.op == Op::Constant && dtype != DType::Float16 && dtype != DType::BFloat16) {
    double as_double = std::visit([](auto v) { return static_cast<double>(v); }, source.constant.value);
    bool wide = dtype == DType::Int32 || dtype == DType::Int64;
    bool exact =
        !is_integral(dtype) || (wide ? std::abs(as_double) < 2e9 : as_double >= 0 && as_double <= 127);
    if (exact)
      return constant(dtype == DType::Float32 ? Scalar{static_cast<double>(static_cast<float>(as_double))}
                                              : source.constant,
                      dtype);
  }
  return append({.op = Op::Cast, .dtype = dtype, .operands = {x.id, kNoInst, kNoInst}});
}

Value BodyBuilder::bitcast(Value x, DType dtype) {
  if (x.dtype == dtype) return x;
  return append({.op = Op::Bitcast, .dtype = dtype, .operands = {x.id, kNoInst, kNoInst}});
}

Value BodyBuilder::unary(Op op, Value x) {
  if (const Inst& source = inst(x); source.op == Op::Constant && op == Op::Neg && is_floating(x.dtype))
    if (const double* number = std::get_if<double>(&source.constant.value))
      return constant(-*number, x.dtype);
  DType dtype = op == Op::IsNan || op == Op::IsInf ? DType::Bool : x.dtype;
  Inst inst{.op = op, .dtype = dtype, .operands = {x.id, kNoInst, kNoInst}};
  const bool has_forms = op == Op::Tanh || op == Op::NormalCdf || op == Op::Erf;
  if (has_forms && dtype == DType::Float32) inst.rounded_to = rounded_to_;
  return append(inst);
}

Value BodyBuilder::binary(Op op, Value a, Value b) {
  check(a.dtype == b.dtype,
        fmt::format("operands of {} differ in type: {} and {}", op_name(op), name(a.dtype), name(b.dtype)));
  auto is = [&](Value v, double c) {
    const Inst& i = inst(v);
    return i.op == Op::Constant &&
           std::visit([c](auto x) { return static_cast<double>(x) == c; }, i.constant.value);
  };
  if (op == Op::Mul && is(b, 1)) return a;
  if (op == Op::Mul && is(a, 1)) return b;
  if (op == Op::Div && is(b, 1)) return a;
  DType dtype = is_comparison(op) ? DType::Bool : a.dtype;
  return append({.op = op, .dtype = dtype, .operands = {a.id, b.id, kNoInst}});
}

Value BodyBuilder::where(Value condition, Value a, Value b) {
  check(condition.dtype == DType::Bool && a.dtype == b.dtype,
        "where needs a Bool and two values of one type");
  if (const Inst& c = inst(condition); c.op == Op::Constant) return std::get<bool>(c.constant.value) ? a : b;
  if (a.id == b.id) return a;
  return append({.op = Op::Where, .dtype = a.dtype, .operands = {condition.id, a.id, b.id}});
}

Value BodyBuilder::fma(Value a, Value b, Value c) {
  check(a.dtype == b.dtype && a.dtype == c.dtype, "fma needs three values of one type");
  return append({.op = Op::Fma, .dtype = a.dtype, .operands = {a.id, b.id, c.id}});
}

Value BodyBuilder::philox(Value seed, Value counter, Value position) {
  check(seed.dtype == DType::Int64 && counter.dtype == DType::Int64 && position.dtype == DType::Int64,
        "philox needs three Int64");
  return append({.op = Op::Philox, .dtype = DType::Float32, .operands = {seed.id, counter.id, position.id}});
}

Value BodyBuilder::round_to(Value x, DType dtype) {
  if (compute_dtype(dtype) == dtype) return x;
  return cast(cast(x, dtype), x.dtype);
}

Expr BodyBuilder::bind_index(Value x, const Expr& size, bool checked, bool wrap) {
  Value i = cast(x, DType::Int64);
  if (mask_ != kNoInst) i = where(Value{this, mask_, DType::Bool}, i, constant(Scalar{}, DType::Int64));
  Value bound = append({.op = Op::BindIndex,
                        .dtype = DType::Int64,
                        .operands = {i.id, kNoInst, kNoInst},
                        .index = add_index({size}),
                        .checked = checked,
                        .wraps = wrap,
                        .asked_at = {location_}});
  return index_variable(kBoundVariables, inst(bound).variable - kBoundVariables, size);
}

// Positive zero.
bool BodyBuilder::is_zero(InstId id) const {
  const Inst& inst = body_.insts[id];
  return inst.op == Op::Constant && inst.constant == Scalar{0.0};
}

// Whether `id` is a load under the mask, converted, so that it is zero elsewhere.
bool BodyBuilder::is_zero_where_false(InstId id, InstId mask) const {
  const Inst* inst = &body_.insts[id];
  while (inst->op == Op::Cast && is_floating(inst->dtype)) inst = &body_.insts[inst->operands[0]];
  return inst->op == Op::Load && inst->operands[0] == mask && is_zero(inst->operands[1]);
}

Value BodyBuilder::masked(Value mask, const std::function<Value()>& body, Value otherwise) {
  if (const Inst& m = inst(mask); m.op == Op::Constant)
    return std::get<bool>(m.constant.value) ? body() : otherwise;
  InstId outer = mask_;
  if (outer != kNoInst) mask = Value{this, outer, DType::Bool} & mask;
  mask_ = mask.id;
  Value x = body();
  mask_ = outer;
  check(x.dtype == otherwise.dtype, "masked needs two values of one type");
  Inst source = inst(x);
  if (source.op == Op::Load && source.operands[0] == mask.id) {  // the load itself gives the other value
    source.operands[1] = otherwise.id;
    return append(source);
  }
  if (is_zero(otherwise.id) && is_zero_where_false(x.id, mask.id)) return x;
  return where(mask, x, otherwise);
}

Value BodyBuilder::element(const void* source, const Index& index, const std::function<Value()>& body) {
  size_t hash = combine(reinterpret_cast<size_t>(source), std::hash<InstId>()(mask_));
  for (const Expr& e : index) hash = combine(hash, e.hash());
  auto [begin, end] = known_elements_.equal_range(hash);
  for (auto it = begin; it != end; ++it)
    if (const Element& e = it->second; e.source == source && e.mask == mask_ && e.index == index)
      return e.value;
  Value value = body();
  known_elements_.emplace(hash, Element{source, mask_, index, value});
  return value;
}

Value BodyBuilder::at(graph::LocationId location, const std::function<Value()>& body) {
  const graph::LocationId before = std::exchange(location_, location);
  const Value value = body();
  location_ = before;
  return value;
}

Value BodyBuilder::rounded_to(DType dtype, const std::function<Value()>& body) {
  const bool is_half = dtype != compute_dtype(dtype);
  const std::optional<DType> before =
      std::exchange(rounded_to_, is_half ? std::optional(dtype) : std::nullopt);
  const Value value = body();
  rounded_to_ = before;
  return value;
}

Body BodyBuilder::take(const std::vector<InstId*>& roots, std::span<const Expr> used) {
  IdVector<InstId, bool> needed(body_.insts.size());
  for (InstId* root : roots)
    if (*root != kNoInst) needed[*root] = true;
  std::unordered_map<int64_t, InstId> binder;
  for (const InstId id : body_.insts.ids()) {
    const Inst& inst = body_.insts[id];
    if (inst.op == Op::BindIndex) binder.emplace(inst.variable, id);
    if (inst.op == Op::BindIndex && inst.checked) needed[id] = true;
  }
  auto need_binders = [&](const Expr& e) {
    for (const Expr& v : sym::variables(e))
      if (auto bound = binder.find(v.variable_id()); bound != binder.end()) needed[bound->second] = true;
  };
  for (const Expr& e : used) need_binders(e);
  for (const InstId id : body_.insts.ids() | std::views::reverse) {
    if (!needed[id]) continue;
    const Inst& inst = body_.insts[id];
    for (InstId operand : inst.operands)
      if (operand != kNoInst) needed[operand] = true;
    if (inst.index == kNoIndex || binder.empty()) continue;
    for (const Expr& e : body_.indices[inst.index]) need_binders(e);
  }
  Body result;
  IdVector<InstId, InstId> renumbered(body_.insts.size());
  IdVector<IndexId, IndexId> index_of(body_.indices.size());
  for (const InstId id : body_.insts.ids()) {
    if (!needed[id]) continue;
    Inst inst = body_.insts[id];
    for (InstId& operand : inst.operands)
      if (operand != kNoInst) operand = renumbered[operand];
    if (inst.index != kNoIndex) {
      IndexId& index = index_of[inst.index];
      if (index == kNoIndex) index = result.indices.add(std::move(body_.indices[inst.index]));
      inst.index = index;
    }
    renumbered[id] = result.insts.add(inst);
  }
  for (InstId* root : roots)
    if (*root != kNoInst) *root = renumbered[*root];
  body_ = {};
  mask_ = kNoInst;
  bound_ = 0;
  known_insts_.clear();
  known_indices_.clear();
  known_elements_.clear();
  return result;
}

namespace {
Value like(Value x, double value) {
  return x.builder->constant(value, x.dtype);
}
}  // namespace

Value operator+(Value a, Value b) {
  return a.builder->binary(Op::Add, a, b);
}
Value operator-(Value a, Value b) {
  return a.builder->binary(Op::Sub, a, b);
}
Value operator*(Value a, Value b) {
  return a.builder->binary(Op::Mul, a, b);
}
Value operator/(Value a, Value b) {
  return a.builder->binary(Op::Div, a, b);
}
Value operator-(Value a) {
  return a.builder->unary(Op::Neg, a);
}
Value operator+(Value a, double b) {
  return a + like(a, b);
}
Value operator-(Value a, double b) {
  return a - like(a, b);
}
Value operator-(double a, Value b) {
  return like(b, a) - b;
}
Value operator*(Value a, double b) {
  return a * like(a, b);
}
Value operator/(Value a, double b) {
  return a / like(a, b);
}
Value operator<(Value a, Value b) {
  return a.builder->binary(Op::Lt, a, b);
}
Value operator<=(Value a, Value b) {
  return a.builder->binary(Op::Le, a, b);
}
Value operator>(Value a, Value b) {
  return a.builder->binary(Op::Gt, a, b);
}
Value operator>=(Value a, Value b) {
  return a.builder->binary(Op::Ge, a, b);
}
Value operator==(Value a, Value b) {
  return a.builder->binary(Op::Eq, a, b);
}
Value operator!=(Value a, Value b) {
  return a.builder->binary(Op::Ne, a, b);
}
Value operator<(Value a, double b) {
  return a < like(a, b);
}
Value operator<=(Value a, double b) {
  return a <= like(a, b);
}
Value operator>(Value a, double b) {
  return a > like(a, b);
}
Value operator>=(Value a, double b) {
  return a >= like(a, b);
}
Value operator&(Value a, Value b) {
  return a.builder->binary(Op::BitAnd, a, b);
}
Value operator|(Value a, Value b) {
  return a.builder->binary(Op::BitOr, a, b);
}
Value operator!(Value a) {
  return a.builder->unary(Op::Not, a);
}
Value exp(Value x) {
  return x.builder->unary(Op::Exp, x);
}
Value log(Value x) {
  return x.builder->unary(Op::Log, x);
}
Value sqrt(Value x) {
  return x.builder->unary(Op::Sqrt, x);
}
Value tanh(Value x) {
  return x.builder->unary(Op::Tanh, x);
}
Value sigmoid(Value x) {
  return x.builder->unary(Op::Sigmoid, x);
}
Value abs(Value x) {
  return x.builder->unary(Op::Abs, x);
}
Value minimum(Value a, Value b) {
  return a.builder->binary(Op::Minimum, a, b);
}
Value maximum(Value a, Value b) {
  return a.builder->binary(Op::Maximum, a, b);
}
Value minimum(Value a, double b) {
  return minimum(like(a, b), a);
}
Value maximum(Value a, double b) {
  return maximum(like(a, b), a);
}
Value where(Value condition, Value a, Value b) {
  return condition.builder->where(condition, a, b);
}
Value as_bool(Value x) {
  return x.dtype == DType::Bool ? x : x != like(x, 0);
}

}  // namespace oxy::loop
