#include "sym/expr.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "sym/node.h"

namespace oxy::sym {

namespace {

size_t mix(size_t seed, size_t value) {
  value *= 0x9E3779B97F4A7C15ull;
  value ^= value >> 32;
  return (seed ^ value) * 0xD6E8FEB86659FD93ull + 0x165667B19E3779F9ull;
}

int rank(Kind kind) {
  switch (kind) {
    case Kind::Variable:
      return 0;
    case Kind::Product:
      return 1;
    case Kind::FloorDiv:
      return 2;
    case Kind::Mod:
      return 3;
    case Kind::Min:
      return 4;
    case Kind::Max:
      return 5;
    case Kind::Sum:
      return 6;
    case Kind::Constant:
      return 7;
  }
  return 8;
}

void release(uintptr_t bits) {
  if ((bits & 1) != 0 || bits == 0) return;
  const Node* node = reinterpret_cast<const Node*>(bits);
  if (node->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete node;
}

}  // namespace

Expr::Expr(int64_t value) : bits_((static_cast<uintptr_t>(value) << 1) | 1) {
  if ((static_cast<int64_t>(bits_) >> 1) != value) [[unlikely]]
    throw ArithmeticError("a number that sizes are computed with does not fit in 63 bits");
}

Expr::Expr(const Node* node) : bits_(reinterpret_cast<uintptr_t>(node)) {
  node->references.fetch_add(1, std::memory_order_relaxed);
}

Expr::Expr(const Expr& other) : bits_(other.bits_) {
  if ((bits_ & 1) == 0) Node::of(*this)->references.fetch_add(1, std::memory_order_relaxed);
}

Expr::Expr(Expr&& other) noexcept : bits_(std::exchange(other.bits_, 1)) {}

Expr& Expr::operator=(const Expr& other) {
  Expr copy(other);
  std::swap(bits_, copy.bits_);
  return *this;
}

Expr& Expr::operator=(Expr&& other) noexcept {
  std::swap(bits_, other.bits_);
  return *this;
}

Expr::~Expr() {
  release(bits_);
}

Expr make_node(Kind kind, std::vector<Expr> operands, std::string name, int64_t id, Range range) {
  auto* node = new Node;
  node->kind = kind;
  size_t hash = mix(0, static_cast<size_t>(kind) + 1);
  if (kind == Kind::Variable) {
    hash = mix(hash, static_cast<size_t>(id));
    node->range = range;
    node->variable_mask = uint64_t{1} << (static_cast<uint64_t>(id) % 64);
  } else {
    for (const Expr& operand : operands) {
      hash = mix(hash, operand.hash());
      node->variable_mask |= variable_mask(operand);
    }
    node->range = range_of(kind, operands);
  }
  node->hash = hash;
  node->operands = std::move(operands);
  node->name = std::move(name);
  node->id = id;
  return Expr(node);
}

Expr Expr::variable(std::string name, int64_t id, Range range) {
  return make_node(Kind::Variable, {}, std::move(name), id, range);
}

Expr Expr::variable(std::string name, int64_t id, Range range, Expr limit) {
  Expr result = make_node(Kind::Variable, {}, std::move(name), id, range);
  if (!limit.is_constant())
    const_cast<Node*>(Node::of(result))->limit = std::move(limit);  // nobody else has it yet
  return result;
}

Kind Expr::kind() const {
  return is_constant() ? Kind::Constant : Node::of(*this)->kind;
}

bool Expr::is_constant() const {
  return (bits_ & 1) != 0;
}

int64_t Expr::constant() const {
  check(is_constant(), "the expression is not a constant");
  return static_cast<int64_t>(bits_) >> 1;
}

std::optional<int64_t> Expr::as_constant() const {
  if (!is_constant()) return std::nullopt;
  return static_cast<int64_t>(bits_) >> 1;
}

std::span<const Expr> Expr::operands() const {
  if (is_constant()) return {};
  return Node::of(*this)->operands;
}

int64_t Expr::variable_id() const {
  check(kind() == Kind::Variable, "the expression is not a variable");
  return Node::of(*this)->id;
}

const std::string& Expr::variable_name() const {
  check(kind() == Kind::Variable, "the expression is not a variable");
  return Node::of(*this)->name;
}

Range Expr::range() const {
  if (is_constant()) return {constant(), constant()};
  return Node::of(*this)->range;
}

size_t Expr::hash() const {
  if (is_constant()) return mix(17, static_cast<size_t>(constant()));
  return Node::of(*this)->hash;
}

bool operator==(const Expr& a, const Expr& b) {
  if (Node::same_bits(a, b)) return true;
  if (a.is_constant() || b.is_constant()) return false;
  const Node& x = *Node::of(a);
  const Node& y = *Node::of(b);
  if (x.hash != y.hash || x.kind != y.kind) return false;
  if (x.kind == Kind::Variable) return x.id == y.id;
  return std::ranges::equal(x.operands, y.operands);
}

std::strong_ordering compare(const Expr& a, const Expr& b) {
  if (Node::same_bits(a, b)) return std::strong_ordering::equal;
  if (auto order = rank(a.kind()) <=> rank(b.kind()); order != 0) return order;
  if (a.is_constant()) return a.constant() <=> b.constant();
  if (a.kind() == Kind::Variable) return a.variable_id() <=> b.variable_id();
  std::span<const Expr> x = a.operands();
  std::span<const Expr> y = b.operands();
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i)
    if (auto order = compare(x[i], y[i]); order != 0) return order;
  return x.size() <=> y.size();
}

namespace {

// Text with parentheses around whatever binds weaker than `level`: 0 sum, 1 product, 2 operand.
std::string text(const Expr& e, int level);

std::string join(std::span<const Expr> factors) {
  std::string out;
  for (const Expr& factor : factors) {
    if (!out.empty()) out += "*";
    out += text(factor, 2);
  }
  return out;
}

std::string sum_text(const Expr& e) {
  std::string out;
  for (const Expr& term : e.operands()) {
    Monomial m = monomial(term);
    bool negative = m.coefficient < 0;
    if (out.empty()) {
      out += text(term, 1);
      continue;
    }
    out += negative ? " - " : " + ";
    int64_t size = negative ? -m.coefficient : m.coefficient;
    if (m.factors.empty())
      out += fmt::format("{}", size);
    else if (m.factors.size() == 1 && size == 1)
      out += text(m.factors[0], 1);
    else
      out += (size == 1 ? "" : fmt::format("{}*", size)) + join(m.factors);
  }
  return out;
}

std::string text(const Expr& e, int level) {
  std::string out;
  int own = 2;
  switch (e.kind()) {
    case Kind::Constant:
      out = fmt::format("{}", e.constant());
      break;
    case Kind::Variable:
      out = e.variable_name();
      break;
    case Kind::Sum:
      out = sum_text(e);
      own = 0;
      break;
    case Kind::Product: {
      Monomial m = monomial(e);
      std::string prefix = m.coefficient == 1    ? ""
                           : m.coefficient == -1 ? "-"
                                                 : fmt::format("{}*", m.coefficient);
      out = prefix + join(m.factors);
      own = 1;
      break;
    }
    case Kind::FloorDiv:
    case Kind::Mod:
      out = fmt::format("{} {} {}", text(e.operands()[0], 2), e.kind() == Kind::Mod ? "%" : "//",
                        text(e.operands()[1], 2));
      own = 1;
      break;
    case Kind::Min:
    case Kind::Max:
      out = fmt::format("{}({}, {})", e.kind() == Kind::Min ? "min" : "max", text(e.operands()[0], 0),
                        text(e.operands()[1], 0));
      break;
  }
  return own < level ? "(" + out + ")" : out;
}

}  // namespace

std::string Expr::str() const {
  return text(*this, 0);
}

}  // namespace oxy::sym
