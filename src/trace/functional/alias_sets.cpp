#include "trace/functional/alias_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "aten/operators.h"
#include "base/error.h"
#include "ops/core/registry.h"
#include "sym/facts/facts.h"
#include "trace/functional/overlap.h"

namespace oxy::trace {

using graph::Argument;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;
using graph::ValueList;
using graph::ValueRef;
using ops::ViewInverse;

void AliasSets::start_root(ValueId recorded, ValueId value) {
  entry(recorded) = {.root = recorded, .value = value, .version = 0};
}

void AliasSets::add_views(graph::NodeId n) {
  const Node& node = in_.nodes[n];
  const ValueId base = aliased_argument(node, node.op->returns.at(0).alias_set);
  if (base == kNoValue || node.op->returns.size() != 1)
    throw Unsupported(fmt::format("{} aliases its arguments in an unknown way", node.op->name));
  const ValueId root = entry(base).root;
  const bool addresses_storage = ops::traits_of(*node.op).addresses_storage();
  const ValueId parent = addresses_storage ? addressed(base) : without_identities(base);
  if (addresses_storage) check_addressed(in_.meta(node.outputs[0]), n, parent, root);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    Entry& view = entry(node.outputs[i]);
    view = {.root = root, .parent = parent, .view = n, .output = i};
    // It is the same view as an ancestor, so it does not make the chain longer.
    for (ValueId id = parent; id != kNoValue; id = entry(id).parent)
      if (in_.meta(id) == in_.meta(node.outputs[i])) view = {.root = root, .parent = id};
  }
}

void AliasSets::add_same(ValueId recorded, ValueId as) {
  entry(recorded) = {.root = entry(as).root, .parent = without_identities(as)};
}

bool AliasSets::is_current(ValueId recorded) const {
  const Entry& e = entry(recorded);
  return e.version == entry(e.root).root_version;
}

ValueId AliasSets::read(ValueId recorded) {
  std::vector<ValueId> stale;
  for (ValueId id = recorded; !is_current(id); id = entry(id).parent) {
    check(entry(id).parent != kNoValue, "a root is always current");
    stale.push_back(id);
  }
  for (; !stale.empty(); stale.pop_back())
    if (!is_current(stale.back())) replay(stale.back());
  return entry(recorded).value;
}

Argument AliasSets::read_argument(const Argument& argument) {
  if (const auto* ref = std::get_if<ValueRef>(&argument)) return ValueRef{read(ref->id)};
  if (const auto* list = std::get_if<ValueList>(&argument)) {
    ValueList result = *list;
    for (ValueId& id : result.ids)
      if (id != kNoValue) id = read(id);
    return result;
  }
  return argument;
}

Expr AliasSets::in_elements_of(ValueId recorded, const Expr& offset, ValueId other) const {
  const auto own = static_cast<int64_t>(item_size(in_.meta(recorded).dtype));
  const auto item = static_cast<int64_t>(item_size(in_.meta(other).dtype));
  return own == item ? offset : sym::floordiv(offset * item, own);
}

void AliasSets::replay(ValueId recorded) {
  Entry& e = entry(recorded);
  const Entry& parent = entry(e.parent);
  const int64_t version = entry(e.root).root_version;
  const bool is_identity =
      e.view == graph::kNoNode || ops::inverse_of(in_, in_.nodes[e.view]) == ViewInverse::Kind::Identity;
  if (is_identity) {
    e.value = parent.value;
    e.version = version;
    return;
  }
  const Node& node = in_.nodes[e.view];
  // Of a tensor that was written only its own elements are known, and not what lies between them.
  if (version > 0 && ops::traits_of(*node.op).addresses_storage() &&
      (!is_non_overlapping_and_dense(in_.meta(e.parent)) ||
       !lies_within(in_.meta(recorded), e.parent, e.view)))
    throw Unsupported(fmt::format("{} reaches outside of a tensor that was written", node.op->name));
  const Expr shift = in_elements_of(
      recorded, out_.meta(parent.value).storage_offset - in_.meta(e.parent).storage_offset, e.parent);
  std::vector<Argument> args;
  for (const Argument& argument : node.args)
    args.push_back(std::holds_alternative<ValueRef>(argument) ? Argument(ValueRef{parent.value}) : argument);
  // Without an offset it begins where its tensor does, which may be another place at each call.
  const bool begins_with_parent = node.op == op::as_strided() &&
                                  std::holds_alternative<graph::None>(args.at(3)) &&
                                  std::get<ValueRef>(node.args.at(0)).id == e.parent;
  if (node.op == op::as_strided() && !begins_with_parent)
    args.at(3) = in_.meta(recorded).storage_offset + shift;
  std::vector<TensorMeta> metas;
  for (const ValueId id : node.outputs) {
    metas.push_back(in_.meta(id));
    metas.back().storage_offset = metas.back().storage_offset + shift;
  }
  const graph::LocationId line = std::exchange(out_.location, node.location);
  const std::vector<ValueId> values = out_.emit_all(node.op, std::move(args), std::move(metas));
  out_.location = line;
  for (size_t i = 0; i < values.size(); ++i) {
    Entry& sibling = entry(node.outputs[i]);
    if (sibling.view != e.view) continue;
    sibling.value = values[i];
    sibling.version = version;
  }
}

