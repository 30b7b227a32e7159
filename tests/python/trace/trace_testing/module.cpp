// The extension module oxyfuel_trace_testing: records Python functions, rewrites and runs what was recorded.
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <ATen/ATen.h>

#include "aten/strides_that_count.h"
#include "graph/sizes.h"
#include "runtime/execution/interpreter.h"
#include "runtime/values/convert.h"
#include "runtime/values/tensor_object.h"
#include "runtime/values/tensors.h"
#include "sym/environment/guard_program.h"
#include "trace/functional/functionalise.h"
#include "trace/recorder/recorder.h"

namespace nb = nanobind;
using namespace oxy;

namespace {

std::vector<at::Tensor> tensors(nb::list list) {
  std::vector<at::Tensor> result;
  for (nb::handle item : list) result.push_back(runtime::tensor_of(item.ptr()));
  return result;
}

struct Recorder {
  explicit Recorder(bool strict_shapes)
      : recorder(new trace::Recorder(trace::RecorderOptions{strict_shapes, symbols})) {}
  torch_api::SymbolsPointer symbols = std::make_shared<torch_api::Symbols>();
  std::unique_ptr<trace::Recorder> recorder;

  // The sizes of these dimensions are symbols, and strides of a contiguous tensor follow from them.
  nb::object add_symbolic_input(nb::handle real, const std::string& name,
                                const std::vector<int64_t>& dimensions) {
    TensorMeta meta = runtime::metadata_of(runtime::tensor_of(real.ptr()));
    const bool is_contiguous = meta.strides == contiguous_strides(meta.sizes);
    for (const int64_t d : dimensions) {
      Expr& size = meta.sizes.at(static_cast<size_t>(d));
      size = symbols->environment.admit(sym::SymbolKind::Size,
                                        {.name = name + ".size(" + std::to_string(d) + ")"}, size.constant());
    }
    if (!is_contiguous) throw nb::value_error("the input is to be contiguous");
    meta.strides = contiguous_strides(meta.sizes);
    return nb::steal(recorder->add_input(real.ptr(), trace::Elements::Unknown, &meta));
  }
  std::vector<std::string> guards() const {
    const sym::GuardProgram program(symbols->environment);
    return {program.texts().begin(), program.texts().end()};
  }
  bool holds(const std::vector<int64_t>& values) const {
    const sym::GuardProgram program(symbols->environment);
    std::vector<int64_t> inputs;
    for (const sym::SymbolId id : program.inputs()) inputs.push_back(values.at(static_cast<size_t>(id)));
    std::vector<int64_t> work(program.program().slots());
    return program.program().run(inputs, work).status == sym::RunStatus::Holds;
  }
};

// The graph with numbers in the place of symbols, by id.
graph::Graph with_numbers(graph::Graph graph, const std::vector<int64_t>& values) {
  graph::map_expressions(graph, [&](const Expr& e) { return Expr(runtime::number_of(e, values)); });
  return graph;
}

struct Pause {
  std::unique_ptr<trace::Recorder::Pause> pause;
};

// Every value whose real metadata, when the graph runs on `inputs`, are not those of the graph: "operator:
// ...".
std::vector<std::string> wrong_metadata(const trace::Recording& recording,
                                        const std::vector<at::Tensor>& inputs, bool for_all_sizes) {
  const graph::Graph& graph = recording.graph;
  const at::NoGradGuard no_grad;
  IdVector<graph::ValueId, at::Tensor> values(graph.values.size());
  for (size_t i = 0; i < inputs.size(); ++i) values[graph.inputs[i]] = inputs[i].detach();
  for (const graph::Constant& c : graph.constants)
    values[c.value] = recording.constants[static_cast<size_t>(c.handle)].clone();
  std::vector<std::string> wrong;
  for (const graph::Node& node : graph.nodes) {
    const auto results = runtime::run_node(node, [&](graph::ValueId id) { return values[id]; });
    for (size_t i = 0; i < results.size(); ++i) {
      const graph::ValueId id = node.outputs[i];
      if (id == graph::kNoValue) continue;
      values[id] = results[i];
      const TensorMeta real = runtime::metadata_of(results[i]);
      const TensorMeta& said = graph.meta(id);
      const bool is_right =
          for_all_sizes ? with_strides_that_count(real) == with_strides_that_count(said) : real == said;
      if (!is_right) wrong.push_back(node.op->name + ": " + str(graph.meta(id)) + ", really " + str(real));
    }
  }
  return wrong;
}

}  // namespace

