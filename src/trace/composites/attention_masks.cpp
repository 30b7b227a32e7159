#include "trace/composites/attention_masks.h"

#include <unordered_set>

#include "ops/core/element_bounds.h"
#include "runtime/values/host.h"
#include "trace/session/session.h"
#include "trace/session/written_values.h"
#include "trace/tensors/trace_tensor.h"

namespace oxy::trace {

std::optional<at::Tensor> plain_mask(const at::Tensor& mask) {
  const Session* const session = current_session();
  const TraceTensor* const trace = trace_tensor(mask);
  if (session == nullptr || trace == nullptr || trace->recording() != session->id || mask.dim() == 0)
    return mask;
  const graph::Graph& graph = session->recording.graph;
  if (mask.scalar_type() == at::kBool) {
    std::unordered_set<graph::ValueId> read;
    const std::optional<ops::Bounds> bounds = ops::element_bounds(graph, trace->value(), &read);
    if (bounds && bounds->low >= 1 && !is_written(graph, read)) return std::nullopt;
  }
  const bool is_repeated = session->meta_of(trace->value()).strides.back() == Expr(0);
  return is_repeated && !runtime::is_on_host(mask) ? mask.contiguous() : mask;
}

}  // namespace oxy::trace
