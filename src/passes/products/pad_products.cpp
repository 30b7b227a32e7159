#include "passes/products/pad_products.h"

#include <algorithm>
#include <array>

#include "aten/operators.h"
#include "ops/core/registry.h"
#include "passes/rewriting/rewrite.h"
#include "passes/weights/constant_part.h"
#include "sym/hints.h"

namespace oxy::passes {
namespace {

// What stands before the matrices among the arguments.
size_t first_matrix(const Node& node) {
  return node.op == op::addmm() ? 1 : 0;
}

bool is_product(const Node& node) {
  return node.op == op::mm() || node.op == op::addmm();
}

// The dimension along which elements lie side by side; the library copies a matrix that has none, by rows.
size_t contiguous_dimension(const TensorMeta& matrix) {
  return matrix.strides[0] == Expr(1) && matrix.strides[1] != Expr(1) ? 0 : 1;
}

// How many elements a size lacks to a multiple; symbols lack none.
int64_t lack(const Expr& size, int64_t alignment) {
  if (!size.is_constant()) return 0;
  return (alignment - size.constant() % alignment) % alignment;
}

int64_t divisor(const Expr& size, int64_t alignment) {
  int64_t result = alignment;
  while (size.is_constant() && size.constant() % result != 0) result /= 2;
  return result;
}

int64_t bytes_of(const TensorMeta& meta) {
  return sym::estimate(element_count(meta)) * static_cast<int64_t>(item_size(meta.dtype));
}

bool is_generated(const Node& node) {
  return ops::entry_of(*node.op).lower != nullptr && !is_view_like(*node.op);
}

// Elements to be added at the end of each dimension of [rows, inner] x [inner, columns].
struct Lacks {
  int64_t rows = 0, inner = 0, columns = 0;

  bool any() const { return rows != 0 || inner != 0 || columns != 0; }
};

class ProductPadder {
 public:
  ProductPadder(const Graph& source, const ProductPadding& padding)
      : source_(source),
        padding_(padding),
        is_constant_(constant_values(source)),
        is_computed_(source.values.size()),
        is_stored_(source.values.size()) {
    for (const graph::Output& output : source.outputs) is_stored_[output.value] = true;
    for (const graph::Mutation& mutation : source.mutations) is_stored_[mutation.value] = true;
    for (const NodeId n : source.nodes.ids()) {
      const Node& node = source.nodes[n];
      if (!is_view_like(*node.op)) {
        for (const ValueId id : node.outputs)
          if (id != graph::kNoValue) is_computed_[id] = is_generated(node);
      } else if (const ValueId viewed = tensor_argument(node, 0); viewed != graph::kNoValue) {
        for (const ValueId id : node.outputs)
          if (id != graph::kNoValue) is_computed_[id] = is_computed_[viewed];
      }
    }
    for (auto n = source.nodes.end(); n != source.nodes.begin();) {
      const Node& node = *--n;
      const bool passes_on = is_view_like(*node.op);
      const bool stores =
          passes_on ? std::ranges::any_of(node.outputs,
                                          [&](ValueId id) { return id != graph::kNoValue && is_stored_[id]; })
                    : !is_generated(node);
      if (stores) graph::for_each_input(node, [&](ValueId id) { is_stored_[id] = true; });
    }
  }

  Graph run() {
    return rewrite(source_, [&](const Site& site) -> std::optional<std::vector<ValueId>> {
      if (!is_product(site.node)) return std::nullopt;
      const Lacks lacks = lacks_of(site.original);
      if (!lacks.any() || !padding_.pays(describe(site.original, lacks))) return std::nullopt;
      return {{is_parted(site.original, lacks) ? emit_parts(site, lacks) : emit(site, lacks)}};
    });
  }

