#include "eval/externals/tensor_layout.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "eval/numbers/symbolic_integer.h"
#include "eval/sizes/named_numbers.h"
#include "eval/sizes/size_marks.h"
#include "eval/sizes/specified_sizes.h"
#include "eval/state/interpreter.h"
#include "guards/tensor_guard.h"
#include "runtime/values/convert.h"
#include "runtime/values/tensor_object.h"

namespace oxy::eval {

using guards::IntegerPart;

namespace {

// Whether a size or stride of the tensor at `place` is to be a symbol.
bool varies(const Interpreter& interpreter, const std::string& place, IntegerPart part, size_t dimension) {
  const auto* const known = interpreter.options.varying_sizes;
  return known != nullptr && known->contains({place, part, static_cast<int32_t>(dimension)});
}

// Whether it is to be a number, whatever else is said of it.
bool is_fixed(const Interpreter& interpreter, const std::string& place, size_t dimension) {
  const auto* const known = interpreter.options.fixed_sizes;
  return known != nullptr && known->contains({place, IntegerPart::Size, static_cast<int32_t>(dimension)});
}

// The dimensions, innermost first, if the elements fill a block of memory in that order. Empty: they do not.
std::vector<int32_t> dense_order(const at::Tensor& tensor) {
  const c10::IntArrayRef sizes = tensor.sizes(), strides = tensor.strides();
  std::vector<int32_t> order(sizes.size());
  std::iota(order.rbegin(), order.rend(), 0);
  if (guards::is_dense_in(order, sizes, strides)) return order;
  // Among equal strides a dimension with one index is the inner one.
  std::ranges::stable_sort(order, [&](int32_t a, int32_t b) {
    const auto i = static_cast<size_t>(a), j = static_cast<size_t>(b);
    return strides[i] != strides[j] ? strides[i] < strides[j] : sizes[i] < sizes[j];
  });
  if (guards::is_dense_in(order, sizes, strides)) return order;
  if (order.size() < 3) return {};
  // Channels last: where several sizes are 1, the order above is only one of many.
  order = {1};
  for (int32_t d = static_cast<int32_t>(sizes.size()) - 1; d >= 2; --d) order.push_back(d);
  order.push_back(0);
  return guards::is_dense_in(order, sizes, strides) ? order : std::vector<int32_t>();
}

// Guards the order of the strides, which decides the layout of results. The elements of inner dimensions lie
// between those of outer ones, if they do so now.
void guard_order(Interpreter& interpreter, const TensorMeta& meta, c10::IntArrayRef strides) {
  std::vector<size_t> order(meta.strides.size());
  std::iota(order.rbegin(), order.rend(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return strides[a] < strides[b]; });
  for (size_t i = 1; i < order.size(); ++i) {
    const Expr &inner = meta.strides[order[i - 1]], &outer = meta.strides[order[i]];
    if (inner.is_constant() && outer.is_constant()) continue;
    for (const sym::Condition& condition :
         {sym::less_equal(inner, outer), sym::less_equal(inner * meta.sizes[order[i - 1]], outer)})
      if (!interpreter.numbers.symbols->environment.depends_on_data(condition))
        decide(interpreter, condition);
  }
}

// What is said of the dimension, by the specification of the call before the marks of the tensor.
Dimension said_of(const std::vector<Dimension>* specified, bool is_marked, PyObject* real, size_t dimension,
                  int64_t rank) {
  if (specified != nullptr && (*specified)[dimension].mark.kind != sym::MarkKind::None)
    return (*specified)[dimension];
  return is_marked ? mark_of(real, static_cast<int32_t>(dimension), rank) : Dimension();
}

}  // namespace

std::optional<TensorMeta> admit_layout(Interpreter& interpreter, PyObject* real, SourceId source) {
  if (!interpreter.numbers.symbols) return std::nullopt;
  const bool is_marked = has_marks(real);
  const std::vector<Dimension>* const specified =
      interpreter.options.specified_sizes ? interpreter.options.specified_sizes->of_tensor(real) : nullptr;
  // Parameters and buffers have numbers for good. Other tensors that the program holds itself have numbers
  // until they change.
  const bool is_said = is_marked || specified != nullptr;
  if (interpreter.guards().is_module_state(source) && !is_said) return std::nullopt;
  const bool all_vary = interpreter.options.all_sizes_vary && !interpreter.guards().is_stable(source);
  const at::Tensor& tensor = runtime::tensor_of(real);
  const std::string place = interpreter.guards().describe(source);
  TensorMeta meta = runtime::metadata_of(tensor);
  guards::TensorGuard& guard = interpreter.guards().tensor_guard(source);
  bool has_symbols = false;
  for (size_t d = 0; d < meta.sizes.size(); ++d) {
    const auto dimension = static_cast<int32_t>(d);
    const Dimension said = said_of(specified, is_marked, real, d, tensor.dim());
    const bool is_symbol = said.mark.kind == sym::MarkKind::None
                               ? all_vary || varies(interpreter, place, IntegerPart::Size, d)
                               : said.mark.kind != sym::MarkKind::Static;
    if (!is_symbol || is_fixed(interpreter, place, d)) continue;
    meta.sizes[d] = new_symbol(interpreter, {source, IntegerPart::Size, dimension}, sym::SymbolKind::Size,
                               tensor.size(dimension), said.mark);
    if (!said.name.empty()) relate(interpreter, said, meta.sizes[d], tensor.size(dimension));
    guard.open_size(dimension);
    has_symbols = true;
  }
  if (std::vector<int32_t> order = has_symbols ? dense_order(tensor) : std::vector<int32_t>();
      !order.empty()) {
    Expr stride = 1;
    for (const int32_t dimension : order) {
      const auto d = static_cast<size_t>(dimension);
      meta.strides[d] = stride;
      stride = stride * sym::max(meta.sizes[d], 1);
    }
    guard.make_dense(std::move(order));
    return meta;
  }
  // Strides that change alone are another layout, which wants kernels of its own.
  if (!has_symbols) return std::nullopt;
  for (size_t d = 0; d < meta.strides.size(); ++d) {
    // A stride of 0 repeats elements, which is a layout of its own.
    if (tensor.strides()[d] <= 0 || !varies(interpreter, place, IntegerPart::Stride, d)) continue;
    const auto dimension = static_cast<int32_t>(d);
    meta.strides[d] = new_symbol(interpreter, {source, IntegerPart::Stride, dimension},
                                 sym::SymbolKind::Stride, tensor.stride(dimension));
    guard.open_stride(dimension);
    decide(interpreter, sym::less(0, meta.strides[d]));
  }
  guard_order(interpreter, meta, tensor.strides());
  return meta;
}

}  // namespace oxy::eval
