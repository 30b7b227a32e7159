// The extension module oxyfuel_runtime_testing: builds plans by hand, runs them, freezes and packs tensors.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <ATen/ATen.h>

#include "backend/cpu/jit/jit.h"
#include "base/error.h"
#include "runtime/cpu/packing.h"
#include "runtime/cuda/graphs/address_places.h"
#include "runtime/execution/executable.h"
#include "runtime/execution/freeze.h"
#include "runtime/execution/prepare.h"
#include "runtime/execution/replay_memory.h"
#include "runtime/execution/size_constants.h"
#include "runtime/execution/specialise.h"
#include "runtime/values/convert.h"
#include "runtime/values/tensor_object.h"
#include "runtime/values/tensors.h"
#include "runtime/variants/trial.h"

namespace nb = nanobind;
using namespace oxy;

namespace {

const at::Tensor& tensor(nb::handle object) {
  if (!runtime::is_tensor(object.ptr())) throw nb::type_error("a tensor, please");
  return runtime::tensor_of(object.ptr());
}

std::vector<at::Tensor> tensors(nb::list list) {
  std::vector<at::Tensor> result;
  for (nb::handle item : list) result.push_back(tensor(item));
  return result;
}

nb::object wrap(const at::Tensor& value) {
  return nb::steal(runtime::wrap_tensor(value));
}

// A number, or a name: "s0" is the symbol with id 0.
Expr expression(nb::handle object) {
  if (nb::isinstance<nb::str>(object)) {
    const auto name = nb::cast<std::string>(object);
    return Expr::variable(name, std::stoll(name.substr(1)), {2, 1 << 20});
  }
  return Expr(nb::cast<int64_t>(object));
}

std::vector<Expr> expressions(nb::handle list) {
  std::vector<Expr> result;
  for (nb::handle item : list) result.push_back(expression(item));
  return result;
}

plan::CallArgument argument(nb::handle object) {
  if (object.is_none()) return graph::None{};
  if (nb::isinstance<plan::View>(object)) return nb::cast<plan::View>(object);
  if (nb::isinstance<nb::bool_>(object)) return nb::cast<bool>(object);
  if (nb::isinstance<nb::int_>(object)) return Expr(nb::cast<int64_t>(object));
  if (nb::isinstance<nb::float_>(object)) return nb::cast<double>(object);
  if (nb::isinstance<nb::str>(object)) return nb::cast<std::string>(object);
  const auto list = nb::cast<nb::list>(object);
  if (list.size() > 0 && nb::isinstance<plan::View>(list[0])) {
    std::vector<std::optional<plan::View>> views;
    for (nb::handle item : list) views.emplace_back(nb::cast<plan::View>(item));
    return views;
  }
  return expressions(list);
}

plan::Storage storage(const std::string& name) {
  const std::pair<const char*, plan::Storage> names[] = {
      {"input", plan::Storage::Input},   {"constant", plan::Storage::Constant},
      {"arena", plan::Storage::Arena},   {"temporary", plan::Storage::Temporary},
      {"output", plan::Storage::Output}, {"extern", plan::Storage::Extern}};
  for (const auto& [word, value] : names)
    if (name == word) return value;
  throw nb::value_error("no such storage");
}

graph::OutputKind output_kind(const std::string& name) {
  if (name == "value") return graph::OutputKind::Value;
  return name == "input" ? graph::OutputKind::InputAlias : graph::OutputKind::OutputAlias;
}

const OperatorSchema* schema(const std::string& name) {
  if (name == "oxyfuel::packed_linear") return runtime::packed_linear_schema();
  if (name == "oxyfuel::packed_convolution") return runtime::packed_convolution_schema();
  const size_t dot = name.find('.');
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(
      name.substr(0, dot).c_str(), dot == std::string::npos ? "" : name.substr(dot + 1).c_str());
  return runtime::schema_of(op);
}

std::vector<plan::BufferId> ids(const std::vector<int>& numbers) {
  return {numbers.begin(), numbers.end()};
}

struct Runner {
  std::shared_ptr<runtime::Executable> executable;
};

// One pass of recorded work, as the driver would have given it. A node is a kernel with one parameter of
// words.
using Words = std::vector<uint64_t>;
using Allocation = std::tuple<uint64_t, int64_t, int64_t, int64_t>;  // address, bytes, nodes; -1: to the end
using Memory = std::pair<uint64_t, int64_t>;                         // address, bytes
using Made = std::tuple<uint64_t, uint64_t, uint64_t>;  // by memory; address, the node behind its operator

runtime::CapturedPass pass(const std::vector<Words>& nodes, const std::vector<Memory>& memories,
                           const std::vector<Made>& results, const std::vector<Allocation>& allocations) {
  static const backend::cuda::Driver driver;
  runtime::CapturedPass result{runtime::CapturedGraph(driver, nullptr), {}, {}, {}, {}};
  for (const Words& words : nodes) {
    runtime::CapturedNode node;
    node.kind = runtime::NodeKind::Kernel;
    const auto* const first = reinterpret_cast<const std::byte*>(words.data());
    node.parameters.emplace_back(first, first + words.size() * sizeof(uint64_t));
    result.nodes.push_back(std::move(node));
  }
  for (const auto& [address, bytes, first, end] : allocations)
    result.allocations.push_back({address, bytes, static_cast<size_t>(first),
                                  end < 0 ? runtime::kStillAllocated : static_cast<size_t>(end)});
  for (const auto& [address, bytes] : memories) result.memories.push_back({address, bytes});
  for (const auto& [memory, address, end_node] : results)
    result.results.push_back({memory, address, end_node});
  return result;
}

}  // namespace

