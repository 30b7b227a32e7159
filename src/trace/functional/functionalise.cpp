// Every recorded value belongs to an alias set: a root, which owns the storage, and chains of views that
// begin at it. The rewritten graph has the current contents of each root. A write makes new contents. A view
// is computed again from them when it is read for the first time after the write.
#include "trace/functional/functionalise.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <unordered_map>

#include "aten/operators.h"
#include "base/error.h"
#include "ops/core/registry.h"
#include "trace/functional/functional_forms.h"
#include "trace/functional/overlap.h"

namespace oxy::trace {

namespace {

using graph::Argument;
using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::OutputKind;
using graph::ValueId;
using graph::ValueList;
using graph::ValueRef;
using ops::ViewInverse;

bool is_number(const Argument& argument) {
  return std::holds_alternative<bool>(argument) || std::holds_alternative<Expr>(argument) ||
         std::holds_alternative<double>(argument) || std::holds_alternative<std::complex<double>>(argument);
}

class Functionaliser {
 public:
  Functionaliser(const Graph& recorded, DType default_dtype)
      : in_(recorded), default_dtype_(default_dtype), entries_(recorded.values.size()) {}

  Graph run() {
    out_.locations = in_.locations;
    for (const ValueId id : in_.inputs) start_root(id, out_.add_input(in_.meta(id)));
    for (const graph::Constant& constant : in_.constants)
      start_root(constant.value, out_.add_constant(in_.meta(constant.value), constant.handle));
    for (const graph::NodeId n : in_.nodes.ids()) {
      const Node& node = in_.nodes[n];
      location_ = node.location;
      if (node.op->is_mutating())
        mutate(node);
      else if (node.op->is_view())
        add_views(n);
      else
        copy_node(node);
    }
    location_ = graph::kNoLocation;
    add_mutations();
    add_outputs();
    return std::move(out_);
  }

 private:
  // What is known of a recorded value.
  struct Entry {
    ValueId root;
    ValueId parent;      // none: a root
    graph::NodeId view;  // that made it from its parent; none: it is its parent (a written argument)
    size_t output = 0;
    ValueId value;  // its value in the new graph as of `version`
    int64_t version = -1;
    int64_t root_version = 0;  // of a root: counts writes
    bool is_seen = false;      // likewise: one of them is for autograd
  };

  Entry& entry(ValueId recorded) { return entries_.at(recorded); }

  void start_root(ValueId recorded, ValueId value) {
    entry(recorded) = {.root = recorded, .value = value, .version = 0};
  }

  ValueId emit(const OperatorSchema* op, std::vector<Argument> args, TensorMeta meta) {
    return emit_all(op, std::move(args), {std::move(meta)})[0];
  }

  std::vector<ValueId> emit_all(const OperatorSchema* op, std::vector<Argument> args,
                                std::vector<TensorMeta> metas) {
    const graph::NodeId node = out_.add_node(op, std::move(args), std::move(metas), location_);
    return out_.nodes[node].outputs;
  }

  // --- reading

  bool is_current(ValueId recorded) {
    const Entry& e = entry(recorded);
    return e.version == entry(e.root).root_version;
  }

  ValueId read(ValueId recorded) {
    std::vector<ValueId> stale;
    for (ValueId id = recorded; !is_current(id); id = entry(id).parent) {
      check(entry(id).parent != kNoValue, "a root is always current");
      stale.push_back(id);
    }
    for (; !stale.empty(); stale.pop_back())
      if (!is_current(stale.back())) replay(stale.back());
    return entry(recorded).value;
  }

  Argument read_argument(const Argument& argument) {
    if (const auto* ref = std::get_if<ValueRef>(&argument)) return ValueRef{read(ref->id)};
    if (const auto* list = std::get_if<ValueList>(&argument)) {
      ValueList result = *list;
      for (ValueId& id : result.ids)
        if (id != kNoValue) id = read(id);
      return result;
    }
    return argument;
  }

