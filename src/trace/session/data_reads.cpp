#include "trace/session/data_reads.h"

#include <ATen/ops/nonzero.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/log.h"
#include "ops/core/registry.h"
#include "runtime/values/convert.h"
#include "trace/tensors/trace_error.h"

namespace oxy::trace {

namespace {

bool is_mask(const at::Tensor& index) {
  return index.defined() && (index.scalar_type() == at::kBool || index.scalar_type() == at::kByte);
}

}  // namespace

std::optional<sym::Range> integer_range(at::ScalarType type) {
  const auto all = []<class Number>(Number) {
    return sym::Range{std::numeric_limits<Number>::min(), std::numeric_limits<Number>::max()};
  };
  switch (type) {
    case at::kByte:
      return all(uint8_t{});
    case at::kChar:
      return all(int8_t{});
    case at::kShort:
      return all(int16_t{});
    case at::kInt:
      return all(int32_t{});
    case at::kLong:
      return sym::Range{};
    default:
      return std::nullopt;
  }
}

Expr new_computed_symbol(Session& session, sym::Range range, const std::string& what) {
  if (!session.symbols || !session.reads_data || session.is_fake)
    throw_cannot_trace(what + " depends on data");
  sym::ShapeEnvironment& environment = session.symbols->environment;
  std::string line = session.symbols->where ? session.symbols->where() : "";
  const std::string name = fmt::format("u{}", environment.symbols().size());
  log(Channel::Dynamic, "{} = data at {}: {} depends on it", name, line, what);
  return environment.data_dependent({-1, name, std::move(line)}, range);
}

void record_number(Session& session, const OperatorInfo& info, torch::jit::Stack* stack) {
  const at::Tensor tensor = stack->back().toTensor();
  const std::string what = fmt::format("the result of {}", info.schema->name);
  const std::optional<sym::Range> range = integer_range(tensor.scalar_type());
  if (!range) throw_cannot_trace(what + " depends on data");
  const Expr symbol = new_computed_symbol(session, *range, what);
  // The program may write to the tensor, and not to the copy.
  const at::Tensor copy = tensor.clone().view(at::IntArrayRef());
  session.number_tensors.emplace(symbol.variable_id(), copy);
  const graph::NodeId node = session.add_node(info.schema, {graph::ValueRef{session.value_of(copy)}}, {});
  session.recording.graph.nodes[node].computed.push_back({.variable = symbol});
  session.recording.histories.resize(session.recording.graph.nodes.size());
  stack->back() = c10::IValue(c10::Scalar(torch_api::to_torch(session.symbols, symbol)));
}

bool has_known_shape(const OperatorInfo& info, std::span<const c10::IValue> call) {
  switch (ops::traits_of(*info.schema).known_size) {
    case ops::KnownSize::Never:
      return false;
    case ops::KnownSize::WithoutMasks:
      return std::ranges::none_of(call[1].toListRef(), [](const c10::IValue& index) {
        return index.isTensor() && is_mask(index.toTensor());
      });
    case ops::KnownSize::WhenGiven:
      return !call[1].isNone();
  }
  return false;
}

c10::List<std::optional<at::Tensor>> without_masks(Session& session, const at::Tensor& self,
                                                   const c10::List<std::optional<at::Tensor>>& indices) {
  c10::List<std::optional<at::Tensor>> result;
  for (const std::optional<at::Tensor>& index : indices.vec()) {
    if (!index || !is_mask(*index)) {
      result.push_back(index);
      continue;
    }
    if (index->scalar_type() == at::kByte) throw_cannot_trace("a mask of bytes, of which eager warns");
    const auto first = static_cast<int64_t>(result.size());
    if (index->dim() == 0)
      throw_cannot_trace("the shape of what a mask without dimensions selects depends on data");
    if (first + index->dim() > self.dim()) throw_cannot_trace("too many indices");
    for (int64_t d = 0; d < index->dim(); ++d) {
      const Expr have = torch_api::expression_of(self.sym_size(first + d));
      const Expr given = torch_api::expression_of(index->sym_size(d));
      const sym::Condition fits = sym::equal(have, given);
      const bool do_fit = session.symbols ? session.symbols->environment.expect(fits, session.symbols->where)
                                          : fits.constant().value_or(false);
      if (!do_fit) throw_cannot_trace("a mask of another shape than what it selects from");
    }
    for (const at::Tensor& places : at::nonzero(*index).unbind(1)) result.push_back(places);
  }
  return result;
}

}  // namespace oxy::trace
