#include "trace/view_inverse.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <span>

#include "base/error.h"

namespace oxy::trace {

namespace {

using graph::Argument;
using graph::Graph;
using graph::Node;
using graph::ValueId;
using graph::ValueRef;

struct Write {
  Graph& graph;
  const Graph& recorded;
  const Node& view;
  size_t output;
  ValueId recorded_base;
  ValueId base;
  ValueId written;
  TensorMeta result;

  ValueId add(std::string_view schema, std::vector<Argument> args) {
    const graph::NodeId node =
        graph.add_node(intern_schema(schema), std::move(args), {std::move(result)}, view.location);
    return graph.nodes[node].outputs[0];
  }
  const Argument& arg(size_t i) const { return view.args.at(i); }
  const TensorMeta& base_meta() const { return recorded.meta(recorded_base); }
  int64_t dimension(size_t i) const {
    const int64_t dim = std::get<Expr>(arg(i)).constant();
    return dim < 0 ? dim + base_meta().rank() : dim;
  }
};

constexpr std::string_view kSliceScatter =
    "aten::slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt "
    "step=1) -> "
    "Tensor";
constexpr std::string_view kSelectScatter =
    "aten::select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor";
constexpr std::string_view kDiagonalScatter =
    "aten::diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor";
constexpr std::string_view kAsStridedScatter =
    "aten::as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? "
    "storage_offset=None) "
    "-> Tensor";
constexpr std::string_view kView = "aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)";
constexpr std::string_view kTranspose =
    "aten::transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)";
constexpr std::string_view kPermute = "aten::permute(Tensor(a) self, int[] dims) -> Tensor(a)";
constexpr std::string_view kViewAsReal = "aten::view_as_real(Tensor(a) self) -> Tensor(a)";
constexpr std::string_view kViewAsComplex = "aten::view_as_complex(Tensor(a) self) -> Tensor(a)";
constexpr std::string_view kViewDType = "aten::view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)";

ValueId scatter_piece(Write& w, const Expr& start, const Expr& length, size_t dim) {
  return w.add(kSliceScatter, {ValueRef{w.base}, ValueRef{w.written}, Expr(w.dimension(dim)), start,
                               start + length, Expr(1)});
}

ValueId write_slice(Write& w) {
  return w.add(kSliceScatter,
               {ValueRef{w.base}, ValueRef{w.written}, w.arg(1), w.arg(2), w.arg(3), w.arg(4)});
}
ValueId write_select(Write& w) {
  return w.add(kSelectScatter, {ValueRef{w.base}, ValueRef{w.written}, w.arg(1), w.arg(2)});
}
ValueId write_unbound(Write& w) {
  return w.add(kSelectScatter,
               {ValueRef{w.base}, ValueRef{w.written}, w.arg(1), Expr(static_cast<int64_t>(w.output))});
}
ValueId write_split(Write& w) {
  const auto dim = static_cast<size_t>(w.dimension(2));
  const Expr start = std::get<Expr>(w.arg(1)) * Expr(static_cast<int64_t>(w.output));
  return scatter_piece(w, start, w.recorded.meta(w.view.outputs[w.output]).sizes.at(dim), 2);
}
ValueId write_split_with_sizes(Write& w) {
  const auto& sizes = std::get<std::vector<Expr>>(w.arg(1));
  const auto at = sizes.begin() + static_cast<std::ptrdiff_t>(w.output);
  return scatter_piece(w, std::accumulate(sizes.begin(), at, Expr(0)), *at, 2);
}
ValueId write_diagonal(Write& w) {
  return w.add(kDiagonalScatter, {ValueRef{w.base}, ValueRef{w.written}, w.arg(1), w.arg(2), w.arg(3)});
}
ValueId write_as_strided(Write& w) {
  // Offsets count from the start of the storage: the base's new value begins where `graph` says, not where
  // the recorded one did.
  const Expr offset = w.recorded.meta(w.view.outputs[0]).storage_offset - w.base_meta().storage_offset +
                      w.graph.meta(w.base).storage_offset;
  return w.add(kAsStridedScatter, {ValueRef{w.base}, ValueRef{w.written}, w.arg(1), w.arg(2), offset});
}

ValueId undo_view(Write& w) {
  return w.add(kView, {ValueRef{w.written}, w.base_meta().sizes});
}
ValueId undo_transpose(Write& w) {
  return w.add(kTranspose, {ValueRef{w.written}, w.arg(1), w.arg(2)});
}
ValueId undo_t(Write& w) {
  if (w.base_meta().rank() < 2) return undo_view(w);
  return w.add(kTranspose, {ValueRef{w.written}, Expr(0), Expr(1)});
}
ValueId undo_permute(Write& w) {
  const auto& dims = std::get<std::vector<Expr>>(w.arg(1));
  const auto rank = static_cast<int64_t>(dims.size());
  std::vector<Expr> inverse(dims.size());
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t dim = dims[static_cast<size_t>(i)].constant();
    inverse.at(static_cast<size_t>(dim < 0 ? dim + rank : dim)) = i;
  }
  return w.add(kPermute, {ValueRef{w.written}, std::move(inverse)});
}
ValueId undo_view_as_real(Write& w) {
  return w.add(kViewAsComplex, {ValueRef{w.written}});
}
ValueId undo_view_as_complex(Write& w) {
  return w.add(kViewAsReal, {ValueRef{w.written}});
}
ValueId undo_view_dtype(Write& w) {
  return w.add(kViewDType, {ValueRef{w.written}, w.base_meta().dtype});
}
ValueId keep(Write& w) {
  return w.written;
}

struct Entry {
  std::string_view view;
  ViewInverse kind;
  ValueId (*write)(Write&);
};
constexpr auto kEntries = std::to_array<Entry>({
    {"aten::alias", ViewInverse::Identity, keep},
    {"aten::detach", ViewInverse::Identity, keep},
    {"aten::lift_fresh", ViewInverse::Identity, keep},
    {"aten::slice.Tensor", ViewInverse::Scatter, write_slice},
    {"aten::select.int", ViewInverse::Scatter, write_select},
    {"aten::unbind.int", ViewInverse::Scatter, write_unbound},
    {"aten::split.Tensor", ViewInverse::Scatter, write_split},
    {"aten::split_with_sizes", ViewInverse::Scatter, write_split_with_sizes},
    {"aten::diagonal", ViewInverse::Scatter, write_diagonal},
    {"aten::as_strided", ViewInverse::Scatter, write_as_strided},
    {"aten::view", ViewInverse::Reshape, undo_view},
    {"aten::_reshape_alias", ViewInverse::Reshape, undo_view},
    {"aten::expand", ViewInverse::Reshape, undo_view},
    {"aten::unsqueeze", ViewInverse::Reshape, undo_view},
    {"aten::squeeze", ViewInverse::Reshape, undo_view},
    {"aten::squeeze.dim", ViewInverse::Reshape, undo_view},
    {"aten::squeeze.dims", ViewInverse::Reshape, undo_view},
    {"aten::transpose.int", ViewInverse::Reshape, undo_transpose},
    {"aten::t", ViewInverse::Reshape, undo_t},
    {"aten::permute", ViewInverse::Reshape, undo_permute},
    {"aten::view_as_real", ViewInverse::Reshape, undo_view_as_real},
    {"aten::view_as_complex", ViewInverse::Reshape, undo_view_as_complex},
    {"aten::view.dtype", ViewInverse::Reshape, undo_view_dtype},
});

const Entry* find_entry(const Node& view) {
  const auto* it =
      std::find_if(kEntries.begin(), kEntries.end(), [&](const Entry& e) { return e.view == view.op->name; });
  return it == kEntries.end() ? nullptr : it;
}

}  // namespace