NB_MODULE(oxyfuel_runtime_testing, m) {
  nb::class_<plan::View>(m, "View");
  nb::class_<plan::Plan>(m, "Plan")
      .def("__init__",
           [](plan::Plan* self, int inputs, int64_t arena) {
             new (self) plan::Plan();
             self->input_count = inputs;
             self->arena_bytes = arena;
           })
      .def("buffer",
           [](plan::Plan& p, const std::string& dtype, nb::list sizes, nb::list strides,
              const std::string& place, int slot, int64_t offset) {
             plan::Buffer buffer{"b" + std::to_string(p.buffers.size()),
                                 *dtype_from_name(dtype),
                                 {},
                                 expressions(sizes),
                                 expressions(strides),
                                 storage(place),
                                 slot,
                                 offset};
             return p.buffers.add(std::move(buffer)).number();
           })
      .def("view",
           [](plan::Plan& p, int id) {
             const plan::BufferId buffer(id);
             const plan::Buffer& b = p.buffers.at(buffer);
             return plan::View{buffer, b.sizes, b.strides, 0};
           })
      .def("window",
           [](plan::Plan&, int id, nb::list sizes, nb::list strides, nb::handle offset) {
             return plan::View{plan::BufferId(id), expressions(sizes), expressions(strides),
                               expression(offset)};
           })
      .def("kernel", [](plan::Plan& p, const std::string& name,
                        const std::string& source) { return p.kernels.add({name, source}).number(); })
      .def("launch",
           [](plan::Plan& p, int kernel, const std::vector<int>& buffers, nb::list sizes, nb::handle extent,
              int64_t grain, int64_t scratch) {
             p.steps.emplace_back(plan::Launch{plan::KernelId(kernel), ids(buffers), expressions(sizes),
                                               plan::Slices{expression(extent), grain, scratch}});
           })
      .def("call",
           [](plan::Plan& p, const std::string& name, nb::list args, const std::vector<int>& outputs) {
             plan::Call call{schema(name), {}, ids(outputs)};
             for (nb::handle item : args) call.args.push_back(argument(item));
             p.steps.emplace_back(std::move(call));
           })
      .def("free", [](plan::Plan& p, int id) { p.steps.emplace_back(plan::Free{plan::BufferId(id)}); })
      .def("output",
           [](plan::Plan& p, const plan::View& view, const std::string& kind, int alias) {
             const DType dtype = p.buffers.at(view.buffer).dtype;
             p.outputs.push_back({view, dtype, output_kind(kind), alias});
           })
      .def("mutation",
           [](plan::Plan& p, int input, const plan::View& view) { p.mutations.push_back({input, view}); })
      .def("text", [](const plan::Plan& p) { return plan::print(p); })
      .def("verify", [](const plan::Plan& p) { plan::verify(p); })
      // Of calls alone: the bytes of the arena, and by buffer the place of a temporary in it, or None.
      .def("replay_memory",
           [](const plan::Plan& p) {
             runtime::SymbolicPlan symbolic(p);
             check(symbolic.evaluate({}), "a plan has symbols");
             const runtime::ReplayMemory memory =
                 runtime::replay_memory(*runtime::prepare(symbolic, nullptr, 0, p.outputs.size()).plan);
             nb::list places;
             for (const std::optional<int64_t>& place : memory.places) places.append(nb::cast(place));
             return nb::make_tuple(memory.arena_bytes, places);
           })
      .def("executable", [](const plan::Plan& p, nb::list constants) {
        std::shared_ptr<backend::KernelLibrary> library;
        if (!p.kernels.empty()) library = backend::cpu::make_system_compiler()->compile(p.kernels);
        return Runner{std::make_shared<runtime::Executable>(p, library, tensors(constants))};
      });
  nb::class_<Runner>(m, "Runner")
      .def(
          "run",
          [](const Runner& runner, nb::list inputs, const std::vector<int64_t>& symbols) {
            const std::vector<at::Tensor> in = tensors(inputs);
            std::vector<at::Tensor> out;
            try {
              const nb::gil_scoped_release release;
              out = runner.executable->run(in, symbols);
            } catch (const runtime::LeftToEager&) {
              throw nb::index_error("a kernel met an index out of range");
            }
            nb::list result;
            for (const at::Tensor& value : out) result.append(wrap(value));
            return result;
          },
          nb::arg("inputs"), nb::arg("symbols") = std::vector<int64_t>())
      .def("arena_bytes", [](const Runner& runner) { return runner.executable->arena_bytes(); });

  // Of a graph in text form, with its inputs; it is never compiled.
  // Calls taking so long by old and new way, the last time for ever: whether the new way won, and the calls.
  m.def("trial", [](const std::vector<double>& before, const std::vector<double>& now) {
    runtime::Trial trial;
    size_t olds = 0, news = 0;
    while (!trial.is_over()) {
      const runtime::Trial::Way way = trial.next();
      const bool is_new = way == runtime::Trial::Way::New;
      const std::vector<double>& times = is_new ? now : before;
      const size_t place = std::min(is_new ? news++ : olds++, times.size() - 1);
      trial.add(way, times[place]);
    }
    return std::pair(trial.is_new_faster(), olds + news);
  });
  nb::class_<runtime::SizeConstants>(m, "SizeConstants")
      .def("__init__",
           [](runtime::SizeConstants* self, const std::vector<std::string>& operators,
              const std::string& text, nb::list inputs) {
             for (const std::string& name : operators) schema(name);
             new (self) runtime::SizeConstants(graph::parse(text), tensors(inputs), [] { return nullptr; });
           })
      .def("get",
           [](runtime::SizeConstants& constants, const std::vector<int64_t>& symbols) {
             nb::list result;
             for (const at::Tensor& value : *constants.get(symbols)) result.append(wrap(value));
             return result;
           })
      .def("kept", [](const runtime::SizeConstants& constants) {
        const runtime::SizeConstants::Held held = constants.held();
        return std::pair(held.sets, held.bytes);
      });

  nb::class_<runtime::FrozenTensor>(m, "FrozenTensor")
      .def("unchanged", [](const runtime::FrozenTensor& f, nb::handle t) { return f.unchanged(tensor(t)); })
      .def("contents", [](const runtime::FrozenTensor& f) { return wrap(f.contents()); });
  m.def("freeze", [](nb::handle t) -> nb::object {
    runtime::FreezeAttempt attempt = runtime::try_freeze(tensor(t));
    if (attempt.frozen) return nb::cast(std::move(*attempt.frozen));
    return nb::cast(attempt.reason);
  });
  nb::class_<runtime::CapturedPass>(m, "CapturedPass");
  m.def("captured_pass", &pass, nb::arg("nodes"), nb::arg("memories"),
        nb::arg("results") = std::vector<Made>(), nb::arg("allocations") = std::vector<Allocation>());
  // (word, memory, bytes from its first) of each place; ValueError with the reason.
  m.def("find_places", [](const runtime::CapturedPass& decoy, const runtime::CapturedPass& real) {
    std::vector<std::tuple<size_t, size_t, uint64_t>> result;
    try {
      for (const runtime::MovableNode& node : runtime::find_places(decoy, real))
        for (const runtime::Place& place : node.places)
          result.emplace_back(place.offset / sizeof(uint64_t), place.movable, place.distance);
    } catch (const runtime::NotReplayable& error) {
      throw nb::value_error(error.reason.c_str());
    }
    return result;
  });
  m.def("note_thaw", [](nb::handle t) { runtime::note_thaw(tensor(t)); });
  m.def("pack_linear", [](nb::handle w, int64_t rows) {
    const at::Tensor& weight = tensor(w);
    return wrap(runtime::onednn_packing().pack_linear(weight, {rows, weight.size(1), weight.size(0)}));
  });
  m.def("pack_convolution",
        [](nb::handle w, const std::vector<int64_t>& input, const std::vector<int64_t>& stride,
           const std::vector<int64_t>& padding, const std::vector<int64_t>& dilation, int64_t groups) {
          const at::Tensor& weight = tensor(w);
          const std::vector<int64_t> sizes = weight.sizes().vec();
          return wrap(runtime::onednn_packing().pack_convolution(
              weight, {input, sizes, stride, padding, dilation, groups}));
        });
  m.def("should_pack_linear", [](int64_t rows, int64_t inputs, int64_t outputs, bool replaces) {
    const runtime::Decision decision =
        runtime::onednn_packing().should_pack(runtime::LinearShape{rows, inputs, outputs}, replaces);
    return std::pair(decision.pack, std::string(decision.reason));
  });
  m.def("tensor_bytes", [](nb::handle t) { return runtime::onednn_packing().bytes(tensor(t)); });
}
