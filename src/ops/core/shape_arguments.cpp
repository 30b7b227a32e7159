#include "ops/core/shape_arguments.h"

#include <fmt/format.h>

#include "base/error.h"

namespace oxy::ops {

using graph::None;

void not_covered(const ShapeContext& context, std::string_view what) {
  throw Unsupported(fmt::format("{}: {}", context.schema().name, what));
}

void refused_by_eager(const ShapeContext& context, std::string_view what) {
  throw RefusedByEager(fmt::format("{}: {}", context.schema().name, what));
}

int64_t known(const ShapeContext& context, const Expr& e) {
  if (e.is_constant()) return e.constant();
  if (context.questions() == nullptr) not_covered(context, "a symbolic size where the rule needs a number");
  return context.questions()->specialise(e);
}

const Expr& expression(const ShapeContext& context, size_t i) {
  const auto* e = std::get_if<Expr>(&context.arg(i));
  if (e == nullptr) not_covered(context, fmt::format("argument {} is not an integer", i));
  return *e;
}

int64_t integer(const ShapeContext& context, size_t i) {
  return known(context, expression(context, i));
}

bool flag(const ShapeContext& context, size_t i) {
  const auto* b = std::get_if<bool>(&context.arg(i));
  if (b == nullptr) not_covered(context, fmt::format("argument {} is not a bool", i));
  return *b;
}

std::optional<double> real(const ShapeContext& context, size_t i) {
  const graph::Argument& arg = context.arg(i);
  if (const auto* d = std::get_if<double>(&arg)) return *d;
  if (const auto* b = std::get_if<bool>(&arg)) return *b ? 1.0 : 0.0;
  if (const auto* e = std::get_if<Expr>(&arg); e != nullptr) return static_cast<double>(known(context, *e));
  return std::nullopt;
}

const std::vector<Expr>& list(const ShapeContext& context, size_t i) {
  static const std::vector<Expr> empty;
  const graph::Argument& arg = context.arg(i);
  if (std::holds_alternative<None>(arg)) return empty;
  const auto* l = std::get_if<std::vector<Expr>>(&arg);
  if (l == nullptr) not_covered(context, fmt::format("argument {} is not a list of integers", i));
  return *l;
}

std::vector<int64_t> integers(const ShapeContext& context, size_t i) {
  std::vector<int64_t> out;
  for (const Expr& e : list(context, i)) out.push_back(known(context, e));
  return out;
}

const std::vector<graph::ValueId>& tensors(const ShapeContext& context, size_t i) {
  const auto* l = std::get_if<graph::ValueList>(&context.arg(i));
  if (l == nullptr) not_covered(context, fmt::format("argument {} is not a list of tensors", i));
  return l->ids;
}

const TensorMeta* optional_tensor(const ShapeContext& context, size_t i) {
  if (context.is_tensor(i)) return &context.tensor(i);
  if (!context.is_none(i)) not_covered(context, fmt::format("argument {} is not a tensor", i));
  return nullptr;
}

std::optional<DType> optional_dtype(const ShapeContext& context, size_t i) {
  if (const auto* d = std::get_if<DType>(&context.arg(i))) return *d;
  return std::nullopt;
}

Device device_or(const ShapeContext& context, size_t i, Device otherwise) {
  const auto* d = std::get_if<Device>(&context.arg(i));
  return d == nullptr ? otherwise : *d;
}

std::optional<MemoryFormat> optional_format(const ShapeContext& context, size_t i) {
  if (const auto* f = std::get_if<MemoryFormat>(&context.arg(i))) return *f;
  return std::nullopt;
}

bool is_number(const graph::Argument& argument) {
  return std::holds_alternative<bool>(argument) || std::holds_alternative<Expr>(argument) ||
         std::holds_alternative<double>(argument) || std::holds_alternative<std::complex<double>>(argument);
}

bool is_repeated(const ShapeContext& context, const Expr& size, const Expr& other) {
  if (size == other) return false;
  if (size.is_constant()) return size == Expr(1);
  const SizeQuestions* questions = context.questions();
  if (questions == nullptr || questions->at_hand(sym::equal(size, other)) == true) return false;
  const sym::Condition is_one = sym::equal(size, 1);
  return questions->at_hand(is_one) == true && questions->decide(is_one);
}

bool agree(const ShapeContext& context, const Expr& a, const Expr& b) {
  if (context.questions() != nullptr || (a.is_constant() && b.is_constant())) return context.equal(a, b);
  return !sym::known_less(a, b) && !sym::known_less(b, a);
}

bool are_equal(const ShapeContext& context, const std::vector<Expr>& a, const std::vector<Expr>& b) {
  if (a.size() != b.size()) return false;
  for (size_t d = 0; d < a.size(); ++d)
    if (!agree(context, a[d], b[d])) return false;
  return true;
}

bool broadcasts_to(const ShapeContext& context, const std::vector<Expr>& from, const std::vector<Expr>& to) {
  if (from.size() > to.size()) return false;
  const size_t added = to.size() - from.size();
  for (size_t d = 0; d < from.size(); ++d)
    if (!is_repeated(context, from[d], to[added + d]) && !agree(context, from[d], to[added + d]))
      return false;
  return true;
}

bool is_size(const ShapeContext& context, const Expr& e) {
  if (context.questions() == nullptr) return !sym::known_less(e, 0);
  return context.require(sym::less_equal(0, e));
}

void expect_elements(const ShapeContext& context, const Expr& size) {
  if (context.questions() == nullptr || size.is_constant()) return;
  const sym::Condition has_elements = sym::less(0, size);
  if (context.questions()->at_hand(has_elements)) context.questions()->decide(has_elements);
}

int64_t wrap_dim(const ShapeContext& context, int64_t dim, int64_t rank) {
  const int64_t limit = std::max<int64_t>(rank, 1);
  if (dim < -limit || dim >= limit) not_covered(context, fmt::format("dimension {} of {}", dim, rank));
  return dim < 0 ? dim + limit : dim;
}

int64_t dim_argument(const ShapeContext& context, size_t i, int64_t rank) {
  return wrap_dim(context, integer(context, i), rank);
}

std::vector<bool> dim_mask(const ShapeContext& context, size_t i, int64_t rank, bool empty_means_all) {
  std::vector<bool> mask(static_cast<size_t>(std::max<int64_t>(rank, 1)), false);
  const auto* one = std::get_if<Expr>(&context.arg(i));
  const std::vector<Expr>& dims = one == nullptr ? list(context, i) : std::vector<Expr>{*one};
  if (dims.empty() && empty_means_all) {
    mask.assign(mask.size(), true);
  } else {
    constexpr int64_t kMostDimensions = 64;  // eager keeps them in one word
    if (rank > kMostDimensions) not_covered(context, "as many dimensions");
    for (const Expr& e : dims) {
      const auto d = static_cast<size_t>(wrap_dim(context, known(context, e), rank));
      if (mask[d]) not_covered(context, "a dimension that is named twice");
      mask[d] = true;
    }
  }
  mask.resize(static_cast<size_t>(rank));
  return mask;
}

std::vector<bool> output_mask(const ShapeContext& context) {
  const auto* mask = std::get_if<std::vector<bool>>(&context.arg(context.size() - 1));
  if (mask == nullptr || mask->size() != context.schema().returns.size())
    not_covered(context, "a mask of another length");
  return *mask;
}

}  // namespace oxy::ops