ViewInverse view_inverse(const Graph& graph, const Node& view) {
  const Entry* entry = find_entry(view);
  if (entry == nullptr) return ViewInverse::None;
  if (entry->kind == ViewInverse::Reshape) {
    // A view that repeats elements (expand) has no inverse.
    const TensorMeta& base = graph.meta(std::get<ValueRef>(view.args.at(0)).id);
    const TensorMeta& output = graph.meta(view.outputs.at(0));
    const auto bytes = [](const TensorMeta& meta) {
      return element_count(meta) * Expr(static_cast<int64_t>(item_size(meta.dtype)));
    };
    if (!(bytes(base) == bytes(output))) return ViewInverse::None;
  }
  return entry->kind;
}

ValueId write_through(Graph& graph, const Graph& recorded, const Node& view, size_t output,
                      ValueId recorded_base, ValueId base, ValueId written, TensorMeta result) {
  const Entry* entry = find_entry(view);
  check(entry != nullptr, "a write through a view without an inverse");
  Write write{graph, recorded, view, output, recorded_base, base, written, std::move(result)};
  return entry->write(write);
}

bool may_overlap(const TensorMeta& meta) {
  std::vector<std::pair<int64_t, int64_t>> dims;  // stride, size
  for (size_t d = 0; d < meta.sizes.size(); ++d) {
    const std::optional<int64_t> size = meta.sizes[d].as_constant();
    const std::optional<int64_t> stride = meta.strides[d].as_constant();
    if (size == 1) continue;
    if (size == 0) return false;
    if (!size || !stride) return !is_non_overlapping_and_dense(meta);
    dims.emplace_back(*stride, *size);
  }
  std::sort(dims.begin(), dims.end());
  int64_t reach = 0;  // of the last element of the dimensions so far
  for (const auto& [stride, size] : dims) {
    if (stride <= reach) return true;
    reach += stride * (size - 1);
  }
  return false;
}