  // Converts an offset in elements of `other` to elements of `recorded`, which may have another size.
  Expr in_elements_of(ValueId recorded, const Expr& offset, ValueId other) const {
    const auto own = static_cast<int64_t>(item_size(in_.meta(recorded).dtype));
    const auto item = static_cast<int64_t>(item_size(in_.meta(other).dtype));
    return own == item ? offset : sym::floordiv(offset * item, own);
  }

  // Computes a view again from its parent, whose value is current.
  void replay(ValueId recorded) {
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
    const Expr shift = in_elements_of(
        recorded, out_.meta(parent.value).storage_offset - in_.meta(e.parent).storage_offset, e.parent);
    std::vector<Argument> args;
    for (const Argument& argument : node.args)
      args.push_back(std::holds_alternative<ValueRef>(argument) ? Argument(ValueRef{parent.value})
                                                                : argument);
    if (node.op == op::as_strided()) args.at(3) = in_.meta(recorded).storage_offset + shift;
    std::vector<TensorMeta> metas;
    for (const ValueId id : node.outputs) {
      metas.push_back(in_.meta(id));
      metas.back().storage_offset = metas.back().storage_offset + shift;
    }
    const graph::LocationId line = std::exchange(location_, node.location);
    const std::vector<ValueId> values = emit_all(node.op, std::move(args), std::move(metas));
    location_ = line;
    for (size_t i = 0; i < values.size(); ++i) {
      Entry& sibling = entry(node.outputs[i]);
      if (sibling.view != e.view) continue;
      sibling.value = values[i];
      sibling.version = version;
    }
  }

  // --- nodes that write nothing

  // Eager compares integers with a float in the default dtype. Later stages do not know that dtype.
  void convert_compared(const OperatorSchema& op, std::vector<Argument>& args) {
    if (default_dtype_ == DType::Float32 || !ops::traits_of(op).compares_in_default_dtype ||
        !std::holds_alternative<double>(args.at(1)))
      return;
    const ValueId compared = std::get<ValueRef>(args[0]).id;
    TensorMeta meta = out_.meta(compared);
    if (is_floating(meta.dtype) || is_complex(meta.dtype)) return;
    meta.dtype = default_dtype_;
    if (!is_non_overlapping_and_dense(meta)) meta.strides = contiguous_strides(meta.sizes);
    args[0] = ValueRef{emit(op::to_copy(),
                            {ValueRef{compared}, default_dtype_, graph::None{}, graph::None{}, graph::None{},
                             false, graph::None{}},
                            fresh(meta))};
  }

