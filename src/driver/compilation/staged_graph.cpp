#include "driver/compilation/staged_graph.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "aten/operators.h"
#include "base/error.h"
#include "runtime/device/call_site.h"
#include "runtime/device/generators.h"
#include "runtime/execution/interpreter.h"
#include "runtime/extern/index_range.h"
#include "runtime/values/convert.h"
#include "runtime/values/tensors.h"

namespace oxy::driver {

namespace {

using graph::OutputKind;
using graph::ValueId;
using runtime::CompiledGraph;
using runtime::Readiness;

constexpr int32_t kNoInput = -1;

struct CompiledStage {
  std::unique_ptr<CompiledGraph> graph;  // null: nothing to run
  std::vector<ValueId> inputs;
  std::vector<int32_t> whole_inputs;  // by input: the whole's input that it is, or -1
  std::vector<ValueId> outputs;
  std::vector<graph::Node> reads;
  std::vector<ValueId> spent;
};

class StagedGraph final : public CompiledGraph {
 public:
  StagedGraph(const graph::Graph& source, passes::StagedProgram program, std::vector<CompiledStage> stages,
              std::vector<at::Tensor> constants)
      : metas_(source.values.size()),
        inputs_(source.inputs),
        constants_of_(source.constants),
        constants_(std::move(constants)),
        results_(source.outputs),
        outputs_(std::move(program.outputs)),
        roots_(std::move(program.roots)),
        stages_(std::move(stages)),
        random_devices_(runtime::random_devices(source)) {
    for (const ValueId id : source.values.ids()) metas_[id] = source.meta(id);
  }

  Readiness readiness() override {
    Readiness all = Readiness::Ready;
    for (const CompiledStage& stage : stages_)
      if (stage.graph) all = std::max(all, stage.graph->readiness());
    return all;
  }
  std::exception_ptr failure() const override {
    for (const CompiledStage& stage : stages_)
      if (stage.graph && stage.graph->failure()) return stage.graph->failure();
    return nullptr;
  }

  std::vector<at::Tensor> run(std::span<const at::Tensor> inputs, std::span<int64_t> symbols) override {
    IdVector<ValueId, at::Tensor> values(metas_.size());
    for (size_t i = 0; i < inputs.size(); ++i) values[inputs_[i]] = inputs[i];
    for (const graph::Constant& constant : constants_of_)
      values[constant.value] = constants_[static_cast<size_t>(constant.handle)];
    std::vector<at::Tensor> results(outputs_.size());
    runtime::KeepsGenerators generators(random_devices_);
    for (const CompiledStage& stage : stages_) {
      // The last stage writes to inputs: what may raise comes before.
      if (&stage == &stages_.back()) add_views_of_inputs(inputs, symbols, results);
      run_stage(stage, values, symbols);
      for (const graph::Node& node : stage.reads) read(node, values, symbols);
      for (const ValueId id : stage.spent) values[id].reset();
    }
    add_results(values, symbols, results);
    generators.advance();
    return results;
  }

  // Kernels run without the GIL, and so may reads.
  bool is_long() const override { return true; }

  bool reads(size_t input) const override {
    const auto number = static_cast<int32_t>(input);
    return std::ranges::any_of(stages_, [&](const CompiledStage& stage) {
      for (size_t i = 0; i < stage.inputs.size(); ++i)
        if (stage.whole_inputs[i] == number && stage.graph && stage.graph->reads(i)) return true;
      return std::ranges::any_of(stage.reads, [&](const graph::Node& node) {
        bool is_read = false;
        graph::for_each_input(node, [&](ValueId id) { is_read = is_read || roots_[id] == inputs_[input]; });
        return is_read;
      });
    });
  }

  runtime::DeviceGraphState device_graph_state() const override {
    runtime::DeviceGraphState state;
    for (const CompiledStage& stage : stages_)
      if (stage.graph) state.add(stage.graph->device_graph_state());
    return state;
  }

  bool holds_weights() const override {
    return std::ranges::any_of(
        stages_, [](const CompiledStage& stage) { return stage.graph && stage.graph->holds_weights(); });
  }
  bool valid(const InputOf& input) override {
    bool are_all = true;
    for (const CompiledStage& stage : stages_) {
      if (!stage.graph) continue;
      const auto own = [&](size_t i) -> const at::Tensor& {
        return input(static_cast<size_t>(stage.whole_inputs[i]));
      };
      are_all = stage.graph->valid(own) && are_all;
    }
    return are_all;
  }

