#include "trace/recorder/opaque_calls.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include <algorithm>

#include "aten/operators.h"
#include "base/error.h"
#include "graph/storage.h"
#include "runtime/device/autocast.h"
#include "runtime/extern/program_operators.h"
#include "runtime/values/convert.h"
#include "runtime/values/host.h"
#include "runtime/values/tensors.h"
#include "trace/metadata/fake_functions.h"
#include "trace/tensors/trace_error.h"

namespace oxy::trace {

namespace {

using graph::Argument;
using graph::ValueId;

bool is_differentiable(const TensorMeta& meta) {
  return is_floating(meta.dtype) || is_complex(meta.dtype);
}

std::vector<ValueId> values_in(const Argument& argument) {
  if (const auto* ref = std::get_if<graph::ValueRef>(&argument)) return {ref->id};
  if (const auto* list = std::get_if<graph::ValueList>(&argument)) return list->ids;
  return {};
}

// Throws CannotTrace if a written tensor shares memory with another argument: the kernel would see its writes
// through that, too.
void check_written_memory(const Session& session, const OperatorSchema& op,
                          const std::vector<Argument>& args) {
  if (!op.is_mutating()) return;
  const auto root = graph::storage_roots(session.recording.graph);
  std::vector<ValueId> seen, written;
  for (size_t i = 0; i < args.size(); ++i)
    for (const ValueId id : values_in(args[i])) {
      if (id == graph::kNoValue) continue;
      const ValueId own = root[id];
      const bool is_written = op.arguments[i].is_written;
      if (std::ranges::find(is_written ? seen : written, own) != (is_written ? seen : written).end())
        throw_cannot_trace(
            fmt::format("{} is given two tensors that share memory, and writes to one", op.name));
      seen.push_back(own);
      if (is_written) written.push_back(own);
    }
}

class OpaqueCall {
 public:
  OpaqueCall(Session& session, const OperatorInfo& info, std::vector<Argument> args, NodeHistory history,
             std::span<const c10::IValue> call)
      : session_(session),
        op_(*info.schema),
        args_(std::move(args)),
        history_(std::move(history)),
        call_(call) {}

  std::vector<c10::IValue> record(const ResultMetadata& metadata) {
    check_formula(metadata);
    const OperatorSchema* form =
        runtime::functional_call(op_, runtime::autocast_type(runtime::device_type_of(call_)));
    const bool is_form = form != &op_;
    std::vector<std::optional<TensorMeta>> metas = own_results(metadata);
    const size_t written = metas.size();
    for (size_t i = 0; i < args_.size(); ++i)
      if (op_.arguments[i].is_written) add_written(args_[i], metas);
    // Writes of a kernel are no part of autograd's graph.
    if (op_.is_mutating()) history_ = {};
    const graph::NodeId node = add_node(form, args_, metas, std::move(history_));
    outputs_ = session_.recording.graph.nodes[node].outputs;
    if (is_form) write_back(written);
    std::vector<c10::IValue> made = results(metadata);
    if (!op_.is_mutating())
      runtime::for_each_returned_tensor(made, made.size(), [&](const at::Tensor& tensor) {
        if (tensor.defined() && !session_.is_fake) session_.opaque_results.emplace_back(node, tensor);
      });
    return made;
  }

 private:
  graph::NodeId add_node(const OperatorSchema* op, std::vector<Argument> args,
                         std::vector<std::optional<TensorMeta>> metas, NodeHistory history) {
    const graph::NodeId node = session_.add_node(op, std::move(args), std::move(metas));
    session_.recording.histories.resize(session_.recording.graph.nodes.size());
    session_.recording.histories.back() = std::move(history);
    return node;
  }

  // Throws CannotTrace if a gradient is asked for and the operator has no kernel of its own for autograd.
  // Eager warns then, or raises in the backward pass.
  void check_formula(const ResultMetadata& metadata) const {
    const bool wants_gradients =
        at::GradMode::is_enabled() &&
        !c10::impl::tls_is_dispatch_key_excluded(runtime::autograd_key(runtime::device_type_of(call_))) &&
        std::ranges::find(history_.requires_grad, true) != history_.requires_grad.end();
    if (!wants_gradients) return;
    bool is_asked = std::ranges::any_of(metadata.tensors, [](const std::optional<TensorMeta>& meta) {
      return meta && is_differentiable(*meta);
    });
    for (size_t i = 0; i < args_.size(); ++i)
      for (const ValueId id : values_in(args_[i]))
        is_asked |= op_.arguments[i].is_written && id != graph::kNoValue &&
                    is_differentiable(session_.recording.graph.meta(id));
    if (is_asked)
      throw_cannot_trace(fmt::format(
          "{} has no formula for gradients and is given a tensor that requires grad; register one with "
          "torch.library.register_autograd, or call it under torch.no_grad()",
          op_.name));
  }