  // Of a call of `op`, which is recorded on `self`. The new value of `self` may begin at another place of its
  // storage, and holds its own elements alone.
  void move_storage_offset(const OperatorSchema& op, ValueId self, std::vector<Argument>& args) {
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

  void copy_node(const Node& node) {
    Node copy{.op = node.op, .args = {}, .outputs = {}, .location = location_};
    for (const Argument& argument : node.args) copy.args.push_back(read_argument(argument));
    convert_compared(*copy.op, copy.args);
    if (ops::traits_of(*node.op).addresses_storage())
      move_storage_offset(*node.op, std::get<ValueRef>(node.args.at(0)).id, copy.args);
    for (const ValueId id : node.outputs) {
      copy.outputs.push_back(id == kNoValue ? kNoValue : out_.add_value(in_.meta(id)));
      if (id == kNoValue) continue;
      out_.values.back().node = out_.nodes.next_id();
      start_root(id, copy.outputs.back());
    }
    out_.nodes.add(std::move(copy));
  }

  ValueId aliased_argument(const Node& node, int alias_set) const {
    for (size_t i = 0; i < node.args.size(); ++i)
      if (node.op->arguments[i].alias_set == alias_set && std::holds_alternative<ValueRef>(node.args[i]))
        return std::get<ValueRef>(node.args[i]).id;
    return kNoValue;
  }

  ValueId without_identities(ValueId recorded) {
    while (entry(recorded).parent != kNoValue && entry(recorded).view == graph::kNoNode)
      recorded = entry(recorded).parent;
    return recorded;
  }

  // What an operator addresses the storage of its argument through: the root, or the outermost view on the
  // way to it that has elements of the argument's type.
  ValueId addressed(ValueId argument) {
    ValueId found = argument;
    for (ValueId id = argument; id != kNoValue; id = entry(id).parent)
      if (in_.meta(id).dtype == in_.meta(argument).dtype) found = id;
    return found;
  }

  // An argument may be a part of its storage, the elements of which are the caller's.
  void check_addressed(const TensorMeta& view, ValueId addressed, ValueId root) {
    const bool is_argument = std::ranges::find(in_.inputs, root) != in_.inputs.end();
    if (is_argument && addressed == root) return;
    const bool has_gaps = addressed != root && !is_non_overlapping_and_dense(in_.meta(addressed));
    if (has_gaps || !lies_within(view, addressed))
      throw Unsupported("as_strided() may reach outside of the tensor that the storage belongs to");
  }

  void add_views(graph::NodeId n) {
    const Node& node = in_.nodes[n];
    const ValueId base = aliased_argument(node, node.op->returns.at(0).alias_set);
    if (base == kNoValue || node.op->returns.size() != 1)
      throw Unsupported(fmt::format("{} aliases its arguments in an unknown way", node.op->name));
    const ValueId root = entry(base).root;
    const bool addresses_storage = ops::traits_of(*node.op).addresses_storage();
    const ValueId parent = addresses_storage ? addressed(base) : without_identities(base);
    if (addresses_storage) check_addressed(in_.meta(node.outputs[0]), parent, root);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      Entry& view = entry(node.outputs[i]);
      view = {.root = root, .parent = parent, .view = n, .output = i};
      // It is the same view as an ancestor, so it does not make the chain longer.
      for (ValueId id = parent; id != kNoValue; id = entry(id).parent)
        if (in_.meta(id) == in_.meta(node.outputs[i])) view = {.root = root, .parent = id};
    }
  }

  // --- writes

  static TensorMeta fresh(TensorMeta meta) {
    meta.storage_offset = 0;
    return meta;
  }

  // `value` with the element type and sizes of `wanted`; with `strict_layout` also with its strides.
  ValueId coerce(ValueId value, const TensorMeta& wanted, ValueId written, bool strict_layout) {
    TensorMeta meta = out_.meta(value);
    if (meta.dtype != wanted.dtype || meta.device != wanted.device) {
      meta.dtype = wanted.dtype;
      const bool moves = meta.device != wanted.device;
      meta.device = wanted.device;
      if (!is_non_overlapping_and_dense(meta)) meta.strides = contiguous_strides(meta.sizes);
      value = emit(op::to_copy(),
                   {ValueRef{value}, wanted.dtype, graph::None{},
                    moves ? Argument(wanted.device) : graph::None{}, graph::None{}, false, graph::None{}},
                   fresh(meta));
      meta = out_.meta(value);
    }
    if (meta.sizes != wanted.sizes) {
      const size_t added = wanted.sizes.size() - meta.sizes.size();
      std::vector<Expr> strides(wanted.sizes.size(), Expr(0));
      for (size_t d = added; d < wanted.sizes.size(); ++d)
        if (meta.sizes[d - added] == wanted.sizes[d]) strides[d] = meta.strides[d - added];
      meta.sizes = wanted.sizes;
      meta.strides = std::move(strides);
      value = emit(op::expand(), {ValueRef{value}, wanted.sizes, false}, meta);
    }
    if (!strict_layout || meta.strides == wanted.strides) return value;
    if (is_contiguous(wanted) || is_channels_last(wanted)) {
      const auto format = is_contiguous(wanted)      ? MemoryFormat::Contiguous
                          : wanted.sizes.size() == 4 ? MemoryFormat::ChannelsLast
                                                     : MemoryFormat::ChannelsLast3d;
      return emit(op::clone(), {ValueRef{value}, format}, fresh(wanted));
    }
    return emit(op::copy(), {ValueRef{read(written)}, ValueRef{value}, false}, fresh(wanted));
  }