 private:
  Lacks lacks_of(const Node& node) const {
    const TensorMeta& result = source_.meta(node.outputs.front());
    const int64_t alignment = padding_.alignment(result.dtype);
    const size_t first = first_matrix(node);
    const TensorMeta& left = source_.meta(tensor_argument(node, first));
    const TensorMeta& right = source_.meta(tensor_argument(node, first + 1));
    // A product with a vector, or with a few, is bound by memory, whatever its sizes.
    const bool is_matrix =
        alignment > 1 && left.sizes[0] != Expr(1) && !sym::known_less(right.sizes[1], alignment);
    if (!is_matrix || !is_contiguous(result) || !has_row_as_bias(node)) return {};
    const bool reads_inner = contiguous_dimension(left) == 1 || contiguous_dimension(right) == 0;
    const bool has_odd_rows = contiguous_dimension(left) == 0 && lack(left.strides[1], alignment) != 0;
    return {.rows = has_odd_rows ? lack(left.sizes[0], alignment) : 0,
            .inner = reads_inner ? lack(left.sizes[1], alignment) : 0,
            .columns = lack(right.sizes[1], alignment)};
  }

  // Whether columns alone are too many, and some of them are a matrix of the same layout: the weight of a
  // linear layer. Then the last ones are a product of their own, and the weight is not copied.
  bool is_parted(const Node& node, const Lacks& lacks) const {
    const TensorMeta& right = source_.meta(tensor_argument(node, first_matrix(node) + 1));
    return lacks.columns != 0 && lacks.rows == 0 && lacks.inner == 0 && contiguous_dimension(right) == 0 &&
           right.sizes[1].constant() > padding_.alignment(right.dtype);
  }

  // What an addmm adds is a row, if it adds anything.
  bool has_row_as_bias(const Node& node) const {
    return node.op != op::addmm() || source_.meta(tensor_argument(node, 0)).rank() == 1;
  }

  ProductSite describe(const Node& node, const Lacks& lacks) const {
    const size_t first = first_matrix(node);
    const ValueId left = tensor_argument(node, first), right = tensor_argument(node, first + 1);
    const TensorMeta& a = source_.meta(left);
    const TensorMeta& b = source_.meta(right);
    const TensorMeta& result = source_.meta(node.outputs.front());
    const int64_t alignment = padding_.alignment(result.dtype);
    ProductSite site{.dtype = result.dtype,
                     .device = result.device,
                     .rows = sym::estimate(a.sizes[0]),
                     .inner = sym::estimate(a.sizes[1]),
                     .columns = sym::estimate(b.sizes[1])};
    site.divisor = std::min({lacks.rows != 0 ? divisor(a.sizes[0], alignment) : alignment,
                             lacks.inner != 0 ? divisor(a.sizes[1], alignment) : alignment,
                             divisor(b.sizes[1], alignment)});
    const auto count_copy = [&](int64_t bytes) {
      site.copied_bytes += 2 * bytes;
      ++site.copies;
    };
    if (lacks.rows != 0 || lacks.inner != 0) count_operand(left, count_copy);
    if (is_parted(node, lacks))
      ++site.copies;  // a small kernel more
    else if (lacks.inner != 0 || lacks.columns != 0)
      count_operand(right, count_copy);
    if (lacks.columns != 0 && is_stored_[node.outputs.front()]) count_copy(bytes_of(result));
    return site;
  }

  template <class Count>
  void count_operand(ValueId id, Count count) const {
    if (!is_constant_[id] && !is_computed_[id]) count(bytes_of(source_.meta(id)));
  }

  ValueId emit_parts(const Site& site, const Lacks& lacks) const {
    const size_t first = first_matrix(site.node);
    const TensorMeta& result = site.meta();
    const int64_t columns = result.sizes[1].constant(), alignment = padding_.alignment(result.dtype);
    const int64_t whole = columns + lacks.columns - alignment;
    graph::ValueList parts;
    for (const auto& [begin, end] : {std::pair{int64_t{0}, whole}, {whole, columns}}) {
      std::vector<Argument> arguments = site.node.args;
      arguments[first + 1] = ValueRef{part(site, tensor_argument(site.node, first + 1), 1, begin, end)};
      if (first == 1)
        if (const ValueId bias = tensor_argument(site.node, 0); site.graph.meta(bias).sizes[0] != Expr(1))
          arguments[0] = ValueRef{part(site, bias, 0, begin, end)};
      parts.ids.push_back(
          site.emit(site.node.op, std::move(arguments),
                    contiguous_meta(result.dtype, result.device, {result.sizes[0], Expr(end - begin)})));
    }
    return site.emit(op::cat(), {std::move(parts), Expr(1)}, result);
  }