  // The metadata of the results that are not arguments, with lists flattened.
  std::vector<std::optional<TensorMeta>> own_results(const ResultMetadata& metadata) const {
    std::vector<std::optional<TensorMeta>> metas;
    size_t next = 0, next_list = 0;
    for (const ReturnInfo& result : op_.returns) {
      const size_t count = result.kind == ArgumentKind::TensorList ? metadata.list_sizes.at(next_list++) : 1;
      for (size_t i = 0; i < count; ++i, ++next) {
        if (result.is_written) continue;
        metas.push_back(metadata.tensors.at(next));
        // The kernel gets a copy of the argument, which lies at the start of its memory.
        if (metas.back()) metas.back()->storage_offset = 0;
      }
    }
    return metas;
  }

  void add_written(const Argument& argument, std::vector<std::optional<TensorMeta>>& metas) const {
    if (std::holds_alternative<graph::None>(argument)) metas.emplace_back();
    for (const ValueId id : values_in(argument)) {
      if (id == graph::kNoValue) {
        metas.emplace_back();
        continue;
      }
      metas.emplace_back(session_.recording.graph.meta(id));
      metas.back()->storage_offset = 0;
    }
  }

  void write_back(size_t next) {
    for (size_t i = 0; i < args_.size(); ++i) {
      if (!op_.arguments[i].is_written) continue;
      if (std::holds_alternative<graph::None>(args_[i])) ++next;
      for (const ValueId id : values_in(args_[i])) {
        const ValueId value = outputs_.at(next++);
        if (id == graph::kNoValue) continue;
        const TensorMeta meta = session_.recording.graph.meta(id);
        add_node(op::copy_into(), {graph::ValueRef{id}, graph::ValueRef{value}, false}, {meta}, {});
      }
    }
  }

  const at::Tensor& aliased_argument(const ReturnInfo& result) const {
    for (size_t i = 0; i < call_.size(); ++i)
      if (op_.arguments[i].alias_set == result.alias_set && call_[i].isTensor()) return call_[i].toTensor();
    throw_cannot_trace(fmt::format("{} returns views of a list", op_.name));
  }

  at::Tensor view_of_argument(const ReturnInfo& result, const TensorMeta& meta) {
    const at::Tensor& base = aliased_argument(result);
    if (base.scalar_type() != runtime::dtype_to_torch(meta.dtype))
      throw_cannot_trace(fmt::format("{} returns a view as another type", op_.name));
    const graph::NodeId node =
        add_node(op::as_strided(),
                 {graph::ValueRef{session_.value_of(base)}, meta.sizes, meta.strides, meta.storage_offset},
                 {meta}, {});
    return session_.make_tensor(session_.recording.graph.nodes[node].outputs[0], base.is_inference());
  }

  std::vector<c10::IValue> results(const ResultMetadata& metadata) {
    std::vector<c10::IValue> made;
    size_t next_output = 0, next = 0, next_list = 0;
    for (const ReturnInfo& result : op_.returns) {
      if (result.is_written) {
        made.emplace_back(aliased_argument(result));
        ++next;
        continue;
      }
      const auto make = [&] {
        const ValueId id = outputs_.at(next_output++);
        const std::optional<TensorMeta>& meta = metadata.tensors.at(next++);
        if (!meta) return at::Tensor();
        if (result.alias_set >= 0) return view_of_argument(result, *meta);
        return session_.make_tensor(id, c10::InferenceMode::is_enabled());
      };
      if (result.kind == ArgumentKind::Tensor) {
        made.emplace_back(make());
        continue;
      }
      c10::List<at::Tensor> list;
      const size_t count = metadata.list_sizes.at(next_list++);
      for (size_t i = 0; i < count; ++i) list.push_back(make());
      made.emplace_back(std::move(list));
    }
    return made;
  }

  Session& session_;
  const OperatorSchema& op_;
  std::vector<Argument> args_;
  NodeHistory history_;
  std::span<const c10::IValue> call_;
  std::vector<ValueId> outputs_;  // of the node
};

}  // namespace

std::vector<c10::IValue> record_opaque(Session& session, const OperatorInfo& info, std::vector<Argument> args,
                                       NodeHistory history, std::span<const c10::IValue> call) {
  for (size_t i = 0; i < args.size(); ++i)
    if (info.schema->arguments[i].is_written && !std::holds_alternative<graph::None>(args[i]) &&
        values_in(args[i]).empty() && !std::holds_alternative<graph::ValueList>(args[i]))
      throw_cannot_trace(fmt::format("{} writes to a number", info.schema->name));
  // A plan runs in the current device of its caller, on which the program's code may rely.
  if (runtime::current_device_index() != session.device)
    throw_cannot_trace(fmt::format(
        "{} is called while another device is current than at the start of the region", info.schema->name));
  session.has_opaque_calls = true;
  check_written_memory(session, *info.schema, args);
  ResultMetadata metadata = fake_metadata(session, info, args, call);
  return OpaqueCall(session, info, std::move(args), std::move(history), call).record(std::move(metadata));
}

}  // namespace oxy::trace