  // From now on `recorded` reads as `value`.
  void write(ValueId recorded, ValueId value) {
    std::vector<std::pair<ValueId, ValueId>> path;
    ValueId id = recorded;
    for (; entry(id).parent != kNoValue; id = entry(id).parent) {
      const Entry& e = entry(id);
      const Node* view = e.view == graph::kNoNode ? nullptr : &in_.nodes[e.view];
      const auto inverse = view == nullptr ? ViewInverse::Kind::Identity : ops::inverse_of(in_, *view);
      if (may_overlap(in_.meta(id))) throw Unsupported("a write through a view whose elements share memory");
      if (inverse == ViewInverse::Kind::None)
        throw Unsupported(fmt::format("a write through {}", view->op->name));
      value = coerce(value, in_.meta(id), id, inverse == ViewInverse::Kind::Reshape);
      path.emplace_back(id, value);
      if (inverse == ViewInverse::Kind::Identity) continue;
      const ValueId base = read(e.parent);
      TensorMeta result = in_.meta(e.parent);
      // Scatters copy the base as it lies in its storage.
      result.storage_offset = out_.meta(inverse == ViewInverse::Kind::Scatter ? base : value).storage_offset;
      value = ops::write_through({out_, in_, *view, e.output, e.parent, base, value, std::move(result)});
      // The inverse of a view may give dimensions of one element other strides.
      const Node& inverted = out_.nodes.back();
      if (inverse == ViewInverse::Kind::Reshape)
        if (const auto metas = rule_metadata(*inverted.op, inverted.args))
          out_.values[value].meta = metas->at(0);
    }
    value = coerce(value, in_.meta(id), id, true);
    Entry& root = entry(id);
    root.value = value;
    root.version = ++root.root_version;
    root.is_seen |= is_seen_;
    for (const auto& [on_path, its_value] : path) {
      // With other strides than the recorded ones, the value would not fit the views behind it. They are
      // computed again instead.
      if (out_.meta(its_value).strides != in_.meta(on_path).strides) continue;
      entry(on_path).value = its_value;
      entry(on_path).version = root.root_version;
    }
  }

  // Offsets of elements in the storage. The last lies before the first where there are none.
  struct Places {
    Expr first;
    Expr last;
  };

  static Places places_of(const TensorMeta& meta) {
    Places places{meta.storage_offset, meta.storage_offset};
    for (size_t d = 0; d < meta.sizes.size(); ++d)
      places.last = places.last + (meta.sizes[d] - 1) * meta.strides[d];
    return places;
  }

  // Whether the elements of a view are known to lie between the first and the last of a tensor. Symbolic
  // sizes of the tensor may be 0, which a layout with gaps does not tell from its last place.
  static bool lies_between(const TensorMeta& view, const TensorMeta& whole) {
    const auto is_number = [](const Expr& e) { return e.is_constant(); };
    if (!std::ranges::all_of(whole.sizes, is_number) && !is_non_overlapping_and_dense(whole)) return false;
    const Places own = places_of(view), all = places_of(whole);
    return sym::known_less_equal(all.first, own.first) && sym::known_less_equal(own.last, all.last);
  }

  // Whether all elements of a view are known to be elements of the tensor, which fills its storage.
  bool lies_within(const TensorMeta& view, ValueId tensor) {
    const auto is_empty = [](const TensorMeta& meta) {
      return std::ranges::any_of(meta.sizes, [](const Expr& size) { return size == Expr(0); });
    };
    const TensorMeta& whole = in_.meta(tensor);
    if (is_empty(view)) return sym::known_less_equal(0, view.storage_offset);
    if (is_empty(whole)) return false;
    return lies_between(view, whole);
  }

  void check_writable(ValueId recorded, const OperatorSchema& op) {
    if (may_overlap(in_.meta(recorded)))
      throw Unsupported(fmt::format("{} writes to a tensor whose elements share memory", op.name));
    // An argument may be a part of the storage.
    const Entry& view = entry(recorded);
    if (view.view == graph::kNoNode) return;
    if (!ops::traits_of(*in_.nodes[view.view].op).addresses_storage()) return;
    if (!lies_between(in_.meta(recorded), in_.meta(view.parent)))
      throw Unsupported(fmt::format("{} writes outside of the tensor that the storage belongs to", op.name));
  }

