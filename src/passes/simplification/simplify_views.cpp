#include "passes/simplification/simplify_views.h"

#include <algorithm>
#include <numeric>

#include "aten/operators.h"
#include "ops/core/registry.h"
#include "passes/rewriting/rewrite.h"
#include "passes/rewriting/storage_reads.h"

namespace oxy::passes {
namespace {

using Replacement = std::optional<std::vector<ValueId>>;

const TensorMeta& input_meta(const Site& site) {
  return site.graph.meta(tensor_argument(site.node, 0));
}

// A dimension argument, counted from the front.
std::optional<int64_t> dimension(const Site& site, size_t index) {
  auto dim = integer_argument(site.node, index);
  if (!dim) return std::nullopt;
  return *dim < 0 ? *dim + input_meta(site).rank() : *dim;
}

Replacement itself(const Site& site) {
  return std::vector<ValueId>{tensor_argument(site.node, 0)};
}

Replacement drop_copy(const Site& site) {
  const TensorMeta& from = input_meta(site);
  if (!same_layout(site.meta(), from)) return std::nullopt;
  // What lies in a copy of a whole storage begins where its operand does, the copy of it at the beginning.
  const Node* before = producer(site.graph, tensor_argument(site.node, 0));
  const bool begins_elsewhere = !(from.storage_offset == site.meta().storage_offset);
  if (begins_elsewhere && before != nullptr && !before->op->is_view()) return std::nullopt;
  return itself(site);
}

Replacement to_view(const Site& site) {
  ValueId x = tensor_argument(site.node, 0);
  const Node* before = producer(site.graph, x);
  if (before != nullptr && before->op == op::view()) x = tensor_argument(*before, 0);
  if (same_layout(site.graph.meta(x), site.meta())) return std::vector<ValueId>{x};
  if (site.node.op == op::view() && x == tensor_argument(site.node, 0)) return std::nullopt;
  return std::vector<ValueId>{site.emit(op::view(), {ValueRef{x}, site.meta().sizes}, site.meta())};
}

// as_strided that shows contiguous elements from the first to the last of a contiguous tensor.
Replacement as_strided_to_view(const Site& site) {
  const TensorMeta& from = input_meta(site);
  const TensorMeta& to = site.meta();
  bool same_elements = is_contiguous(from) && is_contiguous(to) && from.storage_offset == to.storage_offset &&
                       element_count(from) == element_count(to);
  if (!same_elements) return std::nullopt;
  if (same_layout(from, to)) return itself(site);
  return std::vector<ValueId>{site.emit(op::view(), {site.node.args[0], to.sizes}, to)};
}

// The source dimension of each dimension of a permuting view; empty if the arguments are not understood.
std::vector<int64_t> permutation_of(const Site& site) {
  int64_t rank = input_meta(site).rank();
  std::vector<int64_t> dims(static_cast<size_t>(rank));
  std::iota(dims.begin(), dims.end(), 0);
  if (site.node.op == op::permute()) {
    const auto* given = std::get_if<std::vector<Expr>>(&site.node.args[1]);
    if (given == nullptr || given->size() != dims.size()) return {};
    for (size_t i = 0; i < dims.size(); ++i) {
      auto dim = (*given)[i].as_constant();
      if (!dim) return {};
      dims[i] = *dim < 0 ? *dim + rank : *dim;
    }
  } else if (site.node.op == op::transpose()) {
    auto a = dimension(site, 1);
    auto b = dimension(site, 2);
    if (!a || !b) return {};
    if (rank > 0) std::swap(dims.at(static_cast<size_t>(*a)), dims.at(static_cast<size_t>(*b)));
  } else if (rank == 2) {
    std::swap(dims[0], dims[1]);
  }
  return dims;
}

// `x` with its dimensions in this order: one permutation at most, with these metadata.
ValueId permuted(const Site& site, ValueId x, std::vector<int64_t> dims, const TensorMeta& meta) {
  const Node* before = producer(site.graph, x);
  if (before != nullptr && before->op == op::permute()) {
    const auto& first = std::get<std::vector<Expr>>(before->args[1]);
    for (int64_t& dim : dims) dim = first.at(static_cast<size_t>(dim)).constant();
    x = tensor_argument(*before, 0);
  }
  if (std::is_sorted(dims.begin(), dims.end()) && same_layout(site.graph.meta(x), meta)) return x;
  std::vector<Expr> order(dims.begin(), dims.end());
  return site.emit(op::permute(), {ValueRef{x}, std::move(order)}, meta);
}

Replacement to_permute(const Site& site) {
  std::vector<int64_t> dims = permutation_of(site);
  if (dims.size() != site.meta().sizes.size()) return std::nullopt;
  return std::vector<ValueId>{permuted(site, tensor_argument(site.node, 0), std::move(dims), site.meta())};
}

// A copy of a permuted copy is one of what was copied, permuted, or that itself.
Replacement copy_once(const Site& site) {
  const Node* const permute = producer(site.graph, tensor_argument(site.node, 0));
  if (site.node.op != op::clone() || permute == nullptr || permute->op != op::permute()) return std::nullopt;
  const Node* const copy = producer(site.graph, tensor_argument(*permute, 0));
  if (copy == nullptr || copy->op != op::clone()) return std::nullopt;
  const ValueId copied = tensor_argument(*copy, 0);
  const TensorMeta from = site.graph.meta(copied);
  TensorMeta meta = from;
  std::vector<int64_t> dims;
  for (const Expr& dim : std::get<std::vector<Expr>>(permute->args[1])) {
    const auto place = static_cast<size_t>(dim.constant());
    meta.sizes[dims.size()] = from.sizes.at(place);
    meta.strides[dims.size()] = from.strides.at(place);
    dims.push_back(dim.constant());
  }
  const bool is_same = same_layout(site.meta(), meta) && meta.storage_offset == site.meta().storage_offset;
  const ValueId value = permuted(site, copied, std::move(dims), meta);
  if (is_same) return std::vector<ValueId>{value};
  return std::vector<ValueId>{site.emit(op::clone(), {ValueRef{value}, site.node.args[1]}, site.meta())};
}

Replacement simplify_expand(const Site& site) {
  if (same_layout(site.meta(), input_meta(site))) return itself(site);
  const Node* before = producer(site.graph, tensor_argument(site.node, 0));
  if (before == nullptr || before->op != site.node.op) return std::nullopt;
  return std::vector<ValueId>{
      site.emit(site.node.op, {before->args[0], site.meta().sizes, site.node.args[2]}, site.meta())};
}

ValueId emit_slice(const Site& site, int64_t dim, const Expr& start, const Expr& end,
                   const TensorMeta& meta) {
  return site.emit(op::slice(), {site.node.args[0], Expr(dim), start, end, Expr(1)}, meta);
}

Replacement split_to_slices(const Site& site) {
  auto dim = dimension(site, 2);
  if (!dim) return std::nullopt;
  std::vector<ValueId> parts;
  Expr start = 0;
  for (size_t i = 0; i < site.node.outputs.size(); ++i) {
    const TensorMeta& meta = site.meta(i);
    Expr end = start + meta.sizes.at(static_cast<size_t>(*dim));
    parts.push_back(site.node.outputs.size() == 1 && same_layout(meta, input_meta(site))
                        ? tensor_argument(site.node, 0)
                        : emit_slice(site, *dim, start, end, meta));
    start = end;
  }
  return parts;
}

Replacement unbind_to_selects(const Site& site) {
  auto dim = dimension(site, 1);
  if (!dim) return std::nullopt;
  std::vector<ValueId> parts;
  for (size_t i = 0; i < site.node.outputs.size(); ++i)
    parts.push_back(site.emit(op::select(), {site.node.args[0], Expr(*dim), Expr(static_cast<int64_t>(i))},
                              site.meta(i)));
  return parts;
}

// Bits that hold an integer of this type exactly: its width without the sign, or a float's significand.
int exact_bits(DType dtype) {
  switch (dtype) {
    case DType::Bool:
      return 1;
    case DType::Float16:
      return 11;
    case DType::BFloat16:
      return 8;
    case DType::Float32:
      return 24;
    case DType::Float64:
      return 53;
    default:
      return is_integral(dtype) ? static_cast<int>(item_size(dtype)) * 8 - (is_signed(dtype) ? 1 : 0) : 0;
  }
}

// True if every value of `from` is a value of `to`.
bool is_lossless(DType from, DType to) {
  if (from == to || from == DType::Bool) return true;
  if (is_complex(from) || is_complex(to) || to == DType::Bool) return false;
  if (is_floating(from)) return is_floating(to) && item_size(to) > item_size(from);
  if (is_integral(to) && is_signed(from) && !is_signed(to)) return false;
  return exact_bits(to) >= exact_bits(from);
}

Replacement simplify_conversion(const Site& site) {
  const TensorMeta& meta = site.meta();
  if (same_layout(meta, input_meta(site))) return itself(site);
  const Node* before = producer(site.graph, tensor_argument(site.node, 0));
  if (before == nullptr || before->op != site.node.op) return std::nullopt;
  const TensorMeta& origin = site.graph.meta(tensor_argument(*before, 0));
  const TensorMeta& middle = input_meta(site);
  bool same_place = origin.device == middle.device && middle.device == meta.device;
  if (!same_place || !is_lossless(origin.dtype, middle.dtype) || origin.strides != meta.strides)
    return std::nullopt;
  if (origin.dtype == meta.dtype) return std::vector<ValueId>{tensor_argument(*before, 0)};
  // A number outside the target's range converts differently from an integer and from a float.
  if (is_integral(meta.dtype) && is_floating(origin.dtype) != is_floating(middle.dtype)) return std::nullopt;
  std::vector<Argument> args = site.node.args;
  args[0] = before->args[0];
  return std::vector<ValueId>{site.emit(site.node.op, std::move(args), meta)};
}

// copy(self, src), slice_scatter(self, src, ...) and the like: src, if it covers all of self. With holes
// between the elements src would lose its layout where it has to be copied after all.
Replacement whole_copy(const Site& site) {
  ValueId src = tensor_argument(site.node, 1);
  if (!is_non_overlapping_and_dense(site.meta())) return std::nullopt;
  if (src == graph::kNoValue || !same_layout(site.graph.meta(src), site.meta())) return std::nullopt;
  return std::vector<ValueId>{src};
}

Replacement single_cat(const Site& site) {
  const auto* list = std::get_if<graph::ValueList>(&site.node.args[0]);
  if (list == nullptr || list->ids.size() != 1) return std::nullopt;
  if (!same_layout(site.graph.meta(list->ids.front()), site.meta())) return std::nullopt;
  return std::vector<ValueId>{list->ids.front()};
}

Replacement simplify(const Site& site) {
  const ops::Movement movement = ops::traits_of(*site.node.op).movement;
  if (movement == ops::Movement::None) return std::nullopt;
  if (movement == ops::Movement::Join) return single_cat(site);
  if (tensor_argument(site.node, 0) == graph::kNoValue) return std::nullopt;
  switch (movement) {
    case ops::Movement::None:
    case ops::Movement::Join:
      return std::nullopt;
    case ops::Movement::Keep:
      if (Replacement dropped = drop_copy(site)) return dropped;
      return copy_once(site);
    case ops::Movement::Reshape:
      return to_view(site);
    case ops::Movement::Permute:
      return to_permute(site);
    case ops::Movement::Expand:
      return simplify_expand(site);
    case ops::Movement::Split:
      return split_to_slices(site);
    case ops::Movement::Unbind:
      return unbind_to_selects(site);
    case ops::Movement::Restride:
      return as_strided_to_view(site);
    case ops::Movement::Convert:
      return simplify_conversion(site);
    case ops::Movement::Replace:
      return whole_copy(site);
  }
  return std::nullopt;
}

}  // namespace

Graph simplify_views(const Graph& source) {
  const auto read_as_storage = values_read_as_storage(source);
  const auto are_behind_results = values_behind_results(source);
  return rewrite(source, [&](const Site& site) -> Replacement {
    const bool keeps_storage = site.node.op->is_view();
    for (ValueId id : site.node.outputs)
      if (!keeps_storage && id != graph::kNoValue && read_as_storage[id]) return std::nullopt;
    Replacement replaced = simplify(site);
    if (replaced && !keeps_storage && moves_results(site, *replaced, are_behind_results)) return std::nullopt;
    return replaced;
  });
}

}  // namespace oxy::passes