void AliasSets::move_storage_offset(const OperatorSchema& op, ValueId self,
                                    std::vector<Argument>& args) const {
  const TensorMeta& recorded = in_.meta(self);
  const Expr shift = out_.meta(std::get<ValueRef>(args.at(0)).id).storage_offset - recorded.storage_offset;
  if (shift == Expr(0) && entry(entry(self).root).root_version == 0) return;
  const auto place = static_cast<size_t>(ops::traits_of(op).storage_offset);
  TensorMeta part = recorded;
  part.sizes = std::get<std::vector<Expr>>(args.at(place - 2));
  part.strides = std::get<std::vector<Expr>>(args.at(place - 1));
  if (const auto* given = std::get_if<Expr>(&args.at(place))) part.storage_offset = *given;
  const bool reads_gaps = &op != op::as_strided_scatter() && !is_non_overlapping_and_dense(recorded);
  if (reads_gaps || !lies_within(part, self))
    throw Unsupported(fmt::format("{} reaches outside of a tensor that was written", op.name));
  args[place] = part.storage_offset + shift;
}

ValueId AliasSets::without_identities(ValueId recorded) const {
  while (entry(recorded).parent != kNoValue && entry(recorded).view == graph::kNoNode)
    recorded = entry(recorded).parent;
  return recorded;
}

ValueId AliasSets::addressed(ValueId argument) const {
  ValueId found = argument;
  for (ValueId id = argument; id != kNoValue; id = entry(id).parent)
    if (in_.meta(id).dtype == in_.meta(argument).dtype) found = id;
  return found;
}

void AliasSets::check_addressed(const TensorMeta& view, graph::NodeId n, ValueId addressed,
                                ValueId root) const {
  const bool is_argument = std::ranges::find(in_.inputs, root) != in_.inputs.end();
  if (is_argument && addressed == root) return;
  const bool has_gaps = addressed != root && !is_non_overlapping_and_dense(in_.meta(addressed));
  if (has_gaps || !lies_within(view, addressed, n))
    throw Unsupported("as_strided() may reach outside of the tensor that the storage belongs to");
}

ValueId AliasSets::coerce(ValueId value, const TensorMeta& wanted, ValueId written, bool strict_layout) {
  TensorMeta meta = out_.meta(value);
  if (meta.dtype != wanted.dtype || meta.device != wanted.device) {
    meta.dtype = wanted.dtype;
    const bool moves = meta.device != wanted.device;
    meta.device = wanted.device;
    if (!is_non_overlapping_and_dense(meta)) meta.strides = contiguous_strides(meta.sizes);
    value = out_.emit(op::to_copy(),
                      {ValueRef{value}, wanted.dtype, graph::None{},
                       moves ? Argument(wanted.device) : graph::None{}, graph::None{}, false, graph::None{}},
                      fresh(meta));
    meta = out_.meta(value);
  }
  if (meta.sizes != wanted.sizes) {
    const size_t added = wanted.sizes.size() - meta.sizes.size();
    std::vector<Expr> strides(wanted.sizes.size(), Expr(0));
    // A size that is 1 by a guard alone was expanded when it was recorded. Other sizes are equal by a guard.
    for (size_t d = added; d < wanted.sizes.size(); ++d)
      if (!(meta.sizes[d - added] == Expr(1)) || wanted.sizes[d] == Expr(1))
        strides[d] = meta.strides[d - added];
    meta.sizes = wanted.sizes;
    meta.strides = std::move(strides);
    value = out_.emit(op::expand(), {ValueRef{value}, wanted.sizes, false}, meta);
  }
  if (!strict_layout || meta.strides == wanted.strides) return value;
  if (is_contiguous(wanted) || is_channels_last(wanted)) {
    const auto format = is_contiguous(wanted)      ? MemoryFormat::Contiguous
                        : wanted.sizes.size() == 4 ? MemoryFormat::ChannelsLast
                                                   : MemoryFormat::ChannelsLast3d;
    return out_.emit(op::clone(), {ValueRef{value}, format}, fresh(wanted));
  }
  return out_.emit(op::copy(), {ValueRef{read(written)}, ValueRef{value}, false}, fresh(wanted));
}