  // What is told of an operator that writes is told of its form without writes, if it has one.
  static const ops::Traits& traits_of_computation(const OperatorSchema& op) {
    const OperatorSchema* functional = op.is_mutating() ? functional_form(op) : nullptr;
    return ops::traits_of(functional == nullptr ? op : *functional);
  }

  // Throws Unsupported if the written tensor overlaps itself or an operand in part. Eager refuses such a
  // call, or reads elements that it has just written.
  void check_overlap(ValueId written, const Node& node) {
    const TensorMeta& own = in_.meta(written);
    const bool mixes_elements = traits_of_computation(*node.op).mixes_elements;
    int times = 0;
    graph::for_each_input(node, [&](ValueId other) {
      times += other == written;
      if (other == written || entry(other).root != entry(written).root) return;
      const TensorMeta& meta = in_.meta(other);
      if (meta == own && !mixes_elements) return;
      if (may_share_elements(own, meta))
        throw Unsupported(
            fmt::format("{} writes to elements that it reads through another view", node.op->name));
    });
    if (times > 1 && mixes_elements)
      throw Unsupported(fmt::format("{} writes to elements that it reads", node.op->name));
  }

  void alias_written_results(const Node& node) {
    for (size_t r = 0; r < node.op->returns.size() && r < node.outputs.size(); ++r) {
      if (!node.op->returns[r].is_written) continue;
      const ValueId argument = aliased_argument(node, node.op->returns[r].alias_set);
      check(argument != kNoValue, "a written result names its argument");
      entry(node.outputs[r]) = {.root = entry(argument).root, .parent = without_identities(argument)};
    }
  }

  void mutate(const Node& node) {
    for (size_t i = 0; i < node.args.size(); ++i) {
      if (!node.op->arguments[i].is_written) continue;
      if (std::holds_alternative<ValueList>(node.args[i]))
        throw Unsupported(fmt::format("{} writes to a list of tensors", node.op->name));
      if (const auto* ref = std::get_if<ValueRef>(&node.args[i])) {
        check_writable(ref->id, *node.op);
        check_overlap(ref->id, node);
      }
    }
    // Eager's kernels change the statistics behind autograd's back.
    is_seen_ = !ops::traits_of(*node.op).writes_unseen;
    if (!overwrite(node) && !draw_in_memory_order(node)) call_functional_form(node);
    alias_written_results(node);
  }

  // Writes whose new contents do not depend on the old ones.
  bool overwrite(const Node& node) {
    const bool fills = node.op == op::fill_with_number() || node.op == op::zero_out();
    if (!fills && node.op != op::copy_into() && node.op != op::fill_with_tensor()) return false;
    const ValueId self = std::get<ValueRef>(node.args.at(0)).id;
    const TensorMeta& meta = in_.meta(self);
    if (!fills && !is_number(node.args.at(1))) {
      // `x[i] += 1` ends by copying x[i] onto itself.
      const ValueId source = std::get<ValueRef>(node.args[1]).id;
      if (entry(source).root == entry(self).root && in_.meta(source) == meta) return true;
      write(self, coerce(read(source), meta, self, false));
      return true;
    }
    TensorMeta full = fresh(meta);
    full.strides = contiguous_strides(full.sizes);
    const Argument number = node.op == op::zero_out() ? Argument(Expr(0)) : node.args.at(1);
    write(self, emit(op::full(), {meta.sizes, number, meta.dtype, graph::None{}, meta.device, graph::None{}},
                     full));
    return true;
  }

  // What the operator's shape rule says; nothing if it has none that covers the call.
  std::optional<std::vector<TensorMeta>> rule_metadata(const OperatorSchema& op,
                                                       const std::vector<Argument>& args) const {
    const ops::ShapeRule& rule = ops::entry_of(op).shape;
    if (!rule) return std::nullopt;
    const std::function<const TensorMeta&(ValueId)> meta_of = [this](ValueId id) -> const TensorMeta& {
      return out_.meta(id);
    };
    try {
      return rule(ops::ShapeContext(op, args, meta_of, default_dtype_));
    } catch (const Unsupported&) {
      return std::nullopt;
    }
  }

