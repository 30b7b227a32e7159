#include "ops/core/lowering_arguments.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace oxy::ops {

void not_lowered(const Node& node, std::string_view what) {
  throw Unsupported(fmt::format("{} has no kernel for {}", node.op->name, what));
}

bool is_none(const Node& node, size_t i) {
  return i >= node.args.size() || std::holds_alternative<graph::None>(node.args[i]);
}

bool is_tensor(const Node& node, size_t i) {
  return i < node.args.size() && std::holds_alternative<graph::ValueRef>(node.args[i]);
}

const Expr& expression(const Node& node, size_t i) {
  if (const auto* e = std::get_if<Expr>(&node.args.at(i))) return *e;
  not_lowered(node, fmt::format("argument {} that is not an integer", i));
}

int64_t integer(const Node& node, size_t i) {
  if (auto c = expression(node, i).as_constant()) return *c;
  not_lowered(node, fmt::format("argument {} that is not a constant", i));
}

int64_t integer_or(const Node& node, size_t i, int64_t otherwise) {
  return is_none(node, i) ? otherwise : integer(node, i);
}

bool flag(const Node& node, size_t i) {
  const graph::Argument& argument = node.args.at(i);
  if (const bool* b = std::get_if<bool>(&argument)) return *b;
  if (const auto* e = std::get_if<Expr>(&argument); e && e->is_constant()) return e->constant() != 0;
  if (std::holds_alternative<graph::None>(argument)) return false;
  not_lowered(node, fmt::format("argument {} that is not a bool", i));
}

double real(const Node& node, size_t i) {
  const graph::Argument& argument = node.args.at(i);
  if (const double* d = std::get_if<double>(&argument)) return *d;
  if (const bool* b = std::get_if<bool>(&argument)) return *b ? 1 : 0;
  if (const auto* e = std::get_if<Expr>(&argument); e && e->is_constant())
    return static_cast<double>(e->constant());
  not_lowered(node, fmt::format("argument {} that is not a constant number", i));
}

std::string text(const Node& node, size_t i) {
  if (is_none(node, i)) return "";
  if (const auto* s = std::get_if<std::string>(&node.args[i])) return *s;
  not_lowered(node, fmt::format("argument {} that is not a string", i));
}

const std::vector<Expr>& expressions(const Node& node, size_t i) {
  static const std::vector<Expr> none;
  if (is_none(node, i)) return none;
  if (const auto* list = std::get_if<std::vector<Expr>>(&node.args[i])) return *list;
  not_lowered(node, fmt::format("argument {} that is not a list of integers", i));
}

std::vector<int64_t> integers(const Node& node, size_t i) {
  std::vector<int64_t> out;
  for (const Expr& e : expressions(node, i)) {
    auto c = e.as_constant();
    if (!c) not_lowered(node, fmt::format("argument {} that is not constant", i));
    out.push_back(*c);
  }
  return out;
}

const std::vector<graph::ValueId>& tensors(const Node& node, size_t i) {
  if (const auto* list = std::get_if<graph::ValueList>(&node.args.at(i))) return list->ids;
  not_lowered(node, fmt::format("argument {} that is not a list of tensors", i));
}

int64_t wrap(int64_t dim, int64_t rank) {
  return dim < 0 ? dim + std::max<int64_t>(rank, 1) : dim;
}

int64_t dim(const Node& node, size_t i, int64_t rank) {
  return wrap(integer(node, i), rank);
}

std::vector<int64_t> dims(const Node& node, size_t i, int64_t rank) {
  std::vector<int64_t> out;
  if (!is_none(node, i)) {
    if (std::holds_alternative<Expr>(node.args[i]))
      out.push_back(integer(node, i));
    else
      out = integers(node, i);
  }
  if (rank == 0) return {};
  for (int64_t& d : out) d = wrap(d, rank);
  std::ranges::sort(out);
  if (out.empty())
    for (int64_t d = 0; d < rank; ++d) out.push_back(d);
  return out;
}

Expr from_front(const Expr& position, const Expr& size) {
  if (position.range().low >= 0) return position;
  if (position.range().high < 0) return position + size;
  const Expr sign = sym::max(sym::min(position, 0), -1);
  return position - size * sign;
}

Expr slice_bound(const graph::Argument& bound, const Expr& size, const Expr& otherwise) {
  const auto* e = std::get_if<Expr>(&bound);
  if (e == nullptr) return otherwise;
  return sym::max(sym::min(from_front(*e, size), size), 0);
}

std::pair<int64_t, int64_t> pair_of(const Node& node, size_t i) {
  std::vector<int64_t> list = integers(node, i);
  if (list.size() == 1) return {list[0], list[0]};
  if (list.size() != 2) not_lowered(node, fmt::format("argument {} that is not one or two integers", i));
  return {list[0], list[1]};
}

}  // namespace oxy::ops
