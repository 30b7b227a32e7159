// Where tensors must be memory: extern calls, outputs and mutations.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "aten/operators.h"
#include "base/error.h"
#include "loop/context.h"
#include "loop/view.h"
#include "sym/hints.h"

namespace oxy::loop {

namespace {

// Nothing if some of them are not known.
std::optional<TensorMeta> at_hand(TensorMeta meta) {
  for (std::vector<Expr>* numbers : {&meta.sizes, &meta.strides})
    for (Expr& number : *numbers) {
      const std::optional<int64_t> known = sym::at_hand(number);
      if (!known) return std::nullopt;
      number = *known;
    }
  return meta;
}

// Strides of memory without gaps: those of `m` if it has none. Throws Unsupported where that is so for the
// sizes at hand and not known of others.
std::vector<Expr> dense_strides(const TensorMeta& m) {
  if (is_non_overlapping_and_dense(m)) return m.strides;
  const std::optional<TensorMeta> known = at_hand(m);
  if (known && !is_contiguous(*known) && is_non_overlapping_and_dense(*known))
    throw Unsupported("a tensor of sizes that change whose layout is not known");
  return contiguous_strides(m.sizes);
}

// Dimensions that repeat their elements.
std::vector<bool> repeated(const TensorMeta& m) {
  std::vector<bool> result;
  for (size_t d = 0; d < m.sizes.size(); ++d)
    result.push_back(m.strides[d] == Expr(0) && !(m.sizes[d] == Expr(1)));
  return result;
}

// The strides of memory for all elements, into which a library routine can write, also those that repeat
// others: these are apart from the first of each, which lie as in `m`.
std::vector<Expr> strides_apart(const TensorMeta& m, const std::vector<bool>& repeats) {
  if (std::ranges::find(repeats, true) == repeats.end()) return m.strides;
  TensorMeta distinct = m;
  for (size_t d = 0; d < repeats.size(); ++d)
    if (repeats[d]) distinct.sizes[d] = 1;
  if (!is_non_overlapping_and_dense(distinct)) return contiguous_strides(m.sizes);
  std::vector<Expr> strides = m.strides;
  Expr reach = element_count(distinct);
  for (size_t d = 0; d < repeats.size(); ++d) {
    if (!repeats[d]) continue;
    strides[d] = reach;
    reach = reach * m.sizes[d];
  }
  return strides;
}

// Whether it is certain that no two elements share memory: each dimension's stride is beyond what all inner
// ones reach. Sizes that are symbols are taken to be large; where they are not, there are fewer elements.
bool is_known_apart(const TensorMeta& given) {
  if (is_non_overlapping_and_dense(given)) return true;
  TensorMeta copy;
  const TensorMeta& m = with_large_sizes(given, copy);
  std::vector<size_t> left;
  for (size_t d = 0; d < m.sizes.size(); ++d) {
    if (m.sizes[d] == Expr(0)) return false;
    if (!(m.sizes[d] == Expr(1))) left.push_back(d);
  }
  Expr reach = 0;
  while (!left.empty()) {
    const auto innermost = std::ranges::find_if(left, [&](size_t d) {
      return std::ranges::all_of(
          left, [&](size_t other) { return sym::known_less_equal(m.strides[d], m.strides[other]); });
    });
    if (innermost == left.end() || !sym::known_less(reach, m.strides[*innermost])) return false;
    reach = reach + m.strides[*innermost] * (m.sizes[*innermost] - 1);
    left.erase(innermost);
  }
  return true;
}

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

}  // namespace

std::optional<BufferView> LoweringContext::window(const Tensor& x) {
  realise(*x.source);
  Buffer& buffer = program_.buffers[x.source->buffer];
  if (!buffer.strides)
    buffer.strides = x.source->strides.empty() ? contiguous_strides(buffer.sizes) : x.source->strides;
  if (!x.map) return BufferView{x.source->buffer, x.sizes, *buffer.strides, 0};
  auto view = strided(*x.map, x.sizes, *buffer.strides);
  if (!view) return std::nullopt;
  return BufferView{x.source->buffer, x.sizes, std::move(view->strides), std::move(view->offset)};
}

BufferView LoweringContext::argument_view(graph::ValueId id) {
  const TensorMeta& m = meta(id);
  auto found = window(value(id));
  if (!found || !same_strides(m.sizes, found->strides, m.strides)) {
    auto wanted = dense_strides(m);
    if (!found || same_strides(m.sizes, wanted, m.strides)) {
      values_[id] = copy(value(id), wanted);
      found = window(value(id));
    }
  }
  if (same_strides(m.sizes, found->strides, m.strides)) found->strides = m.strides;
  return std::move(*found);
}

void LoweringContext::extern_call(const graph::Node& node, bool writes_in_place, bool may_raise) {
  ExternCall call;
  call.op = node.op;
  call.location = node.location;
  call.writes_in_place = writes_in_place;
  call.may_raise = may_raise;
  for (const graph::Argument& argument : node.args)
    call.args.push_back(std::visit(
        Overloaded{[&](const graph::ValueRef& ref) -> ExternArgument { return argument_view(ref.id); },
                   [&](const graph::ValueList& list) -> ExternArgument {
                     std::vector<std::optional<BufferView>> views;
                     for (graph::ValueId id : list.ids)
                       views.push_back(id == graph::kNoValue ? std::nullopt
                                                             : std::optional(argument_view(id)));
                     return views;
                   },
                   [](const auto& other) -> ExternArgument { return other; }},
        argument));
  // What repeats elements is read at the first of each.
  const auto first_of_each = [&](Tensor whole, const std::vector<bool>& repeats) {
    if (std::ranges::find(repeats, true) == repeats.end()) return whole;
    return view(whole, whole.sizes, [&](Index index) {
      for (size_t d = 0; d < repeats.size(); ++d)
        if (repeats[d]) index[d] = 0;
      return index;
    });
  };
  for (graph::ValueId id : node.outputs) {
    if (id == graph::kNoValue || uses(id) == 0) {
      call.outputs.push_back(kNoBuffer);
      continue;
    }
    const TensorMeta& m = meta(id);
    const std::vector<bool> repeats = repeated(m);
    Tensor result = new_buffer(m.sizes, m.dtype, strides_apart(m, repeats));
    program_.buffers[result.source->buffer].device = m.device;
    result.source->is_computed = false;
    call.outputs.push_back(result.source->buffer);
    values_[id] = first_of_each(std::move(result), repeats);
  }
  program_.steps.add(std::move(call));
}

bool LoweringContext::begins_behind_room(graph::ValueId id) const {
  const TensorMeta& m = meta(id);
  const graph::NodeId producer = graph_.values[id].node;
  if (m.storage_offset == Expr(0) || producer == graph::kNoNode || graph_.nodes[producer].op->is_view())
    return false;
  return is_known_apart(m);
}

BufferView LoweringContext::behind_room(const Tensor& x, const TensorMeta& m) {
  Expr last = m.storage_offset;
  for (size_t d = 0; d < m.sizes.size(); ++d) last = last + (m.sizes[d] - 1) * m.strides[d];
  const Tensor room = new_buffer({sym::max(last + 1, 0)}, m.dtype, std::vector<Expr>{1});
  program_.buffers[room.source->buffer].device = m.device;
  store(
      room, m.sizes, [&](BodyBuilder& b, const Index& index) { return element(b, x, index); },
      [&](BodyBuilder&, const Index& index) {
        Expr position = m.storage_offset;
        for (size_t d = 0; d < index.size(); ++d) position = position + index[d] * m.strides[d];
        return Index{position};
      },
      StoreMode::Set, std::span(&x, 1));
  return {room.source->buffer, m.sizes, m.strides, m.storage_offset};
}

bool LoweringContext::is_part_of_computed(graph::ValueId id) const {
  // Other views may show an element more than once.
  const std::array movements = {op::slice(),     op::select(), op::permute(),
                                op::transpose(), op::view(),   op::alias()};
  for (;;) {
    const graph::NodeId producer = graph_.values[id].node;
    if (producer == graph::kNoNode) return false;
    const graph::Node& node = graph_.nodes[producer];
    if (!node.op->is_view()) return true;
    if (std::ranges::find(movements, node.op) == movements.end()) return false;
    id = std::get<graph::ValueRef>(node.args.at(0)).id;
  }
}

graph::ValueId LoweringContext::viewed_whole(graph::ValueId id) const {
  graph::ValueId whole = graph::kNoValue;
  const DType dtype = meta(id).dtype;
  for (graph::NodeId producer = graph_.values[id].node;
       producer != graph::kNoNode && graph_.nodes[producer].op->is_view();
       producer = graph_.values[id].node) {
    id = std::get<graph::ValueRef>(graph_.nodes[producer].args.at(0)).id;
    if (meta(id).dtype != dtype) break;  // strides count elements of another size
    if (is_non_overlapping_and_dense(meta(id))) whole = id;
  }
  return whole;
}

BufferView LoweringContext::output_view(graph::ValueId id, IdVector<BufferId, bool>& exposed) {
  const TensorMeta& m = meta(id);
  const auto usable_as = [&](const std::optional<BufferView>& view, const TensorMeta& wanted) {
    return view && program_.buffers[view->buffer].kind == BufferKind::Intermediate &&
           !(exposed.contains(view->buffer) && exposed[view->buffer]) &&
           same_strides(wanted.sizes, view->strides, wanted.strides);
  };
  auto view = window(value(id));
  if (!usable_as(view, m)) {
    // What eager returned as a view of something larger has its gaps and repetitions here as well.
    std::vector<bool> repeats = repeated(m);
    TensorMeta distinct = m;
    for (size_t d = 0; d < repeats.size(); ++d)
      if (repeats[d]) distinct.sizes[d] = 1;
    const bool any_repeats = std::ranges::find(repeats, true) != repeats.end();
    const bool is_apart = is_known_apart(distinct) || (!any_repeats && is_part_of_computed(id));
    const bool is_dense = is_non_overlapping_and_dense(m);
    const graph::ValueId seen = is_dense || is_apart ? graph::kNoValue : viewed_whole(id);
    if (seen != graph::kNoValue) {
      // Elements share memory as they do in eager.
      const TensorMeta& whole = meta(seen);
      view = window(value(seen));
      if (!usable_as(view, whole)) view = window(copy(value(seen), whole.strides));
      view = BufferView{view->buffer, m.sizes, m.strides, view->offset + graph::offset_between(whole, m)};
    } else if (is_dense || !is_apart) {
      view = window(copy(value(id), dense_strides(m)));
    } else {
      Tensor whole = value(id);
      for (size_t d = 0; d < repeats.size(); ++d)
        if (repeats[d]) distinct.sizes[d] = sym::min(m.sizes[d], 1);  // there may be none
      Tensor part = this->view(whole, distinct.sizes, [&](const Index& index) {
        Index first = index;
        for (size_t d = 0; d < repeats.size(); ++d)
          if (repeats[d]) first[d] = 0;
        return first;
      });
      view = window(copy(part, distinct.strides));
      view->sizes = m.sizes;
      view->strides = m.strides;
    }
  }
  if (same_strides(m.sizes, view->strides, m.strides)) view->strides = m.strides;
  // Without elements no index is computed. Aliases of this result are placed relative to where it begins.
  if (std::ranges::find(m.sizes, Expr(0)) != m.sizes.end()) view->offset = m.storage_offset;
  if (begins_behind_room(id) && !(view->offset == m.storage_offset)) view = behind_room(value(id), m);
  exposed.resize(program_.buffers.size());
  exposed[view->buffer] = true;
  return std::move(*view);
}

ProgramOutput LoweringContext::finish_output(const graph::Output& output, IdVector<BufferId, bool>& exposed) {
  const TensorMeta& m = meta(output.value);
  ProgramOutput result{.kind = output.kind, .alias = output.alias, .dtype = m.dtype};
  if (output.kind == graph::OutputKind::InputAlias) {
    auto alias = static_cast<size_t>(output.alias);
    result.view = {input_buffers_.at(alias), m.sizes, m.strides,
                   graph::offset_between(meta(graph_.inputs.at(alias)), m)};
    return result;
  }
  if (output.kind == graph::OutputKind::OutputAlias) {
    const ProgramOutput& aliased = program_.outputs.at(static_cast<size_t>(output.alias));
    const TensorMeta& whole = meta(graph_.outputs.at(static_cast<size_t>(output.alias)).value);
    if (same_strides(whole.sizes, aliased.view.strides, whole.strides)) {
      result.view = {aliased.view.buffer, m.sizes, m.strides, graph::offset_between(whole, m)};
      return result;
    }
    result.kind = graph::OutputKind::Value;  // the other output had to be copied
    result.alias = -1;
  }
  result.view = output_view(output.value, exposed);
  return result;
}

Program LoweringContext::finish() {
  node_ = nullptr;
  IdVector<BufferId, bool> exposed;
  for (const graph::Output& output : graph_.outputs) {
    if (output.value == graph::kNoValue) {
      program_.outputs.push_back({.kind = output.kind, .alias = output.alias});
      continue;
    }
    program_.outputs.push_back(finish_output(output, exposed));
  }
  for (const graph::Mutation& mutation : graph_.mutations) {
    auto view = window(value(mutation.value));
    // An input may be overwritten by an earlier mutation before this one reads it. One that is its own new
    // value is not read.
    const bool changes_nothing = mutation.value == graph_.inputs.at(static_cast<size_t>(mutation.input));
    if (changes_nothing && view) {
      program_.mutations.push_back({mutation.input, std::move(*view), mutation.is_seen});
      continue;
    }
    if (!view || program_.buffers[view->buffer].kind == BufferKind::Input)
      view = window(copy(value(mutation.value), contiguous_strides(meta(mutation.value).sizes)));
    program_.mutations.push_back({mutation.input, std::move(*view), mutation.is_seen});
  }
  // What is used, though not for its elements (by zeros_like), is computed for its checks.
  for (const std::optional<Tensor>& tensor : values_)
    if (tensor && tensor->source->checks && !tensor->source->is_read) realise(*tensor->source);
  return std::move(program_);
}

}  // namespace oxy::loop