  // Metadata without a shape rule. The call was legal when it was recorded, so the results are taken to have
  // the metadata of the tensors that it writes.
  std::vector<TensorMeta> result_metadata(const OperatorSchema& functional, const std::vector<Argument>& args,
                                          const std::vector<ValueId>& targets) const {
    if (auto metas = rule_metadata(functional, args)) return std::move(*metas);
    std::vector<TensorMeta> metas;
    for (const ValueId target : targets) {
      metas.push_back(fresh(in_.meta(target)));
      TensorMeta& meta = metas.back();
      if (!is_non_overlapping_and_dense(meta)) meta.strides = contiguous_strides(meta.sizes);
    }
    return metas;
  }

  // Eager refuses to write a float into an integer, or what all() says into anything but a bool, and makes a
  // sum into an out= of another type in that type.
  static void check_written_type(const Node& node, const ops::Traits& traits, DType given, DType wanted) {
    const auto dtype = std::ranges::find(node.op->arguments, "dtype", &ArgumentInfo::name);
    const bool follows_out = std::ranges::any_of(node.op->arguments, is_out_argument) &&
                             dtype != node.op->arguments.end() &&
                             std::holds_alternative<graph::None>(
                                 node.args.at(static_cast<size_t>(dtype - node.op->arguments.begin())));
    if (((follows_out || traits.writes_bool_only) && given != wanted) ||
        (is_floating(given) && is_integral(wanted)))
      throw Unsupported(fmt::format("{} writes to a tensor of another type", node.op->name));
  }

  // Eager draws in another way into a tensor that is not contiguous.
  static void check_drawn_layout(const Node& node, const ops::Traits& traits, const TensorMeta& drawn,
                                 const TensorMeta& wanted) {
    if (traits.draws_by_layout && is_contiguous(drawn) != is_contiguous(wanted))
      throw Unsupported(fmt::format("{} draws into a tensor that is not contiguous", node.op->name));
  }

  // The dimensions, by number, in the order in which they lie in memory. Nothing if the tensor has gaps, or
  // if the dimensions lie in their own order.
  static std::optional<std::vector<Expr>> order_in_memory(const TensorMeta& meta) {
    if (is_contiguous(meta) || !is_non_overlapping_and_dense(meta)) return std::nullopt;
    TensorMeta copy;
    const TensorMeta& large = with_large_sizes(meta, copy);
    std::vector<Expr> dims;  // the innermost first; where a dimension of size 1 lies is of no account
    std::vector<bool> is_taken(meta.rank());
    const auto take = [&](size_t d) {
      is_taken[d] = true;
      dims.emplace_back(static_cast<int64_t>(d));
    };
    Expr stride = 1;
    for (;;) {
      const auto is_next = [&](size_t d) {
        return !is_taken[d] && !(large.sizes[d] == Expr(1)) && large.strides[d] == stride;
      };
      const auto all = std::views::iota(size_t{0}, is_taken.size());
      const auto next = std::ranges::find_if(all, is_next);
      if (next == all.end()) break;
      take(*next);
      stride = stride * large.sizes[*next];
    }
    for (size_t d = is_taken.size(); d-- > 0;)
      if (!is_taken[d]) {
        if (!(large.sizes[d] == Expr(1))) return std::nullopt;  // without elements
        take(d);
      }
    std::ranges::reverse(dims);
    return dims;
  }

  ValueId permute(ValueId value, const std::vector<Expr>& dims) {
    TensorMeta meta = out_.meta(value);
    const TensorMeta before = meta;
    for (size_t d = 0; d < dims.size(); ++d) {
      meta.sizes[d] = before.sizes[static_cast<size_t>(dims[d].constant())];
      meta.strides[d] = before.strides[static_cast<size_t>(dims[d].constant())];
    }
    return emit(op::permute(), {ValueRef{value}, dims}, std::move(meta));
  }