namespace {

// A number that an index may add to an address: stride * k with low <= k <= high.
struct Term {
  int64_t stride = 0;
  int64_t low = 0;
  int64_t high = 0;
};

// Whether terms [at, end), largest strides first, can add up to `sum`. `steps` bounds the search: none left
// counts as yes.
bool can_reach(std::span<const Term> terms, int64_t sum, int& steps) {
  if (terms.empty()) return sum == 0;
  if (--steps < 0) return true;
  int64_t low = 0;
  int64_t high = 0;
  for (const Term& rest : terms.subspan(1)) {
    low += rest.stride * rest.low;
    high += rest.stride * rest.high;
  }
  const Term& term = terms.front();
  const auto floor = [&](int64_t a) { return a / term.stride - (a % term.stride < 0 ? 1 : 0); };
  const int64_t first = std::max(term.low, -floor(high - sum));
  const int64_t last = std::min(term.high, floor(sum - low));
  for (int64_t k = first; k <= last; ++k)
    if (can_reach(terms.subspan(1), sum - term.stride * k, steps)) return true;
  return false;
}

}  // namespace

bool may_share_elements(const TensorMeta& a, const TensorMeta& b) {
  constexpr int kMostSteps = 2000;
  if (item_size(a.dtype) != item_size(b.dtype)) return true;
  std::map<int64_t, Term, std::greater<>> terms;
  const auto add = [&](const TensorMeta& meta, int64_t sign) {
    for (size_t d = 0; d < meta.sizes.size(); ++d) {
      const std::optional<int64_t> size = meta.sizes[d].as_constant();
      const std::optional<int64_t> stride = meta.strides[d].as_constant();
      if (!size || !stride) return false;
      if (*stride == 0 || *size <= 1) continue;
      Term& term = terms[*stride];
      term.stride = *stride;
      (sign > 0 ? term.high : term.low) += sign * (*size - 1);
    }
    return true;
  };
  const auto is_empty = [](const TensorMeta& meta) {
    return std::ranges::any_of(meta.sizes, [](const Expr& size) { return size == Expr(0); });
  };
  if (is_empty(a) || is_empty(b)) return false;
  const std::optional<int64_t> distance = (b.storage_offset - a.storage_offset).as_constant();
  if (!distance || !add(a, 1) || !add(b, -1)) return true;
  std::vector<Term> sorted;
  for (const auto& [stride, term] : terms) sorted.push_back(term);
  int steps = kMostSteps;
  return can_reach(sorted, *distance, steps);
}

}  // namespace oxy::trace