 private:
  runtime::TensorSpec spec(const TensorMeta& base, const TensorMeta& meta,
                           runtime::SymbolValues symbols) const {
    return {runtime::dtype_to_torch(meta.dtype), runtime::numbers_of(meta.sizes, symbols),
            runtime::numbers_of(meta.strides, symbols),
            runtime::number_of(graph::offset_between(base, meta), symbols)};
  }

  void run_stage(const CompiledStage& stage, IdVector<ValueId, at::Tensor>& values,
                 std::span<int64_t> symbols) const {
    if (!stage.graph) return;
    std::vector<at::Tensor> given;
    given.reserve(stage.inputs.size());
    for (const ValueId id : stage.inputs) given.push_back(values[id]);
    std::vector<at::Tensor> made = stage.graph->run(given, symbols);
    for (size_t i = 0; i < stage.outputs.size(); ++i) values[stage.outputs[i]] = std::move(made[i]);
  }

  // The tensor of a value, which may be a view of what is there.
  at::Tensor tensor(ValueId id, const IdVector<ValueId, at::Tensor>& values,
                    runtime::SymbolValues symbols) const {
    const at::Tensor& root = values[roots_[id]];
    return roots_[id] == id ? root : runtime::alias_of(root, spec(metas_[roots_[id]], metas_[id], symbols));
  }

  void read(const graph::Node& node, IdVector<ValueId, at::Tensor>& values,
            std::span<int64_t> symbols) const {
    const at::NoGradGuard no_grad;
    const c10::impl::ExcludeDispatchKeyGuard below(c10::autograd_dispatch_keyset_with_ADInplaceOrView |
                                                   c10::autocast_dispatch_keyset);
    if (node.op == op::check_indices()) return check_indices(node, values, symbols);
    const auto lookup = [&](ValueId id) { return tensor(id, values, symbols); };
    const std::vector<c10::IValue> returned = runtime::call_node(node, lookup, symbols);
    std::vector<at::Tensor> tensors;
    for (const c10::IValue& value : returned)
      if (value.isTensor()) tensors.push_back(value.toTensor());
    for (const graph::ComputedSymbol& symbol : node.computed) {
      const auto id = static_cast<size_t>(symbol.variable.variable_id());
      check(id < symbols.size(), "a symbol that a graph computes has no place");
      const int64_t value = symbol.output < 0
                                ? returned.at(0).toScalar().toLong()
                                : tensors.at(static_cast<size_t>(symbol.output)).size(symbol.dimension);
      if (value >= sym::kMaxInt || value <= -sym::kMaxInt) throw runtime::LeftToEager();
      symbols[id] = value;
    }
    for (const sym::Condition& condition : node.checks)
      if (!sym::evaluate(condition,
                         [&](int64_t id) { return std::optional(symbols[static_cast<size_t>(id)]); }))
        throw runtime::LeftToEager{.unmet = condition};
    for (size_t i = 0; i < node.outputs.size(); ++i)
      if (node.outputs[i] != graph::kNoValue)
        values[node.outputs[i]] = as_announced(tensors.at(i), metas_[node.outputs[i]], symbols);
  }

  // An op::check_indices().
  void check_indices(const graph::Node& node, const IdVector<ValueId, at::Tensor>& values,
                     runtime::SymbolValues symbols) const {
    constexpr size_t kIndex = 0, kSize = 1, kDimension = 2, kCountsBack = 3, kIgnored = 4, kElements = 5,
                     kIsLeftToEager = 6, kWhere = 7;
    const auto number = [&](size_t i) {
      return runtime::number_of(std::get<Expr>(node.args.at(i)), symbols);
    };
    if (number(kElements) == 0) return;
    runtime::IndexRange range{.size = number(kSize),
                              .dimension = number(kDimension),
                              .counts_back = std::get<bool>(node.args.at(kCountsBack)),
                              .ignored = {}};
    if (std::holds_alternative<Expr>(node.args.at(kIgnored))) range.ignored = number(kIgnored);
    const at::Tensor index = tensor(std::get<graph::ValueRef>(node.args.at(kIndex)).id, values, symbols);
    if (runtime::lie_within(index, range)) return;
    if (std::get<bool>(node.args.at(kIsLeftToEager))) throw runtime::LeftToEager();
    runtime::raise_out_of_range(index, range, std::get<std::string>(node.args.at(kWhere)));
  }