  // bernoulli_() draws in the order of memory, but its functional form in the order of the result's indices.
  // So the draw is made for a tensor in the order of memory.
  bool draw_in_memory_order(const Node& node) {
    if (node.op != op::bernoulli_into()) return false;
    const ValueId self = std::get<ValueRef>(node.args.at(0)).id;
    const auto order = order_in_memory(in_.meta(self));
    if (!order) return false;
    std::vector<Expr> back(order->size(), Expr(0));
    for (size_t d = 0; d < order->size(); ++d)
      back[static_cast<size_t>((*order)[d].constant())] = Expr(static_cast<int64_t>(d));
    std::vector<Argument> args = node.args;
    args[0] = ValueRef{permute(read(self), *order)};
    const OperatorSchema* functional = functional_form(*node.op);
    std::vector<TensorMeta> metas = result_metadata(*functional, args, {self});
    write(self, permute(emit_all(functional, std::move(args), std::move(metas))[0], back));
    return true;
  }

  void call_functional_form(const Node& node) {
    const OperatorSchema* functional = functional_form(*node.op);
    if (functional == nullptr) throw Unsupported(fmt::format("{} has no form without writes", node.op->name));
    std::vector<Argument> args;
    std::vector<ValueId> written;
    for (size_t i = 0; i < node.args.size(); ++i) {
      const ArgumentInfo& info = node.op->arguments[i];
      if (info.is_written && std::holds_alternative<ValueRef>(node.args[i]))
        written.push_back(std::get<ValueRef>(node.args[i]).id);
      if (!is_out_argument(info)) args.push_back(read_argument(node.args[i]));
    }
    convert_compared(*functional, args);
    if (ops::traits_of(*functional).addresses_storage())
      move_storage_offset(*functional, std::get<ValueRef>(node.args.at(0)).id, args);
    // In the order of the functional operator's results: the recorded value that each one is for.
    std::vector<ValueId> targets;
    std::vector<bool> is_write;
    for (size_t r = 0; r < node.op->returns.size(); ++r) {
      const bool writes = node.op->returns[r].is_written;
      targets.push_back(writes ? aliased_argument(node, node.op->returns[r].alias_set) : node.outputs.at(r));
      is_write.push_back(writes);
    }
    for (const ValueId argument : written) {
      if (std::find(targets.begin(), targets.end(), argument) != targets.end()) continue;
      targets.push_back(argument);
      is_write.push_back(true);
    }
    if (targets.size() != functional->returns.size() ||
        !std::all_of(functional->returns.begin(), functional->returns.end(),
                     [](const ReturnInfo& r) { return r.kind == ArgumentKind::Tensor; }))
      throw Unsupported(fmt::format("{} does not return what {} writes", functional->name, node.op->name));
    std::vector<TensorMeta> metas = result_metadata(*functional, args, targets);
    check(metas.size() == targets.size(), fmt::format("{} has another number of results", functional->name));
    const std::vector<ValueId> values = emit_all(functional, std::move(args), std::move(metas));
    const ops::Traits& traits = ops::traits_of(*functional);
    for (size_t i = 0; i < targets.size(); ++i)
      if (is_write[i]) {
        check_written_type(node, traits, out_.meta(values[i]).dtype, in_.meta(targets[i]).dtype);
        check_drawn_layout(node, traits, out_.meta(values[i]), in_.meta(targets[i]));
      }
    for (size_t i = 0; i < targets.size(); ++i) {
      if (is_write[i])
        write(targets[i], values[i]);
      else
        start_root(targets[i], values[i]);
    }
  }

  // --- results

  // The value of the new graph whose storage `value` shares.
  ValueId storage_of(ValueId value) const {
    for (;;) {
      const graph::NodeId producer = out_.values[value].node;
      if (producer == graph::kNoNode) return value;
      const Node& node = out_.nodes[producer];
      if (!node.op->is_view()) return value;
      value = aliased_argument(node, node.op->returns[0].alias_set);
    }
  }

  bool is_given(ValueId value) const { return out_.values[value].node == graph::kNoNode; }

