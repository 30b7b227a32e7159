#include "trace/composites/attention_masks.h"

#include <ATen/autocast_mode.h>

#include <unordered_set>

#include "ops/core/elements.h"
#include "runtime/values/host.h"
#include "trace/session/session.h"
#include "trace/session/written_values.h"
#include "trace/tensors/trace_tensor.h"

namespace oxy::trace {

namespace {

// Null: it is no tensor of the session's recording.
const TensorMeta* meta_of(const Session& session, const at::Tensor& tensor) {
  const TraceTensor* const trace = trace_tensor(tensor);
  return trace == nullptr || trace->recording() != session.id ? nullptr : &session.meta_of(trace->value());
}

// An element of the mask, if inputs and writes do not decide.
std::optional<ops::Element> element_of(const Session& session, const at::Tensor& mask,
                                       const ops::Coordinates& at) {
  const graph::Graph& graph = session.recording.graph;
  std::unordered_set<graph::ValueId> read;
  std::optional<ops::Element> element = ops::element_at(graph, trace_tensor(mask)->value(), at, &read);
  return element && !is_written(graph, read) ? element : std::nullopt;
}

// Whether eager takes this mask beside this query. Autocast converts both to one type.
bool is_taken(const at::Tensor& mask, const at::Tensor& query) {
  if (mask.scalar_type() == query.scalar_type()) return true;
  const auto is_converted = [&](const at::Tensor& tensor) {
    const at::ScalarType type = tensor.scalar_type();
    return type == at::kFloat || type == at::kHalf || type == at::kBFloat16;
  };
  return at::autocast::is_autocast_enabled(query.device().type()) && is_converted(mask) &&
         is_converted(query);
}

// Whether a mask of numbers that has this element everywhere adds nothing to scores.
bool adds_nothing(const at::Tensor& mask, const at::Tensor& query, const ops::Element& element) {
  const std::optional<Expr> number = ops::as_number(element);
  return number && *number == Expr(0) && mask.is_floating_point() && !mask.requires_grad() &&
         is_taken(mask, query);
}

// Whether attention has the same result without the mask, if that hides nothing: a mask may repeat others,
// and eager refuses some sizes.
bool adds_no_dimensions(const TensorMeta& mask, const TensorMeta& query, const TensorMeta& key,
                        const TensorMeta& value) {
  const size_t rank = query.sizes.size(), of_key = key.sizes.size(), of_value = value.sizes.size();
  if (rank < 2 || of_key < 2 || of_value < 2 || mask.sizes.size() < 2 || mask.sizes.size() > rank)
    return false;
  // Kernels without a mask do not look.
  if (!(key.sizes[of_key - 2] == value.sizes[of_value - 2])) return false;
  std::vector<Expr> scores = query.sizes;
  scores.back() = key.sizes[of_key - 2];
  const size_t more = rank - mask.sizes.size();
  for (size_t d = 0; d < mask.sizes.size(); ++d)
    if (mask.sizes[d] != Expr(1) && !(mask.sizes[d] == scores[more + d])) return false;
  return true;
}

// Whether there is an element for each pair of rows.
bool is_of_all_rows(const TensorMeta& mask, const TensorMeta& query, const TensorMeta& key) {
  const size_t rank = mask.sizes.size();
  return mask.sizes[rank - 2] == query.sizes[query.sizes.size() - 2] &&
         mask.sizes[rank - 1] == key.sizes[key.sizes.size() - 2];
}

}  // namespace

PlainMask plain_mask(const at::Tensor& mask, const at::Tensor& query, const at::Tensor& key,
                     const at::Tensor& value) {
  const Session* const session = current_session();
  const TensorMeta* const meta = session == nullptr ? nullptr : meta_of(*session, mask);
  if (meta == nullptr || mask.dim() == 0) return {mask};
  const TensorMeta *const rows = meta_of(*session, query), *const columns = meta_of(*session, key),
                          *const values = meta_of(*session, value);
  if (rows != nullptr && columns != nullptr && values != nullptr &&
      adds_no_dimensions(*meta, *rows, *columns, *values)) {
    const ops::Coordinates at = ops::coordinates_of(meta->sizes);
    const std::optional<ops::Element> element = element_of(*session, mask, at);
    if (element && adds_nothing(mask, query, *element)) return {};
    const std::optional<sym::Condition> is_seen =
        element && meta->dtype == DType::Bool ? ops::as_truth(*element) : std::nullopt;
    if (is_seen && is_seen->constant() == true) return {};
    if (is_seen && is_of_all_rows(*meta, *rows, *columns) &&
        *is_seen == sym::less_equal(at.back(), at[at.size() - 2]))
      return {.is_causal = true};
  }
  const bool is_repeated = meta->strides.back() == Expr(0);
  return {is_repeated && !runtime::is_on_host(mask) ? mask.contiguous() : mask};
}

}  // namespace oxy::trace
