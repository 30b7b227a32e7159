#include "trace/functional/functionalise.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <unordered_map>

#include "aten/operators.h"
#include "base/error.h"
#include "ops/core/registry.h"
#include "trace/functional/alias_sets.h"
#include "trace/functional/functional_forms.h"
#include "trace/functional/overlap.h"
#include "trace/functional/rewritten_graph.h"

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

bool is_number(const Argument& argument) {
  return std::holds_alternative<bool>(argument) || std::holds_alternative<Expr>(argument) ||
         std::holds_alternative<double>(argument) || std::holds_alternative<std::complex<double>>(argument);
}

class Functionaliser {
 public:
  Functionaliser(const Graph& recorded, DType default_dtype)
      : in_(recorded), out_{.graph = {}, .location = {}, .default_dtype = default_dtype}, sets_(in_, out_) {}

  Graph run() {
    out_.graph.locations = in_.locations;
    for (const ValueId id : in_.inputs) sets_.start_root(id, out_.graph.add_input(in_.values[id].meta));
    for (const graph::Constant& constant : in_.constants)
      sets_.start_root(constant.value,
                       out_.graph.add_constant(in_.values[constant.value].meta, constant.handle));
    for (const graph::NodeId n : in_.nodes.ids()) {
      const Node& node = in_.nodes[n];
      out_.location = node.location;
      if (node.op->is_mutating())
        mutate(node);
      else if (node.op->is_view())
        add_views(n);
      else
        copy_node(node);
    }
    out_.location = graph::kNoLocation;
    add_mutations();
    add_outputs();
    return std::move(out_.graph);
  }

 private:
  void add_views(graph::NodeId n) {
    const Node& node = in_.nodes[n];
    sets_.add_views(n);
    // It raises if it reaches outside of the storage, whoever reads it.
    if (ops::traits_of(*node.op).addresses_storage() &&
        !lies_between(in_.meta(node.outputs[0]), in_.meta(std::get<ValueRef>(node.args.at(0)).id)))
      sets_.read(node.outputs[0]);
  }

  // --- nodes that write nothing

  // Eager compares integers with a float in the default dtype. Later stages do not know that dtype.
  void convert_compared(const OperatorSchema& op, std::vector<Argument>& args) {
    if (out_.default_dtype == DType::Float32 || !ops::traits_of(op).compares_in_default_dtype ||
        !std::holds_alternative<double>(args.at(1)))
      return;
    const ValueId compared = std::get<ValueRef>(args[0]).id;
    TensorMeta meta = out_.meta(compared);
    if (is_floating(meta.dtype) || is_complex(meta.dtype)) return;
    meta.dtype = out_.default_dtype;
    if (!is_non_overlapping_and_dense(meta)) meta.strides = contiguous_strides(meta.sizes);
    args[0] = ValueRef{out_.emit(op::to_copy(),
                                 {ValueRef{compared}, out_.default_dtype, graph::None{}, graph::None{},
                                  graph::None{}, false, graph::None{}},
                                 fresh(meta))};
  }

  void copy_node(const Node& node) {
    std::vector<Argument> args;
    for (const Argument& argument : node.args) args.push_back(sets_.read_argument(argument));
    convert_compared(*node.op, args);
    if (ops::traits_of(*node.op).addresses_storage())
      sets_.move_storage_offset(*node.op, std::get<ValueRef>(node.args.at(0)).id, args);
    std::vector<ValueId> outputs;
    for (const ValueId id : node.outputs) {
      outputs.push_back(id == kNoValue ? kNoValue : out_.graph.add_value(in_.values[id].meta));
      if (id == kNoValue) continue;
      out_.graph.values.back().node = out_.graph.nodes.next_id();
      sets_.start_root(id, outputs.back());
    }
    out_.graph.nodes.add(Node{.op = node.op,
                              .args = std::move(args),
                              .outputs = std::move(outputs),
                              .location = out_.location,
                              .computed = node.computed,
                              .checks = node.checks});
  }