NB_MODULE(oxyfuel_trace_testing, m) {
  nb::class_<trace::Recording>(m, "Recording")
      .def("text", [](const trace::Recording& r) { return graph::print(r.graph); })
      .def("verify", [](const trace::Recording& r, bool functional) { graph::verify(r.graph, functional); })
      .def("functionalise",
           [](const trace::Recording& r) {
             trace::Recording result;
             result.graph = trace::functionalise(r.graph);
             result.constants = r.constants;
             return result;
           })
      .def(
          "wrong_metadata",
          [](const trace::Recording& r, nb::list inputs, bool for_all_sizes) {
            return wrong_metadata(r, tensors(inputs), for_all_sizes);
          },
          nb::arg("inputs"), nb::arg("for_all_sizes") = false)
      .def("with_numbers",
           [](const trace::Recording& r, const std::vector<int64_t>& values) {
             trace::Recording result;
             result.graph = with_numbers(r.graph, values);
             result.constants = r.constants;
             return result;
           })
      .def("run",
           [](const trace::Recording& r, nb::list inputs) {
             nb::list result;
             for (const at::Tensor& t : runtime::interpret(r.graph, tensors(inputs), r.constants))
               result.append(nb::steal(runtime::wrap_tensor(t)));
             return result;
           })
      .def_prop_ro("operators",
                   [](const trace::Recording& r) {
                     std::vector<std::string> names;
                     for (const graph::Node& node : r.graph.nodes) names.push_back(node.op->name);
                     return names;
                   })
      .def_prop_ro("outputs",
                   [](const trace::Recording& r) {
                     nb::list result;
                     const char* const kinds[] = {"value", "input", "output"};
                     for (const graph::Output& o : r.graph.outputs)
                       result.append(nb::make_tuple(kinds[static_cast<size_t>(o.kind)], o.alias));
                     return result;
                   })
      .def_prop_ro("mutated",
                   [](const trace::Recording& r) {
                     std::vector<int> inputs;
                     for (const graph::Mutation& mutation : r.graph.mutations)
                       inputs.push_back(mutation.input);
                     return inputs;
                   })
      .def_ro("fallbacks", &trace::Recording::meta_fallback_names)
      .def_ro("foreign_constants", &trace::Recording::foreign_constants);
  nb::class_<Recorder>(m, "Recorder")
      .def(nb::init<bool>(), nb::arg("strict_shapes") = false)
      .def("add_input",
           [](Recorder& r, nb::handle real) { return nb::steal(r.recorder->add_input(real.ptr())); })
      .def("add_symbolic_input", &Recorder::add_symbolic_input)
      .def("guards", &Recorder::guards)
      .def("holds", &Recorder::holds)
      .def("input_index", [](Recorder& r, nb::handle t) { return r.recorder->input_index(t.ptr()); })
      .def("value_of", [](Recorder& r, nb::handle t) { return r.recorder->value_of(t.ptr()); })
      .def("finish",
           [](Recorder& r, nb::list outputs) {
             std::vector<PyObject*> objects;
             for (nb::handle output : outputs) objects.push_back(output.ptr());
             return r.recorder->finish(objects);
           })
      .def("close", [](Recorder& r) { r.recorder.reset(); });
  nb::class_<Pause>(m, "Pause")
      .def(nb::init<>())
      .def("__enter__", [](Pause& p) { p.pause = std::make_unique<trace::Recorder::Pause>(); })
      .def("__exit__", [](Pause& p, nb::args) { p.pause.reset(); });
  m.def("is_trace_tensor", [](nb::handle object) { return trace::is_trace_tensor(object.ptr()); });
  m.def("parse_and_functionalise",
        [](const std::string& text) { return graph::print(trace::functionalise(graph::parse(text))); });
  m.attr("CannotTrace") = nb::borrow(trace::trace_error());
  m.attr("InternalTraceError") = nb::borrow(trace::internal_trace_error());
}
