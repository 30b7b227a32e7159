#include "trace/composites/attention_masks.h"

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

// What an element of the mask says, if inputs and writes do not decide.
std::optional<sym::Condition> element_of(const Session& session, const at::Tensor& mask,
                                         const ops::Coordinates& at) {
  const graph::Graph& graph = session.recording.graph;
  std::unordered_set<graph::ValueId> read;
  const std::optional<ops::Element> element = ops::element_at(graph, trace_tensor(mask)->value(), at, &read);
  return element && !is_written(graph, read) ? ops::as_truth(*element) : std::nullopt;
}

// Whether there is an element for each pair of rows.
bool is_of_all_rows(const TensorMeta& mask, const TensorMeta* query, const TensorMeta* key) {
  if (query == nullptr || key == nullptr) return false;
  const size_t rank = mask.sizes.size(), of_query = query->sizes.size(), of_key = key->sizes.size();
  return rank >= 2 && of_query >= 2 && of_key >= 2 && mask.sizes[rank - 2] == query->sizes[of_query - 2] &&
         mask.sizes[rank - 1] == key->sizes[of_key - 2];
}

}  // namespace

PlainMask plain_mask(const at::Tensor& mask, const at::Tensor& query, const at::Tensor& key) {
  const Session* const session = current_session();
  const TensorMeta* const meta = session == nullptr ? nullptr : meta_of(*session, mask);
  if (meta == nullptr || mask.dim() == 0) return {mask};
  if (meta->dtype == DType::Bool) {
    const ops::Coordinates at = ops::coordinates_of(meta->sizes);
    if (const std::optional<sym::Condition> element = element_of(*session, mask, at)) {
      if (element->constant() == true) return {};
      if (is_of_all_rows(*meta, meta_of(*session, query), meta_of(*session, key)) &&
          *element == sym::less_equal(at.back(), at[at.size() - 2]))
        return {.is_causal = true};
    }
  }
  const bool is_repeated = meta->strides.back() == Expr(0);
  return {is_repeated && !runtime::is_on_host(mask) ? mask.contiguous() : mask};
}

}  // namespace oxy::trace
