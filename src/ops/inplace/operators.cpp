// The operators that write their first argument, each with the operator that computes the new contents.
#include <array>
#include <string>
#include <vector>

#include "ops/core/families.h"
#include "ops/inplace/shapes.h"

namespace oxy::ops {

namespace {

// New contents by the operator of the same name without the underscore: aten::add.Tensor for
// aten::add_.Tensor.
constexpr auto kSchemas = std::to_array<std::string_view>({
    "aten::relu_(Tensor(a!) self) -> Tensor(a!)",
    "aten::sign_(Tensor(a!) self) -> Tensor(a!)",
    "aten::sgn_(Tensor(a!) self) -> Tensor(a!)",
    "aten::floor_(Tensor(a!) self) -> Tensor(a!)",
    "aten::ceil_(Tensor(a!) self) -> Tensor(a!)",
    "aten::trunc_(Tensor(a!) self) -> Tensor(a!)",
    "aten::square_(Tensor(a!) self) -> Tensor(a!)",
    "aten::round_(Tensor(a!) self) -> Tensor(a!)",
    "aten::round_.decimals(Tensor(a!) self, *, int decimals) -> Tensor(a!)",
    "aten::frac_(Tensor(a!) self) -> Tensor(a!)",
    "aten::neg_(Tensor(a!) self) -> Tensor(a!)",
    "aten::nan_to_num_(Tensor(a!) self, float? nan=None, float? posinf=None, float? neginf=None) -> "
    "Tensor(a!)",
    "aten::abs_(Tensor(a!) self) -> Tensor(a!)",
    "aten::gelu_(Tensor(a!) self, *, str approximate=\"none\") -> Tensor(a!)",
    "aten::silu_(Tensor(a!) self) -> Tensor(a!)",
    "aten::mish_(Tensor(a!) self) -> Tensor(a!)",
    "aten::hardswish_(Tensor(a!) self) -> Tensor(a!)",
    "aten::hardsigmoid_(Tensor(a!) self) -> Tensor(a!)",
    "aten::relu6_(Tensor(a!) self) -> Tensor(a!)",
    "aten::hardtanh_(Tensor(a!) self, Scalar min_val=-1, Scalar max_val=1) -> Tensor(a!)",
    "aten::leaky_relu_(Tensor(a!) self, Scalar negative_slope=0.01) -> Tensor(a!)",
    "aten::elu_(Tensor(a!) self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor(a!)",
    "aten::selu_(Tensor(a!) self) -> Tensor(a!)",
    "aten::celu_(Tensor(a!) self, Scalar alpha=1.) -> Tensor(a!)",
    "aten::threshold_(Tensor(a!) self, Scalar threshold, Scalar value) -> Tensor(a!)",
    "aten::logit_(Tensor(a!) self, float? eps=None) -> Tensor(a!)",
    "aten::exp_(Tensor(a!) self) -> Tensor(a!)",
    "aten::exp2_(Tensor(a!) self) -> Tensor(a!)",
    "aten::expm1_(Tensor(a!) self) -> Tensor(a!)",
    "aten::log_(Tensor(a!) self) -> Tensor(a!)",
    "aten::log2_(Tensor(a!) self) -> Tensor(a!)",
    "aten::log10_(Tensor(a!) self) -> Tensor(a!)",
    "aten::log1p_(Tensor(a!) self) -> Tensor(a!)",
    "aten::sqrt_(Tensor(a!) self) -> Tensor(a!)",
    "aten::rsqrt_(Tensor(a!) self) -> Tensor(a!)",
    "aten::reciprocal_(Tensor(a!) self) -> Tensor(a!)",
    "aten::sin_(Tensor(a!) self) -> Tensor(a!)",
    "aten::cos_(Tensor(a!) self) -> Tensor(a!)",
    "aten::tan_(Tensor(a!) self) -> Tensor(a!)",
    "aten::asin_(Tensor(a!) self) -> Tensor(a!)",
    "aten::acos_(Tensor(a!) self) -> Tensor(a!)",
    "aten::atan_(Tensor(a!) self) -> Tensor(a!)",
    "aten::sinh_(Tensor(a!) self) -> Tensor(a!)",
    "aten::cosh_(Tensor(a!) self) -> Tensor(a!)",
    "aten::tanh_(Tensor(a!) self) -> Tensor(a!)",
    "aten::asinh_(Tensor(a!) self) -> Tensor(a!)",
    "aten::acosh_(Tensor(a!) self) -> Tensor(a!)",
    "aten::atanh_(Tensor(a!) self) -> Tensor(a!)",
    "aten::sigmoid_(Tensor(a!) self) -> Tensor(a!)",
    "aten::erf_(Tensor(a!) self) -> Tensor(a!)",
    "aten::erfc_(Tensor(a!) self) -> Tensor(a!)",
    "aten::erfinv_(Tensor(a!) self) -> Tensor(a!)",
    "aten::lgamma_(Tensor(a!) self) -> Tensor(a!)",
    "aten::digamma_(Tensor(a!) self) -> Tensor(a!)",
    "aten::i0_(Tensor(a!) self) -> Tensor(a!)",
    "aten::sinc_(Tensor(a!) self) -> Tensor(a!)",
    "aten::deg2rad_(Tensor(a!) self) -> Tensor(a!)",
    "aten::rad2deg_(Tensor(a!) self) -> Tensor(a!)",
    "aten::bitwise_not_(Tensor(a!) self) -> Tensor(a!)",
    "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
    "aten::add_.Scalar(Tensor(a!) self, Scalar other, Scalar alpha=1) -> Tensor(a!)",
    "aten::sub_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
    "aten::sub_.Scalar(Tensor(a!) self, Scalar other, Scalar alpha=1) -> Tensor(a!)",
    "aten::mul_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    "aten::mul_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
    "aten::remainder_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    "aten::remainder_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
    "aten::fmod_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    "aten::fmod_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
    "aten::floor_divide_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
    "aten::hypot_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    "aten::nextafter_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    "aten::heaviside_(Tensor(a!) self, Tensor values) -> Tensor(a!)",
    "aten::gcd_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    "aten::lcm_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    "aten::bitwise_and_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    "aten::bitwise_and_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
    "aten::bitwise_or_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    "aten::bitwise_or_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
    "aten::bitwise_xor_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    "aten::bitwise_xor_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
    "aten::bitwise_left_shift_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    "aten::bitwise_left_shift_.Tensor_Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
    "aten::bitwise_right_shift_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    "aten::bitwise_right_shift_.Tensor_Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
    "aten::div_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    "aten::div_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
    "aten::atan2_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    "aten::copysign_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    "aten::copysign_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
    "aten::xlogy_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    "aten::xlogy_.Scalar_Other(Tensor(a!) self, Scalar other) -> Tensor(a!)",
    "aten::div_.Tensor_mode(Tensor(a!) self, Tensor other, *, str? rounding_mode) -> Tensor(a!)",
    "aten::div_.Scalar_mode(Tensor(a!) self, Scalar other, *, str? rounding_mode) -> Tensor(a!)",
    "aten::pow_.Scalar(Tensor(a!) self, Scalar exponent) -> Tensor(a!)",
    "aten::addcmul_(Tensor(a!) self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor(a!)",
    "aten::addcdiv_(Tensor(a!) self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor(a!)",
    "aten::lerp_.Scalar(Tensor(a!) self, Tensor end, Scalar weight) -> Tensor(a!)",
    "aten::lerp_.Tensor(Tensor(a!) self, Tensor end, Tensor weight) -> Tensor(a!)",
    "aten::clamp_(Tensor(a!) self, Scalar? min=None, Scalar? max=None) -> Tensor(a!)",
    "aten::clamp_min_(Tensor(a!) self, Scalar min) -> Tensor(a!)",
    "aten::clamp_max_(Tensor(a!) self, Scalar max) -> Tensor(a!)",
    "aten::clamp_.Tensor(Tensor(a!) self, Tensor? min=None, Tensor? max=None) -> Tensor(a!)",
    "aten::clamp_min_.Tensor(Tensor(a!) self, Tensor min) -> Tensor(a!)",
    "aten::clamp_max_.Tensor(Tensor(a!) self, Tensor max) -> Tensor(a!)",
    "aten::masked_fill_.Scalar(Tensor(a!) self, Tensor mask, Scalar value) -> Tensor(a!)",
    "aten::masked_fill_.Tensor(Tensor(a!) self, Tensor mask, Tensor value) -> Tensor(a!)",
    "aten::eq_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    "aten::eq_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
    "aten::ne_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    "aten::ne_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
    "aten::lt_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    "aten::lt_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
    "aten::le_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    "aten::le_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
    "aten::gt_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    "aten::gt_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
    "aten::ge_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    "aten::ge_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
    "aten::logical_and_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    "aten::logical_or_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    "aten::logical_xor_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    "aten::logical_not_(Tensor(a!) self) -> Tensor(a!)",
    "aten::cumsum_(Tensor(a!) self, int dim, *, ScalarType? dtype=None) -> Tensor(a!)",
    "aten::cumprod_(Tensor(a!) self, int dim, *, ScalarType? dtype=None) -> Tensor(a!)",
    "aten::copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)",
    "aten::tril_(Tensor(a!) self, SymInt diagonal=0) -> Tensor(a!)",
    "aten::triu_(Tensor(a!) self, SymInt diagonal=0) -> Tensor(a!)",
    "aten::fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)",
    "aten::fill_.Tensor(Tensor(a!) self, Tensor value) -> Tensor(a!)",
    "aten::zero_(Tensor(a!) self) -> Tensor(a!)",
    "aten::uniform_(Tensor(a!) self, float from=0., float to=1., *, Generator? generator=None) -> Tensor(a!)",
    "aten::exponential_(Tensor(a!) self, float lambd=1., *, Generator? generator=None) -> Tensor(a!)",
    "aten::geometric_(Tensor(a!) self, float p, *, Generator? generator=None) -> Tensor(a!)",
    "aten::log_normal_(Tensor(a!) self, float mean=1., float std=2., *, Generator? generator=None) -> "
    "Tensor(a!)",
    "aten::cauchy_(Tensor(a!) self, float median=0., float sigma=1., *, Generator? generator=None) -> "
    "Tensor(a!)",
    "aten::random_(Tensor(a!) self, *, Generator? generator=None) -> Tensor(a!)",
    "aten::random_.from(Tensor(a!) self, int from, int? to, *, Generator? generator=None) -> Tensor(a!)",
    "aten::random_.to(Tensor(a!) self, int to, *, Generator? generator=None) -> Tensor(a!)",
    "aten::bernoulli_.Tensor(Tensor(a!) self, Tensor p, *, Generator? generator=None) -> Tensor(a!)",
    "aten::scatter_.src(Tensor(a!) self, int dim, Tensor index, Tensor src) -> Tensor(a!)",
    "aten::scatter_.value(Tensor(a!) self, int dim, Tensor index, Scalar value) -> Tensor(a!)",
    "aten::scatter_.reduce(Tensor(a!) self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor(a!)",
    "aten::scatter_.value_reduce(Tensor(a!) self, int dim, Tensor index, Scalar value, *, str reduce) -> "
    "Tensor(a!)",
    "aten::scatter_add_(Tensor(a!) self, int dim, Tensor index, Tensor src) -> Tensor(a!)",
    "aten::scatter_reduce_.two(Tensor(a!) self, int dim, Tensor index, Tensor src, str reduce, *, bool "
    "include_self=True) -> Tensor(a!)",
    "aten::index_add_(Tensor(a!) self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> "
    "Tensor(a!)",
    "aten::index_copy_(Tensor(a!) self, int dim, Tensor index, Tensor source) -> Tensor(a!)",
    "aten::index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False) -> "
    "Tensor(a!)",
    "aten::index_fill_.int_Scalar(Tensor(a!) self, int dim, Tensor index, Scalar value) -> Tensor(a!)",
    "aten::index_fill_.int_Tensor(Tensor(a!) self, int dim, Tensor index, Tensor value) -> Tensor(a!)",
    "aten::masked_scatter_(Tensor(a!) self, Tensor mask, Tensor source) -> Tensor(a!)",
    "aten::_index_put_impl_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False, bool "
    "unsafe=False) -> Tensor(a!)",
    "aten::addmm_(Tensor(a!) self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor(a!)",
    "aten::baddbmm_(Tensor(a!) self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> "
    "Tensor(a!)",
    "aten::addbmm_(Tensor(a!) self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> "
    "Tensor(a!)",
    "aten::addmv_(Tensor(a!) self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor(a!)",
    "aten::addr_(Tensor(a!) self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor(a!)",
});

struct Renamed {
  std::string_view schema;
  std::string_view functional;
};

constexpr auto kRenamed = std::to_array<Renamed>({
    {"aten::normal_(Tensor(a!) self, float mean=0., float std=1., *, Generator? generator=None) -> "
     "Tensor(a!)",
     "aten::normal_functional"},
    {"aten::bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!)",
     "aten::bernoulli.p"},
    {"aten::floor_divide_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", "aten::floor_divide"},
    {"aten::pow_.Tensor(Tensor(a!) self, Tensor exponent) -> Tensor(a!)", "aten::pow.Tensor_Tensor"},
    {"aten::__ilshift__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", "aten::__lshift__.Tensor"},
    {"aten::__ilshift__.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)", "aten::__lshift__.Scalar"},
    {"aten::__irshift__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", "aten::__rshift__.Tensor"},
    {"aten::__irshift__.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)", "aten::__rshift__.Scalar"},
});

std::string_view name_of(std::string_view schema) {
  return schema.substr(0, schema.find('('));
}

std::string without_underscore(std::string_view name) {
  const size_t end = name.substr(0, name.find('.')).size();
  return std::string(name.substr(0, end - 1)) + std::string(name.substr(end));
}

OperatorEntry entry(std::string_view schema, std::string_view functional) {
  return {.name = name_of(schema), .schema = schema, .shape = shapes::in_place, .functional = functional};
}

}  // namespace

Family inplace_operators() {
  static const std::array functional_names = [] {
    std::array<std::string, kSchemas.size()> names;
    for (size_t i = 0; i < names.size(); ++i) names[i] = without_underscore(name_of(kSchemas[i]));
    return names;
  }();
  static const std::vector<OperatorEntry> table = [] {
    std::vector<OperatorEntry> entries;
    for (size_t i = 0; i < kSchemas.size(); ++i) entries.push_back(entry(kSchemas[i], functional_names[i]));
    for (const Renamed& renamed : kRenamed) entries.push_back(entry(renamed.schema, renamed.functional));
    return entries;
  }();
  return table;
}

}  // namespace oxy::ops