void AliasSets::write(ValueId recorded, ValueId value, bool is_seen) {
  std::vector<std::pair<ValueId, ValueId>> path;
  ValueId id = recorded;
  for (; entry(id).parent != kNoValue; id = entry(id).parent) {
    const Entry& e = entry(id);
    const Node* view = e.view == graph::kNoNode ? nullptr : &in_.nodes[e.view];
    const auto inverse = view == nullptr ? ViewInverse::Kind::Identity : ops::inverse_of(in_, *view);
    if (may_repeat(id)) throw Unsupported("a write through a view whose elements share memory");
    if (inverse == ViewInverse::Kind::None)
      throw Unsupported(fmt::format("a write through {}", view->op->name));
    value = coerce(value, in_.meta(id), id, inverse == ViewInverse::Kind::Reshape);
    path.emplace_back(id, value);
    if (inverse == ViewInverse::Kind::Identity) continue;
    const ValueId base = read(e.parent);
    TensorMeta result = in_.meta(e.parent);
    // Scatters copy the base as it lies in its storage.
    result.storage_offset = out_.meta(inverse == ViewInverse::Kind::Scatter ? base : value).storage_offset;
    value = ops::write_through({out_.graph, in_, *view, e.output, e.parent, base, value, std::move(result)});
    // The inverse of a view may give dimensions of one element other strides.
    const Node& inverted = out_.graph.nodes.back();
    if (inverse == ViewInverse::Kind::Reshape)
      if (const auto metas = out_.rule_metadata(*inverted.op, inverted.args))
        out_.graph.values[value].meta = metas->at(0);
  }
  value = coerce(value, in_.meta(id), id, true);
  Entry& root = entry(id);
  root.value = value;
  root.version = ++root.root_version;
  root.is_seen |= is_seen;
  for (const auto& [on_path, its_value] : path) {
    // With other strides than the recorded ones, the value would not fit the views behind it. They are
    // computed again instead.
    if (out_.meta(its_value).strides != in_.meta(on_path).strides) continue;
    entry(on_path).value = its_value;
    entry(on_path).version = root.root_version;
  }
}

bool AliasSets::lies_within(const TensorMeta& view, ValueId tensor) const {
  const auto is_empty = [](const TensorMeta& meta) {
    return std::ranges::any_of(meta.sizes, [](const Expr& size) { return size == Expr(0); });
  };
  const TensorMeta& whole = in_.meta(tensor);
  if (is_empty(view)) return sym::known_less_equal(0, view.storage_offset);
  if (is_empty(whole)) return false;
  return lies_between(view, whole);
}

bool AliasSets::lies_within(const TensorMeta& view, ValueId tensor, graph::NodeId n) const {
  return lies_within(view, tensor) || lies_between_behind(n, view, in_.meta(tensor));
}

bool AliasSets::lies_between_behind(graph::NodeId n, const TensorMeta& view, const TensorMeta& whole) const {
  if (lies_between(view, whole)) return true;
  sym::Facts facts;
  for (const graph::NodeId before : in_.nodes.ids()) {
    if (before == n) break;
    for (const sym::Condition& condition : in_.nodes[before].checks) facts.add(condition);
  }
  const auto simplified = [&](TensorMeta meta) {
    for (Expr& size : meta.sizes) size = facts.simplify(size);
    for (Expr& stride : meta.strides) stride = facts.simplify(stride);
    meta.storage_offset = facts.simplify(meta.storage_offset);
    return meta;
  };
  return lies_between(simplified(view), simplified(whole));
}

bool AliasSets::may_repeat(ValueId recorded) const {
  for (ValueId id = recorded; may_overlap(in_.meta(id)); id = entry(id).parent) {
    const Entry& e = entry(id);
    if (e.parent == kNoValue) return true;
    if (e.view == graph::kNoNode) continue;
    const Node& view = in_.nodes[e.view];
    const ops::Traits& traits = ops::traits_of(*view.op);
    if (traits.addresses_storage() || traits.movement == ops::Movement::Expand ||
        ops::inverse_of(in_, view) == ViewInverse::Kind::None)
      return true;
  }
  return false;
}

void AliasSets::check_writable(ValueId recorded, const OperatorSchema& op) const {
  if (may_repeat(recorded))
    throw Unsupported(fmt::format("{} writes to a tensor whose elements share memory", op.name));
  // An argument may be a part of the storage, also of what lies between its own elements.
  for (ValueId id = recorded; id != kNoValue; id = entry(id).parent) {
    const Entry& view = entry(id);
    if (view.view == graph::kNoNode || !ops::traits_of(*in_.nodes[view.view].op).addresses_storage())
      continue;
    const TensorMeta& whole = in_.meta(view.parent);
    if (!is_non_overlapping_and_dense(whole) || !lies_between_behind(view.view, in_.meta(recorded), whole))
      throw Unsupported(fmt::format("{} writes outside of the tensor that the storage belongs to", op.name));
  }
}

void AliasSets::read_from(ValueId root, ValueId value) {
  Entry& e = entry(root);
  if (e.root_version == 0 && e.value == value) return;
  e.value = value;
  e.version = ++e.root_version;
}

}  // namespace oxy::trace