  ValueId clone(ValueId value) { return graph::append_copy(out_, value, location_); }

  void add_mutations() {
    for (size_t i = 0; i < in_.inputs.size(); ++i) {
      const Entry& root = entry(in_.inputs[i]);
      if (root.root_version == 0 || root.value == out_.inputs[i]) continue;
      if (may_overlap(in_.meta(in_.inputs[i])))
        throw Unsupported("an argument whose elements share memory is written to");
      ValueId value = root.value;
      // If the value is an input, a later mutation of it could come first. So a copy is used.
      if (is_given(storage_of(value))) value = clone(value);
      out_.mutations.push_back({static_cast<int32_t>(i), value, root.is_seen});
    }
  }

  // From now on the root reads as `value`, and its views are computed again from that. After a write the
  // present values of views do not share its memory.
  void read_from(ValueId root, ValueId value) {
    Entry& e = entry(root);
    if (e.root_version == 0 && e.value == value) return;
    e.value = value;
    e.version = ++e.root_version;
  }

  void add_outputs() {
    std::unordered_map<ValueId, int32_t> input_of;
    for (size_t i = 0; i < in_.inputs.size(); ++i) input_of.emplace(in_.inputs[i], static_cast<int32_t>(i));
    std::unordered_map<ValueId, int32_t> first_of_root;     // recorded root → output
    std::unordered_map<ValueId, int32_t> first_of_storage;  // storage in the new graph → output
    std::unordered_map<ValueId, int32_t> sharers;           // recorded root → outputs that are views of it
    for (const graph::Output& recorded : in_.outputs) ++sharers[entry(recorded.value).root];
    for (const auto& [root, input] : input_of)
      if (sharers.contains(root)) read_from(root, out_.inputs[static_cast<size_t>(input)]);
    for (const graph::Output& recorded : in_.outputs) {
      const ValueId root = entry(recorded.value).root;
      const auto index = static_cast<int32_t>(out_.outputs.size());
      if (const auto it = input_of.find(root); it != input_of.end()) {
        const ValueId input = out_.inputs[static_cast<size_t>(it->second)];
        ValueId value = input;
        if (recorded.value != root) {
          value = read(recorded.value);
          if (value == input) value = emit(op::alias(), {ValueRef{input}}, out_.meta(input));
        }
        out_.outputs.push_back({value, OutputKind::InputAlias, it->second});
        continue;
      }
      // The output must lie at eager's place in the storage, even if nothing else of the storage is seen.
      const auto lies_elsewhere = [&] {
        return out_.meta(read(recorded.value)).storage_offset != in_.meta(recorded.value).storage_offset;
      };
      if (!first_of_root.contains(root) && (sharers[root] > 1 || lies_elsewhere())) {
        ValueId whole = entry(root).value;
        const ValueId storage = storage_of(whole);
        const bool begins_later =
            in_.meta(root).storage_offset == Expr(0) && !(out_.meta(whole).storage_offset == Expr(0));
        if (is_given(storage) || first_of_storage.contains(storage) || begins_later) whole = clone(whole);
        if (out_.meta(whole).strides != in_.meta(root).strides)
          throw Unsupported("results share memory that is laid out otherwise");
        read_from(root, whole);
      }
      if (const auto [it, is_first] = first_of_root.emplace(root, index); !is_first) {
        out_.outputs.push_back({read(recorded.value), OutputKind::OutputAlias, it->second});
        continue;
      }
      ValueId value = read(recorded.value);
      const ValueId storage = storage_of(value);
      if (is_given(storage) || !first_of_storage.emplace(storage, index).second) value = clone(value);
      out_.outputs.push_back({value, OutputKind::Value, -1});
    }
  }

  const Graph& in_;
  DType default_dtype_;
  Graph out_;
  IdVector<ValueId, Entry> entries_;
  graph::LocationId location_;
  bool is_seen_ = true;  // the write under way is one that autograd counts
};

}  // namespace

Graph functionalise(const Graph& recorded, DType default_dtype) {
  return Functionaliser(recorded, default_dtype).run();
}

}  // namespace oxy::trace