  static ValueId emit(const Site& site, const Lacks& lacks) {
    const size_t first = first_matrix(site.node);
    std::vector<Argument> arguments = site.node.args;
    ValueId left = tensor_argument(site.node, first);
    const Expr rows = site.graph.meta(left).sizes[0];
    left = padded<2>(site, left, {{lacks.rows, lacks.inner}});
    // Wide rows are enough where the result has its own size: nothing has to be copied out of it.
    if (lacks.rows != 0) left = first_of(site, left, 0, rows);
    arguments[first] = ValueRef{left};
    arguments[first + 1] =
        ValueRef{padded<2>(site, tensor_argument(site.node, first + 1), {{lacks.inner, lacks.columns}})};
    const TensorMeta& result = site.meta();
    if (lacks.columns == 0) return site.emit(site.node.op, std::move(arguments), result);
    if (first == 1)
      if (const ValueId bias = tensor_argument(site.node, 0); site.graph.meta(bias).sizes[0] != Expr(1))
        arguments[0] = ValueRef{padded<1>(site, bias, {{lacks.columns}})};
    const TensorMeta wide = contiguous_meta(result.dtype, result.device,
                                            {result.sizes[0], result.sizes[1] + Expr(lacks.columns)});
    const ValueId product = site.emit(site.node.op, std::move(arguments), wide);
    return site.emit(op::clone(),
                     {ValueRef{first_of(site, product, 1, result.sizes[1])}, MemoryFormat::Contiguous},
                     result);
  }

  // With zeros at the end of each dimension; elements lie side by side along the dimension along which they
  // do now.
  template <size_t rank>
  static ValueId padded(const Site& site, ValueId value, const std::array<int64_t, rank>& lack) {
    if (std::ranges::all_of(lack, [](int64_t count) { return count == 0; })) return value;
    const TensorMeta& meta = site.graph.meta(value);
    if constexpr (rank == 2)
      if (contiguous_dimension(meta) == 0)
        return transposed(site, padded<rank>(site, transposed(site, value), {{lack.back(), lack.front()}}));
    std::vector<Expr> pads, sizes = meta.sizes;
    for (size_t d = rank; d-- > 0;) {
      pads.insert(pads.end(), {Expr(0), Expr(lack[d])});
      sizes[d] = sizes[d] + Expr(lack[d]);
    }
    TensorMeta result = contiguous_meta(meta.dtype, meta.device, std::move(sizes));
    return site.emit(op::constant_pad(), {ValueRef{value}, std::move(pads), Expr(0)}, std::move(result));
  }

  static ValueId part(const Site& site, ValueId value, size_t dimension, const Expr& begin, const Expr& end) {
    TensorMeta meta = site.graph.meta(value);
    meta.sizes[dimension] = end - begin;
    meta.storage_offset = meta.storage_offset + begin * meta.strides[dimension];
    return site.emit(op::slice(),
                     {ValueRef{value}, Expr(static_cast<int64_t>(dimension)), begin, end, Expr(1)},
                     std::move(meta));
  }

  static ValueId first_of(const Site& site, ValueId value, size_t dimension, const Expr& count) {
    return part(site, value, dimension, Expr(0), count);
  }

  const Graph& source_;
  const ProductPadding& padding_;
  IdVector<ValueId, bool> is_constant_;
  IdVector<ValueId, bool> is_computed_;  // by a generated kernel, which may write it with the padding
  IdVector<ValueId, bool> is_stored_;    // something else than a generated kernel reads it as it lies
};

}  // namespace

Graph pad_products(const Graph& source, const ProductPadding& padding) {
  if (!padding.alignment) return source;
  return ProductPadder(source, padding).run();
}

}  // namespace oxy::passes