  // The tensor in the layout that later stages rely on.
  at::Tensor as_announced(const at::Tensor& tensor, const TensorMeta& meta,
                          runtime::SymbolValues symbols) const {
    const runtime::TensorSpec wanted = spec(meta, meta, symbols);
    if (runtime::has_layout(tensor, wanted) && tensor.scalar_type() == wanted.dtype) return tensor;
    if (tensor.sizes() != c10::IntArrayRef(wanted.sizes) || tensor.scalar_type() != wanted.dtype)
      throw runtime::LeftToEager();
    return at::empty_strided(wanted.sizes, wanted.strides, tensor.options()).copy_(tensor);
  }

  void add_views_of_inputs(std::span<const at::Tensor> inputs, runtime::SymbolValues symbols,
                           std::vector<at::Tensor>& results) const {
    for (size_t i = 0; i < results.size(); ++i) {
      if (results_[i].kind != OutputKind::InputAlias) continue;
      const auto number = static_cast<size_t>(results_[i].alias);
      const at::Tensor& input = inputs[number];
      results[i] = runtime::alias_of(runtime::without_history(input),
                                     spec(metas_[inputs_[number]], metas_[results_[i].value], symbols));
    }
  }

  void add_results(const IdVector<ValueId, at::Tensor>& values, runtime::SymbolValues symbols,
                   std::vector<at::Tensor>& results) const {
    for (size_t i = 0; i < results.size(); ++i) {
      const TensorMeta& meta = metas_[results_[i].value];
      if (results_[i].kind == OutputKind::Value) {
        const at::NoGradGuard no_grad;
        const ValueId held = outputs_[i].value;
        const at::Tensor& memory = values[held];
        results[i] =
            held == results_[i].value ? memory : runtime::view_of(memory, spec(metas_[held], meta, symbols));
        // Results share no memory unless they say so.
        const auto has_it = [&](size_t other) { return results[other].is_alias_of(results[i]); };
        if (std::ranges::any_of(std::views::iota(size_t{0}, i), has_it))
          results[i] = at::empty_strided(results[i].sizes(), results[i].strides(), results[i].options())
                           .copy_(results[i]);
      } else if (results_[i].kind == OutputKind::OutputAlias) {
        const auto base = static_cast<size_t>(results_[i].alias);
        results[i] = runtime::alias_of(results[base], spec(metas_[results_[base].value], meta, symbols));
      }
    }
  }

  // Of the whole.
  IdVector<ValueId, TensorMeta> metas_;
  std::vector<ValueId> inputs_;
  std::vector<graph::Constant> constants_of_;
  std::vector<at::Tensor> constants_;
  std::vector<graph::Output> results_;
  std::vector<passes::StagedOutput> outputs_;
  IdVector<ValueId, ValueId> roots_;
  std::vector<CompiledStage> stages_;
  std::vector<c10::Device> random_devices_;
};

}  // namespace

std::unique_ptr<CompiledGraph> compile_in_stages(const graph::Graph& source,
                                                 std::vector<at::Tensor> constants,
                                                 const CompileStage& compile) {
  passes::StagedProgram program = passes::cut_into_stages(source);
  std::vector<CompiledStage> stages;
  for (passes::Stage& stage : program.stages) {
    CompiledStage compiled{.graph = nullptr,
                           .inputs = std::move(stage.inputs),
                           .whole_inputs = {},
                           .outputs = std::move(stage.outputs),
                           .reads = std::move(stage.reads),
                           .spent = std::move(stage.spent)};
    for (const ValueId id : compiled.inputs) {
      const auto found = std::ranges::find(source.inputs, id);
      compiled.whole_inputs.push_back(
          found == source.inputs.end() ? kNoInput : static_cast<int32_t>(found - source.inputs.begin()));
    }
    const graph::Graph& graph = stage.graph;
    if (!graph.nodes.empty() || !graph.outputs.empty() || !graph.mutations.empty())
      compiled.graph = compile(std::move(stage.graph), compiled.whole_inputs);
    stages.push_back(std::move(compiled));
  }
  return std::make_unique<StagedGraph>(source, std::move(program), std::move(stages), std::move(constants));
}

}  // namespace oxy::driver
