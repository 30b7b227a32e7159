// loop::lower: it lives here, above the loop layer, because it asks the table of operators for its rules.
#include "loop/lowering.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "loop/context.h"
#include "loop/devices.h"
#include "ops/core/registry.h"

namespace oxy::loop {

namespace {

// Types that generated kernels do not compute with.
bool needs_eager_kernel(DType dtype) {
  return is_complex(dtype) || dtype == DType::UInt16 || dtype == DType::UInt32 || dtype == DType::UInt64;
}

bool needs_eager_kernel(const graph::Graph& graph, const graph::Node& node) {
  bool found = false;
  graph::for_each_input(node, [&](graph::ValueId id) { found |= needs_eager_kernel(graph.meta(id).dtype); });
  for (graph::ValueId id : node.outputs)
    found |= id != graph::kNoValue && needs_eager_kernel(graph.meta(id).dtype);
  return found || std::ranges::any_of(node.args, [](const graph::Argument& a) {
           return std::holds_alternative<std::complex<double>>(a);
         });
}

// A kernel runs on one device. What eager's operators do instead: what is on the host beside devices, and
// what takes part on several devices. If operands are on the host and on a device, eager's operator takes or
// refuses them: passes::bring_to_device() has left them there. Views are made of nothing, wherever they are.
bool is_beside(const graph::Graph& graph, const graph::Node& node, Device main) {
  if (node.op->is_view()) return false;
  std::optional<Device> device;
  bool is_on_one = true, reads_host = false;
  const auto note = [&](graph::ValueId id) {
    if (id == graph::kNoValue) return;
    const Device own = graph.meta(id).device;
    if (is_on_host(own)) {
      reads_host = true;
    } else {
      is_on_one = is_on_one && own == device.value_or(own);
      device = own;
    }
  };
  graph::for_each_input(node, note);
  if (reads_host && device) return true;
  std::ranges::for_each(node.outputs, note);
  return !is_on_one || std::ranges::any_of(node.outputs, [&](graph::ValueId id) {
    return id != graph::kNoValue && is_on_host(graph.meta(id).device) && !is_on_host(main);
  });
}

// Unsupported if a kernel would read or write what is not on its device.
void check_devices(const Program& program, Device main) {
  for (const Step& step : program.steps) {
    const auto* computation = std::get_if<Computation>(&step);
    if (computation == nullptr) continue;
    const Device own = device_of(program, *computation);
    const Device device = is_on_host(own) ? main : own;
    const auto check_buffer = [&](BufferId id) {
      if (id != kNoBuffer && !(program.buffers[id].device == device))
        throw Unsupported(fmt::format("{} is read or written by a kernel for {}, and is on {}",
                                      program.buffers[id].name, str(device), str(program.buffers[id].device)),
                          "a kernel takes tensors of its own device alone; operators copy between devices");
    };
    for (const Inst& inst : computation->body.insts)
      if (inst.op == Op::Load) check_buffer(inst.buffer);
    for (const Store& store : computation->stores) check_buffer(store.buffer);
  }
}

}  // namespace

Program lower(const graph::Graph& graph, const LoweringOptions& options) {
  LoweringContext context(graph, options);
  const Device device = graph::main_device(graph);
  for (const graph::Node& node : graph.nodes) {
    const ops::Lowering& lowering = ops::entry_of(*node.op).lower;
    context.begin_node(node);
    const bool beside = is_beside(graph, node, device);
    bool lowered = false;
    const bool in_order = options.deterministic && ops::traits_of(*node.op).scatters;
    if (lowering && !beside && !in_order && !needs_eager_kernel(graph, node)) {
      try {
        lowering(context, node);
        lowered = true;
      } catch (const Unsupported&) {
        // The rule does not cover these arguments: the eager kernel does.
      }
    }
    if (!lowered)
      context.extern_call(node, !beside && ops::traits_of(*node.op).fills_given_results,
                          ops::may_raise(graph, node));
    for (graph::ValueId id : node.outputs)
      check(id == graph::kNoValue || context.uses(id) == 0 || context.is_set(id),
            fmt::format("the lowering of {} left a used output unset", node.op->name));
  }
  Program program = context.finish();
  check_devices(program, device);
  return program;
}

}  // namespace oxy::loop
