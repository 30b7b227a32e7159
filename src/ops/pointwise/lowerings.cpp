#include "ops/pointwise/lowerings.h"

#include <cmath>

#include "aten/operators.h"
#include "base/error.h"
#include "loop/number.h"
#include "ops/core/element_wise.h"
#include "ops/core/lowering_arguments.h"

namespace oxy::ops::lowerings {

using loop::compute_dtype;
using loop::Op;
using Values = std::span<const Value>;

namespace {

// How a kernel's own values are given to what it computes of them.
enum class Held : uint8_t {
  Wide,    // in the type that kernels compute in
  Rounded  // as eager's memory would hold them: whether two of them are equal, or one is infinite, depends on
           // it
};

// Whether the value is a copy of what lies on the host (passes::bring_to_device()).
bool is_from_host(const LoweringContext& context, graph::ValueId id) {
  const graph::NodeId producer = context.graph().values[id].node;
  if (producer == graph::kNoNode) return false;
  const Node& node = context.graph().nodes[producer];
  const auto* source = node.op == op::to_copy() ? std::get_if<graph::ValueRef>(&node.args[0]) : nullptr;
  return source != nullptr && is_on_host(context.meta(source->id).device);
}

bool is_exact(LoweringContext& context, const Node& node, size_t argument, size_t place, Exact exact) {
  const auto* ref = std::get_if<graph::ValueRef>(&node.args.at(argument));
  const bool is_scalar = ref == nullptr || context.meta(ref->id).sizes.empty();
  switch (exact) {
    case Exact::None:
      return false;
    case Exact::SecondScalar:
      return place == 1 && is_scalar;
    case Exact::Numbers:
      return ref == nullptr;
    case Exact::HostScalars:
      return ref == nullptr || (is_scalar && is_from_host(context, ref->id));
    case Exact::SecondHostScalar:
      return place == 1 && (ref == nullptr || (is_scalar && is_from_host(context, ref->id)));
  }
  return false;
}

// What eager's kernels for the device do where the result is of half precision.
Exact on_device(LoweringContext& context, const Node& node, Exact on_host, Exact on_gpus) {
  const TensorMeta& out = context.output_meta(node);
  const bool is_half = is_floating(out.dtype) && compute_dtype(out.dtype) != out.dtype;
  return is_half && !is_on_host(out.device) ? on_gpus : on_host;
}

// Sets the node's only output to fn over the operands, each converted to `type` and in the type that one
// computes in.
void elementwise(LoweringContext& context, const Node& node, std::span<const size_t> operands, DType type,
                 Exact exact, std::function<Value(Values)> fn, int work, Held held = Held::Wide) {
  struct Given {
    bool is_missing = true;
    std::optional<DType> held;     // the type that it is rounded to
    std::optional<DType> rounded;  // and that its conversion is rounded to
  };
  const TensorMeta& out = context.output_meta(node);
  std::vector<Tensor> inputs;
  std::vector<Given> given;
  for (size_t place = 0; place < operands.size(); ++place) {
    const size_t i = operands[place];
    Given& how = given.emplace_back();
    if (is_none(node, i)) continue;
    const Tensor& input = inputs.emplace_back(context.operand(node, i));
    how.is_missing = false;
    if (held == Held::Rounded && !input.is_realised()) how.held = input.dtype;
    if (input.dtype != type && !is_exact(context, node, i, place, exact)) how.rounded = type;
  }
  auto body = [fn = std::move(fn), given = std::move(given), type, result = out.dtype](BodyBuilder& b,
                                                                                       Values v) {
    std::vector<Value> converted;
    converted.reserve(given.size());
    size_t next = 0;
    for (const Given& how : given) {
      Value& value = converted.emplace_back();
      if (how.is_missing) continue;
      value = v[next++];
      if (how.held) value = b.round_to(value, *how.held);
      value = b.cast(value, compute_dtype(type));
      if (how.rounded) value = b.round_to(value, *how.rounded);
    }
    return b.rounded_to(result, [&] { return fn(converted); });
  };
  context.set(node.outputs[0],
              context.pointwise(std::move(inputs), out.sizes, out.dtype, std::move(body), work));
}

void elementwise(LoweringContext& context, const Node& node, std::initializer_list<size_t> operands,
                 Exact exact, std::function<Value(Values)> fn, int work = 1) {
  elementwise(context, node, std::span(operands.begin(), operands.size()), context.output_meta(node).dtype,
              exact, std::move(fn), work);
}

void elementwise(LoweringContext& context, const Node& node, std::initializer_list<size_t> operands,
                 std::function<Value(Values)> fn, int work = 1) {
  elementwise(context, node, operands, Exact::None, std::move(fn), work);
}

DType promoted(LoweringContext& context, const Node& node, std::initializer_list<size_t> operands) {
  Promotion promotion(DType::Float32);
  for (size_t i : operands) {
    if (const auto* ref = std::get_if<graph::ValueRef>(&node.args.at(i)))
      promotion.add_tensor(context.meta(ref->id));
    else
      promotion.add_number(node.args[i]);
  }
  return promotion.result();
}

// Integer division by zero raises in eager, which a kernel cannot.
void require_nonzero_divisor(LoweringContext& context, const Node& node) {
  if (is_floating(context.output_meta(node).dtype)) return;
  const auto* e = std::get_if<Expr>(&node.args.at(1));
  if (e == nullptr || !(sym::known_less(0, *e) || sym::known_less(*e, 0)))
    not_lowered(node, "an integer divisor that may be 0");
}

// Releases of PyTorch differ in what they do with an integer that the type cannot hold: it wraps around, is
// an error, or becomes the nearest limit of the type. Eager's kernel decides.
void require_held(const Node& node, size_t i, DType type) {
  const auto* number = i < node.args.size() ? std::get_if<Expr>(&node.args[i]) : nullptr;
  if (number == nullptr || !is_integral(type) || type == DType::Int64) return;
  const size_t bits = 8 * item_size(type) - (is_signed(type) ? 1 : 0);
  const int64_t greatest = (int64_t{1} << bits) - 1;
  const int64_t least = is_signed(type) ? -greatest - 1 : 0;
  if (!sym::known_less_equal(least, *number) || !sym::known_less_equal(*number, greatest))
    not_lowered(node, "a number that the type may not hold");
}

bool is_one(Value x) {
  while (x.builder->inst(x).op == Op::Cast) x.id = x.builder->inst(x).operands[0];
  const loop::Inst& inst = x.builder->inst(x);
  return inst.op == Op::Constant &&
         std::visit([](auto number) { return static_cast<double>(number) == 1; }, inst.constant.value);
}

Value subtract_product(Value a, Value b, Value c) {
  return is_one(c) ? a - b : formulas::add_product(a, b, -c);
}

// x to the power of a constant; nothing if it has no shorter form in this type on the host or on a GPU.
std::optional<Value> constant_power(Value x, double exponent, DType type, bool on_host) {
  BodyBuilder& b = *x.builder;
  if (exponent == 0) return b.constant(1.0, x.dtype);
  if (exponent == 1) return x;
  if (exponent == 2) return x * x;
  const bool rounds = type == DType::BFloat16 || (type == DType::Float16 && !on_host);
  const auto product = [&](Value a, Value c) { return rounds ? b.round_to(a * c, type) : a * c; };
  if (exponent == 3) return product(x, x) * x;
  if (exponent == 4) return (x * x) * (x * x);
  if (!is_floating(x.dtype)) return std::nullopt;
  // Roots of -inf and -0 are other than their powers, which eager takes in float16 on the host.
  const bool takes_roots = type != DType::Float16 || !on_host;
  if (takes_roots && exponent == 0.5) return sqrt(x);
  if (takes_roots && exponent == -0.5) return b.unary(Op::Rsqrt, x);
  if (exponent == -1) return b.unary(Op::Reciprocal, x);
  if (exponent == -2) return b.unary(Op::Reciprocal, product(x, x));
  return std::nullopt;
}

}  // namespace

Lowering formula(std::initializer_list<size_t> operands, Formula fn, int work, Exact exact,
                 std::optional<Exact> on_gpus) {
  return [positions = std::vector<size_t>(operands), fn, work, exact, on_gpus = on_gpus.value_or(exact)](
             LoweringContext& context, const Node& node) {
    elementwise(context, node, positions, context.output_meta(node).dtype,
                on_device(context, node, exact, on_gpus), fn, work);
  };
}

Lowering limited(std::initializer_list<size_t> operands, Formula fn, int work) {
  return [positions = std::vector<size_t>(operands), lower = formula(operands, fn, work, Exact::None)](
             LoweringContext& context, const Node& node) {
    for (const size_t i : positions) require_held(node, i, context.output_meta(node).dtype);
    lower(context, node);
  };
}

void softshrink(LoweringContext& context, const Node& node) {
  const DType type = context.output_meta(node).dtype;
  const double limit = real(node, 1);
  // Releases of PyTorch differ in whether they round the number to the type.
  if (type != compute_dtype(type) && loop::rounded({.f = limit}, type).f != limit)
    not_lowered(node, "a number that half precision cannot hold");
  elementwise(context, node, {0, 1}, formulas::softshrink, 6);
}

Lowering unary(Op op, int work) {
  return [op, work](LoweringContext& context, const Node& node) {
    DType dtype = context.output_meta(node).dtype;
    bool rounds = op == Op::Floor || op == Op::Ceil || op == Op::Trunc || op == Op::Round;
    bool same = (rounds && !is_floating(dtype)) || (dtype == DType::Bool && op == Op::Abs);
    elementwise(
        context, node, {0}, [op, same](Values v) { return same ? v[0] : v[0].builder->unary(op, v[0]); },
        work);
  };
}

Lowering binary(Op op, int work) {
  return [op, work](LoweringContext& context, const Node& node) {
    bool is_bool = context.output_meta(node).dtype == DType::Bool;
    Op actual = is_bool && op == Op::Maximum ? Op::BitOr : is_bool && op == Op::Minimum ? Op::BitAnd : op;
    elementwise(
        context, node, {0, 1}, [actual](Values v) { return v[0].builder->binary(actual, v[0], v[1]); }, work);
  };
}

Lowering comparison(Op op) {
  return [op](LoweringContext& context, const Node& node) {
    constexpr size_t kOperands[] = {0, 1};
    elementwise(
        context, node, kOperands, promoted(context, node, {0, 1}), Exact::None,
        [op](Values v) { return v[0].builder->binary(op, v[0], v[1]); }, 1, Held::Rounded);
  };
}

Lowering test(Op op) {
  return [op](LoweringContext& context, const Node& node) {
    constexpr size_t kOperands[] = {0};
    elementwise(
        context, node, kOperands, context.operand(node, 0).dtype, Exact::None,
        [op](Values v) {
          if (!is_floating(v[0].dtype)) return v[0].builder->constant(loop::Scalar{false}, DType::Bool);
          return v[0].builder->unary(op, v[0]);
        },
        1, Held::Rounded);
  };
}

void as_stored(LoweringContext& context, const Node& node) {
  if (context.operand(node, 0).is_realised()) return identity(context, node);
  constexpr size_t kOperands[] = {0};
  elementwise(
      context, node, kOperands, context.output_meta(node).dtype, Exact::None, [](Values v) { return v[0]; },
      1, Held::Rounded);
}

Lowering logical(Formula fn, size_t operands) {
  return [fn, operands](LoweringContext& context, const Node& node) {
    constexpr size_t kOperands[] = {0, 1};
    // An operand may be zero in the type that both have together: 256 as a byte.
    const DType type = operands == 2 ? promoted(context, node, {0, 1}) : DType::Bool;
    const auto of_tests = [fn](Values v) {
      std::vector<Value> tests;
      for (const Value& value : v) tests.push_back(value.builder->cast(value, DType::Bool));
      return fn(tests);
    };
    elementwise(context, node, std::span(kOperands, operands), type, Exact::None, of_tests, 1, Held::Rounded);
  };
}

namespace {

Exact of_sums(LoweringContext& context, const Node& node) {
  return on_device(context, node, Exact::None, Exact::HostScalars);
}

Exact of_quotients(LoweringContext& context, const Node& node) {
  return on_device(context, node, Exact::SecondScalar, Exact::SecondHostScalar);
}

}  // namespace

void add(LoweringContext& context, const Node& node) {
  bool is_bool = context.output_meta(node).dtype == DType::Bool;
  elementwise(context, node, {0, 1, 2}, of_sums(context, node), [is_bool](Values v) {
    return is_bool        ? v[0] | (v[1] & v[2])
           : is_one(v[2]) ? v[0] + v[1]
                          : formulas::add_product(v[0], v[1], v[2]);
  });
}

void sub(LoweringContext& context, const Node& node) {
  elementwise(context, node, {0, 1, 2}, of_sums(context, node),
              [](Values v) { return subtract_product(v[0], v[1], v[2]); });
}

void rsub(LoweringContext& context, const Node& node) {
  elementwise(context, node, {0, 1, 2}, of_sums(context, node),
              [](Values v) { return subtract_product(v[1], v[0], v[2]); });
}

void mul(LoweringContext& context, const Node& node) {
  bool is_bool = context.output_meta(node).dtype == DType::Bool;
  elementwise(context, node, {0, 1}, on_device(context, node, Exact::SecondScalar, Exact::HostScalars),
              [is_bool](Values v) { return is_bool ? v[0] & v[1] : v[0] * v[1]; });
}

void div(LoweringContext& context, const Node& node) {
  elementwise(context, node, {0, 1}, of_quotients(context, node), [](Values v) { return v[0] / v[1]; });
}

void div_mode(LoweringContext& context, const Node& node) {
  std::string mode = text(node, 2);
  if (mode.empty()) return div(context, node);
  require_nonzero_divisor(context, node);
  Op op = mode == "floor" ? Op::FloorDiv : Op::TruncDiv;
  elementwise(
      context, node, {0, 1}, of_quotients(context, node),
      [op](Values v) { return v[0].builder->binary(op, v[0], v[1]); }, 2);
}

void floor_divide(LoweringContext& context, const Node& node) {
  require_nonzero_divisor(context, node);
  elementwise(
      context, node, {0, 1}, of_quotients(context, node),
      [](Values v) { return v[0].builder->binary(Op::FloorDiv, v[0], v[1]); }, 2);
}

void remainder(LoweringContext& context, const Node& node) {
  require_nonzero_divisor(context, node);
  elementwise(context, node, {0, 1}, [](Values v) { return v[0].builder->binary(Op::Mod, v[0], v[1]); }, 2);
}

void fmod(LoweringContext& context, const Node& node) {
  require_nonzero_divisor(context, node);
  elementwise(context, node, {0, 1}, [](Values v) { return v[0].builder->binary(Op::Fmod, v[0], v[1]); }, 2);
}

void pow(LoweringContext& context, const Node& node) {
  const auto* symbolic = std::get_if<Expr>(&node.args.at(1));
  if (symbolic != nullptr && symbolic->is_constant()) symbolic = nullptr;
  std::optional<double> exponent;
  if (!is_tensor(node, 1) && symbolic == nullptr) exponent = real(node, 1);
  DType dtype = context.output_meta(node).dtype;
  if (dtype == DType::Bool) not_lowered(node, "bool");
  const bool is_never_negative =
      exponent ? *exponent >= 0 : symbolic != nullptr && sym::known_less_equal(0, *symbolic);
  if (!is_floating(dtype) && !is_never_negative)
    not_lowered(node, "integers to a power that may be negative");
  elementwise(
      context, node, {0, 1},
      [exponent, dtype, on_host = is_on_host(context.output_meta(node).device)](Values v) {
        if (exponent)
          if (auto short_form = constant_power(v[0], *exponent, dtype, on_host)) return *short_form;
        return v[0].builder->binary(Op::Pow, v[0], v[1]);
      },
      exponent && std::abs(*exponent) <= 4 ? 2 : 10);
}

void xlogy(LoweringContext& context, const Node& node) {
  const TensorMeta& out = context.output_meta(node);
  elementwise(
      context, node, {0, 1},
      [dtype = out.dtype, rounds = is_on_host(out.device)](Values v) {
        BodyBuilder& b = *v[0].builder;
        const Value zero = b.constant(0.0, v[0].dtype), logarithm = log(v[1]);
        const Value product = v[0] * (rounds ? b.round_to(logarithm, dtype) : logarithm);
        return loop::where(b.unary(Op::IsNan, v[1]), v[1], loop::where(v[0] == zero, zero, product));
      },
      8);
}

namespace {
constexpr double kSqrt2OverPi = 0.79788456080286535588;
constexpr double kCubic = 0.044715;

Value gelu_tanh(Value x) {
  return x * 0.5 * (tanh((x + x * x * x * kCubic) * kSqrt2OverPi) + 1);
}
Value normal_cdf(Value x) {
  return x.builder->unary(Op::NormalCdf, x);
}
}  // namespace

void gelu(LoweringContext& context, const Node& node) {
  if (text(node, 1) == "tanh")
    elementwise(context, node, {0}, [](Values v) { return gelu_tanh(v[0]); }, 10);
  else
    elementwise(context, node, {0}, [](Values v) { return v[0] * normal_cdf(v[0]); }, 8);
}

void gelu_backward(LoweringContext& context, const Node& node) {
  bool approximate = text(node, 2) == "tanh";
  elementwise(
      context, node, {0, 1},
      [approximate, dtype = context.output_meta(node).dtype](Values v) {
        Value x = v[1];
        if (!approximate) {
          constexpr double kNormal = 0.39894228040143267794;  // 1 / sqrt(2 pi)
          // Near its zero, the sum of two terms needs more digits of them than it has itself.
          const DType needed = dtype == DType::BFloat16 ? dtype : DType::Float32;
          const Value below = x.builder->rounded_to(needed, [&] { return normal_cdf(x); });
          return v[0] * (below + x * exp(x * x * -0.5) * kNormal);
        }
        Value t = tanh((x + x * x * x * kCubic) * kSqrt2OverPi);
        Value inner = (x * x * (3 * kCubic) + 1) * kSqrt2OverPi;
        return v[0] * ((t + 1) * 0.5 + x * 0.5 * (1 - t * t) * inner);
      },
      16);
}

void round_decimals(LoweringContext& context, const Node& node) {
  if (integer(node, 1) != 0) not_lowered(node, "rounding to decimals");
  unary(Op::Round)(context, node);
}

namespace {

// Of the node's arguments with these positions.
void choice(LoweringContext& context, const Node& node, size_t condition, size_t yes, size_t no) {
  const TensorMeta& out = context.output_meta(node);
  const std::vector<Tensor> operands = {context.operand(node, condition), context.operand(node, yes),
                                        context.operand(node, no)};
  const auto in_type = [out = out.dtype](BodyBuilder& b, Value value, DType given) {
    const Value cast = b.cast(value, compute_dtype(out));
    return given == out ? cast : b.round_to(cast, out);
  };
  context.set(
      node.outputs[0],
      context.pointwise(operands, out.sizes, out.dtype,
                        [in_type, yes = operands[1].dtype, no = operands[2].dtype](BodyBuilder& b, Values v) {
                          return b.where(as_bool(v[0]), in_type(b, v[1], yes), in_type(b, v[2], no));
                        }));
}

}  // namespace

void where(LoweringContext& context, const Node& node) {
  choice(context, node, 0, 1, 2);
}

void masked_fill(LoweringContext& context, const Node& node) {
  choice(context, node, 1, 2, 0);
}

void log_sigmoid(LoweringContext& context, const Node& node) {
  if (context.uses(node.outputs[1]) > 0) not_lowered(node, "the buffer for its gradient");
  elementwise(
      context, node, {0},
      [](Values v) {
        BodyBuilder& b = *v[0].builder;
        return minimum(v[0], 0) - b.unary(Op::Log1p, exp(-abs(v[0])));
      },
      8);
}

void prelu(LoweringContext& context, const Node& node) {
  elementwise(context, node, {0, 1}, [](Values v) { return loop::where(v[0] > 0, v[0], v[0] * v[1]); }, 3);
}

void glu(LoweringContext& context, const Node& node) {
  Tensor x = context.operand(node, 0);
  auto d = static_cast<size_t>(dim(node, 1, x.rank()));
  const TensorMeta& out = context.output_meta(node);
  Expr half = out.sizes[d];
  Tensor gate = context.view(x, out.sizes, [&](const Index& index) {
    Index source = index;
    source[d] = source[d] + half;
    return source;
  });
  Tensor value = context.view(x, out.sizes, [](const Index& index) { return index; });
  context.set(node.outputs[0], context.pointwise(
                                   {value, gate}, out.sizes, out.dtype,
                                   [](BodyBuilder&, Values v) { return v[0] * sigmoid(v[1]); }, 4));
}

void to_copy(LoweringContext& context, const Node& node) {
  Tensor x = context.operand(node, 0);
  const TensorMeta& out = context.output_meta(node);
  if (const auto* ref = std::get_if<graph::ValueRef>(&node.args[0]);
      ref != nullptr && !(context.meta(ref->id).device == out.device))
    not_lowered(node, "a copy to another device");
  if (x.dtype == out.dtype) return clone(context, node);
  // The user asked for this precision: unlike results of arithmetic, it is not carried in a wider one.
  context.set(node.outputs[0], context.converted(x, out.dtype));
}

// Copies that change nothing have been removed by the passes, where they are not there for memory of their
// own.
void clone(LoweringContext& context, const Node& node) {
  const TensorMeta& out = context.output_meta(node);
  context.set(node.outputs[0], context.pointwise(
                                   {context.operand(node, 0)}, out.sizes, out.dtype,
                                   [](BodyBuilder&, Values v) { return v[0]; }, 0));
}

void copy(LoweringContext& context, const Node& node) {
  const TensorMeta& out = context.output_meta(node);
  context.set(node.outputs[0], context.pointwise({context.operand(node, 1)}, out.sizes, out.dtype,
                                                 [dtype = out.dtype](BodyBuilder& b, Values v) {
                                                   return b.round_to(b.cast(v[0], compute_dtype(dtype)),
                                                                     dtype);
                                                 }));
}

void identity(LoweringContext& context, const Node& node) {
  context.set(node.outputs[0], context.operand(node, 0));
}

}  // namespace oxy::ops::lowerings