  // --- writes

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
      if (other == written || sets_.root_of(other) != sets_.root_of(written)) return;
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
      sets_.add_same(node.outputs[r], argument);
    }
  }

  void mutate(const Node& node) {
    for (size_t i = 0; i < node.args.size(); ++i) {
      if (!node.op->arguments[i].is_written) continue;
      if (std::holds_alternative<ValueList>(node.args[i]))
        throw Unsupported(fmt::format("{} writes to a list of tensors", node.op->name));
      if (const auto* ref = std::get_if<ValueRef>(&node.args[i])) {
        sets_.check_writable(ref->id, *node.op);
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
      if (sets_.root_of(source) == sets_.root_of(self) && in_.meta(source) == meta) {
        sets_.write_same(self, is_seen_);
        return true;
      }
      sets_.write(self, sets_.coerce(sets_.read(source), meta, self, false), is_seen_);
      return true;
    }
    TensorMeta full = fresh(meta);
    full.strides = contiguous_strides(full.sizes);
    const Argument number = node.op == op::zero_out() ? Argument(Expr(0)) : node.args.at(1);
    sets_.write(self,
                out_.emit(op::full(),
                          {meta.sizes, number, meta.dtype, graph::None{}, meta.device, graph::None{}}, full),
                is_seen_);
    return true;
  }

  // Metadata without a shape rule. The call was legal when it was recorded, so the results are taken to have
  // the metadata of the tensors that it writes.
  std::vector<TensorMeta> result_metadata(const OperatorSchema& functional, const std::vector<Argument>& args,
                                          const std::vector<ValueId>& targets) const {
    if (auto metas = out_.rule_metadata(functional, args)) return std::move(*metas);
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
    return out_.emit(op::permute(), {ValueRef{value}, dims}, std::move(meta));
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
    args[0] = ValueRef{permute(sets_.read(self), *order)};
    const OperatorSchema* functional = functional_form(*node.op);
    std::vector<TensorMeta> metas = result_metadata(*functional, args, {self});
    sets_.write(self, permute(out_.emit_all(functional, std::move(args), std::move(metas))[0], back),
                is_seen_);
    return true;
  }

  // Whether an argument of the functional graph has the layout of the recorded one that it stands for.
  bool is_alike(const Argument& recorded, const Argument& own) const {
    if (std::holds_alternative<ValueList>(recorded)) return false;
    const auto* const left = std::get_if<ValueRef>(&recorded);
    const auto* const right = std::get_if<ValueRef>(&own);
    if (left == nullptr || right == nullptr) return left == nullptr && right == nullptr;
    const TensorMeta &a = in_.meta(left->id), &b = out_.meta(right->id);
    return a.sizes == b.sizes && a.strides == b.strides;
  }

  void call_functional_form(const Node& node) {
    const OperatorSchema* functional = functional_form(*node.op);
    if (functional == nullptr) throw Unsupported(fmt::format("{} has no form without writes", node.op->name));
    std::vector<Argument> args;
    std::vector<ValueId> written;
    bool reads_alike = true;
    for (size_t i = 0; i < node.args.size(); ++i) {
      const ArgumentInfo& info = node.op->arguments[i];
      if (info.is_written && std::holds_alternative<ValueRef>(node.args[i]))
        written.push_back(std::get<ValueRef>(node.args[i]).id);
      if (is_out_argument(info)) continue;
      args.push_back(sets_.read_argument(node.args[i]));
      reads_alike = reads_alike && is_alike(node.args[i], args.back());
    }
    convert_compared(*functional, args);
    if (ops::traits_of(*functional).addresses_storage())
      sets_.move_storage_offset(*functional, std::get<ValueRef>(node.args.at(0)).id, args);
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
    // The recording has asked about the sizes on which the layout of results depends.
    for (size_t i = 0; i < targets.size(); ++i)
      if (reads_alike && !is_write[i]) metas[i] = in_.meta(targets[i]);
    const std::vector<ValueId> values = out_.emit_all(functional, std::move(args), std::move(metas));
    const ops::Traits& traits = ops::traits_of(*functional);
    for (size_t i = 0; i < targets.size(); ++i)
      if (is_write[i]) {
        check_written_type(node, traits, out_.meta(values[i]).dtype, in_.meta(targets[i]).dtype);
        check_drawn_layout(node, traits, out_.meta(values[i]), in_.meta(targets[i]));
      }
    for (size_t i = 0; i < targets.size(); ++i) {
      if (is_write[i])
        sets_.write(targets[i], values[i], is_seen_);
      else
        sets_.start_root(targets[i], values[i]);
    }
  }

  // --- results

  void add_mutations() {
    for (size_t i = 0; i < in_.inputs.size(); ++i) {
      const ValueId root = in_.inputs[i];
      ValueId value = sets_.contents_of(root);
      if (value == out_.graph.inputs[i]) {  // autograd counts the write nevertheless
        if (sets_.is_seen(root)) out_.graph.mutations.push_back({static_cast<int32_t>(i), value, true});
        continue;
      }
      if (may_overlap(in_.meta(in_.inputs[i])))
        throw Unsupported("an argument whose elements share memory is written to");
      // If the value is an input, a later mutation of it could come first. So a copy is used.
      if (out_.is_given(out_.storage_of(value))) value = out_.clone(value);
      out_.graph.mutations.push_back({static_cast<int32_t>(i), value, sets_.is_seen(root)});
    }
  }

  void add_outputs() {
    std::unordered_map<ValueId, int32_t> input_of;
    for (size_t i = 0; i < in_.inputs.size(); ++i) input_of.emplace(in_.inputs[i], static_cast<int32_t>(i));
    std::unordered_map<ValueId, int32_t> first_of_root;     // recorded root → output
    std::unordered_map<ValueId, int32_t> first_of_storage;  // storage in the new graph → output
    std::unordered_map<ValueId, int32_t> sharers;           // recorded root → outputs that are views of it
    for (const graph::Output& recorded : in_.outputs) ++sharers[sets_.root_of(recorded.value)];
    for (const auto& [root, input] : input_of)
      if (sharers.contains(root)) sets_.read_from(root, out_.graph.inputs[static_cast<size_t>(input)]);
    for (const graph::Output& recorded : in_.outputs) {
      const ValueId root = sets_.root_of(recorded.value);
      const auto index = static_cast<int32_t>(out_.graph.outputs.size());
      if (const auto it = input_of.find(root); it != input_of.end()) {
        const ValueId input = out_.graph.inputs[static_cast<size_t>(it->second)];
        ValueId value = input;
        if (recorded.value != root) {
          value = sets_.read(recorded.value);
          if (value == input) value = out_.emit(op::alias(), {ValueRef{input}}, out_.meta(input));
        }
        out_.graph.outputs.push_back({value, OutputKind::InputAlias, it->second});
        continue;
      }
      // The output must lie at eager's place in the storage, even if nothing else of the storage is seen.
      const auto lies_elsewhere = [&] {
        return out_.meta(sets_.read(recorded.value)).storage_offset !=
               in_.meta(recorded.value).storage_offset;
      };
      // Of a constant the whole is copied where the output shows parts of it, or some elements twice.
      const auto is_part_of_given = [&] {
        const TensorMeta &part = in_.meta(recorded.value), &whole = in_.meta(root);
        return out_.is_given(out_.storage_of(sets_.read(recorded.value))) &&
               (!is_non_overlapping_and_dense(part) || !(element_count(part) == element_count(whole)));
      };
      if (!first_of_root.contains(root) && (sharers[root] > 1 || lies_elsewhere() || is_part_of_given())) {
        ValueId whole = sets_.contents_of(root);
        const ValueId storage = out_.storage_of(whole);
        const bool begins_later =
            in_.meta(root).storage_offset == Expr(0) && !(out_.meta(whole).storage_offset == Expr(0));
        if (out_.is_given(storage) || first_of_storage.contains(storage) || begins_later)
          whole = out_.clone(whole);
        if (out_.meta(whole).strides != in_.meta(root).strides)
          throw Unsupported("results share memory that is laid out otherwise");
        sets_.read_from(root, whole);
      }
      if (const auto [it, is_first] = first_of_root.emplace(root, index); !is_first) {
        out_.graph.outputs.push_back({sets_.read(recorded.value), OutputKind::OutputAlias, it->second});
        continue;
      }
      ValueId value = sets_.read(recorded.value);
      const ValueId storage = out_.storage_of(value);
      if (out_.is_given(storage) || !first_of_storage.emplace(storage, index).second)
        value = out_.clone(value);
      out_.graph.outputs.push_back({value, OutputKind::Value, -1});
    }
  }

  const Graph& in_;
  RewrittenGraph out_;
  AliasSets sets_;
  bool is_seen_ = true;  // the write under way is one that autograd counts
};

}  // namespace

Graph functionalise(const Graph& recorded, DType default_dtype) {
  return Functionaliser(recorded, default_dtype).run();
}

}  // namespace oxy::trace
