#include "backend/cuda/print/plan_script.h"

#include <map>

#include "backend/cuda/print/lines.h"
#include "backend/cuda/print/value.h"
#include "backend/shared/nest_expressions.h"
#include "base/error.h"

namespace oxy::backend::cuda {

namespace {

using plan::BufferId;
using plan::Storage;

std::string list_text(const std::vector<Expr>& list) {
  std::string out;
  for (const Expr& e : list) out += (out.empty() ? "" : ", ") + e.str();
  return "[" + out + "]";
}

std::string kernel_arguments(const plan::Launch& launch, const std::string& name, auto memory) {
  std::string out;
  for (const BufferId id : launch.buffers) out += memory(id) + ", ";
  for (const Expr& size : launch.sizes) out += size.str() + ", ";
  return out + fmt::format("**{0}_launch[\"constants\"], **{0}_launch[\"options\"]", name);
}

class ScriptPrinter {
 public:
  explicit ScriptPrinter(const plan::Plan& plan) : plan_(plan), made_(plan.buffers.size()) {}

  std::string print() {
    std::string kernels;
    for (const plan::Kernel& kernel : plan_.kernels) kernels += kernel.source + "\n\n";
    Lines head;
    head.line("def run(inputs, constants=None):");
    body_.line("device = {}", plan_.input_count > 0 ? "inputs[0].device" : "\"cpu\"");
    print_symbols();
    if (!(plan_.arena_bytes == Expr(0)))
      body_.line("arena = torch.empty([({} + 63) // 64 * 64], dtype=torch.uint8, device=device)",
                 plan_.arena_bytes.str());
    for (const plan::Step& step : plan_.steps) print_step(step);
    for (const plan::Mutation& mutation : plan_.mutations)
      if (plan_.buffers[mutation.value.buffer].storage != Storage::Input)
        body_.line("inputs[{}].copy_({})", mutation.input, view(mutation.value));
    std::string outputs;
    for (size_t k = 0; k < plan_.outputs.size(); ++k) {
      body_.line("result{} = {}", k, output(plan_.outputs[k]));
      outputs += fmt::format("{}result{}", k == 0 ? "" : ", ", k);
    }
    body_.line("return [{}]", outputs);
    return kernels + "import torch\n\n\n" + head.text() + body_.text();
  }

 private:
  // Sizes that the inputs tell.
  void print_symbols() {
    std::map<int64_t, bool> known;
    for (const plan::Buffer& buffer : plan_.buffers) {
      if (buffer.storage != Storage::Input) continue;
      for (size_t d = 0; d < buffer.sizes.size(); ++d)
        if (const Expr& size = buffer.sizes[d];
            size.kind() == sym::Kind::Variable && known.emplace(size.variable_id(), true).second)
          body_.line("{} = inputs[{}].size({})", size.str(), buffer.slot, d);
    }
  }

  // The tensor whose data is the buffer's memory; made where it is first used.
  std::string memory(BufferId id) {
    const plan::Buffer& buffer = plan_.buffers[id];
    const std::string name = fmt::format("memory{}", id);
    if (made_[id]) return name;
    made_[id] = true;
    const std::string_view dtype = torch_type(buffer.dtype);
    switch (buffer.storage) {
      case Storage::Input:
        body_.line("{} = inputs[{}]", name, buffer.slot);
        break;
      case Storage::Constant:
        body_.line("{} = constants[{}]", name, buffer.slot);
        break;
      case Storage::Arena:
        if (plan_.arena_bytes == Expr(0))
          body_.line("{} = torch.empty([0], dtype={}, device=device)", name, dtype);
        else
          body_.line("{} = arena[{}:].view({})", name, buffer.arena_offset.str(), dtype);
        break;
      case Storage::Temporary:
      case Storage::Output:
      case Storage::Extern:
        body_.line("{} = torch.empty_strided({}, {}, dtype={}, device=device)", name, list_text(buffer.sizes),
                   list_text(buffer.strides), dtype);
        break;
    }
    return name;
  }

  std::string view(const plan::View& v) {
    const plan::Buffer& buffer = plan_.buffers[v.buffer];
    const std::string name = memory(v.buffer);
    const bool is_whole = v.sizes == buffer.sizes && v.strides == buffer.strides && v.offset == Expr(0);
    if (is_whole && buffer.storage != Storage::Arena) return name;
    return fmt::format("torch.as_strided({}, {}, {}, {}.storage_offset() + {})", name, list_text(v.sizes),
                       list_text(v.strides), name, v.offset.str());
  }

  std::string output(const plan::Output& o) {
    switch (o.kind) {
      case graph::OutputKind::Value: {
        const bool is_ours = plan_.buffers[o.view.buffer].storage == Storage::Output;
        return view(o.view) + (is_ours ? "" : ".clone()");
      }
      case graph::OutputKind::InputAlias:
        return fmt::format("torch.as_strided(inputs[{0}], {1}, {2}, inputs[{0}].storage_offset() + {3})",
                           o.alias, list_text(o.view.sizes), list_text(o.view.strides), o.view.offset.str());
      case graph::OutputKind::OutputAlias:
        return fmt::format("torch.as_strided(result{0}, {1}, {2}, result{0}.storage_offset() + {3})", o.alias,
                           list_text(o.view.sizes), list_text(o.view.strides), o.view.offset.str());
    }
    throw InternalError("an output of unknown kind");
  }

  void print_step(const plan::Step& step) {
    if (const auto* launch = std::get_if<plan::Launch>(&step)) return print_launch(*launch);
    if (const auto* call = std::get_if<plan::Call>(&step)) return print_call(*call);
    body_.line("del {}", memory(std::get<plan::Free>(step).buffer));
  }

  void print_launch(const plan::Launch& launch) {
    const std::string& name = plan_.kernels[launch.kernel].name;
    const std::string arguments = kernel_arguments(launch, name, [&](BufferId id) { return memory(id); });
    const Expr& extent = std::get<plan::Grid>(launch.shape).size[0];
    const auto programs = extent.as_constant();
    if (programs && *programs == 0) return;
    if (programs)
      body_.line("{}[({},)]({})", name, *programs, arguments);
    else
      body_.line("if (programs := {}) > 0: {}[(programs,)]({})", extent.str(), name, arguments);
  }

  std::string argument(const plan::CallArgument& a) {
    if (const auto* v = std::get_if<plan::View>(&a)) return view(*v);
    if (std::holds_alternative<graph::None>(a)) return "None";
    if (const auto* b = std::get_if<bool>(&a)) return *b ? "True" : "False";
    if (const auto* e = std::get_if<Expr>(&a)) return e->str();
    if (const auto* d = std::get_if<double>(&a)) return fmt::format("float(\"{}\")", *d);
    if (const auto* s = std::get_if<std::string>(&a)) return "\"" + *s + "\"";
    if (const auto* dtype = std::get_if<DType>(&a)) return std::string(torch_type(*dtype));
    if (const auto* list = std::get_if<std::vector<Expr>>(&a)) return list_text(*list);
    if (const auto* list = std::get_if<std::vector<bool>>(&a)) {
      std::string out;
      for (const bool b : *list) out += fmt::format("{}{}", out.empty() ? "" : ", ", b ? "True" : "False");
      return "[" + out + "]";
    }
    if (std::holds_alternative<Device>(a)) return "device";
    if (const auto* views = std::get_if<std::vector<std::optional<plan::View>>>(&a)) {
      std::string out;
      for (const auto& v : *views) out += (out.empty() ? "" : ", ") + (v ? view(*v) : "None");
      return "[" + out + "]";
    }
    throw Unsupported("a call with an argument that a script cannot name");
  }

  void print_call(const plan::Call& call) {
    std::string name = call.op->name;  // "aten::mm", "aten::add.Tensor"
    const bool has_overload = name.find('.') != std::string::npos;
    name.replace(name.find("::"), 2, ".");
    std::string arguments;
    for (size_t k = 0; k < call.args.size(); ++k) {
      const ArgumentInfo& info = call.op->arguments.at(k);
      arguments += arguments.empty() ? "" : ", ";
      arguments += (info.kwarg_only ? info.name + "=" : "") + argument(call.args[k]);
    }
    body_.line("results = torch.ops.{}{}({})", name, has_overload ? "" : ".default", arguments);
    if (call.outputs.size() == 1) body_.line("results = [results]");
    for (size_t k = 0; k < call.outputs.size(); ++k) {
      const BufferId id = call.outputs[k];
      if (id == plan::kNoBuffer) continue;
      const plan::Buffer& buffer = plan_.buffers[id];
      if (buffer.storage == Storage::Extern) {
        made_[id] = true;
        body_.line("memory{} = results[{}]", id, k);
      } else {
        body_.line("{}.copy_(results[{}])", view({id, buffer.sizes, buffer.strides, 0}), k);
      }
    }
  }

  const plan::Plan& plan_;
  IdVector<BufferId, bool> made_;  // by buffer: `memory<id>` is a name of the script
  Lines body_{1};
};

}  // namespace

std::string plan_script(const plan::Plan& plan) {
  return ScriptPrinter(plan).print();
}

}  // namespace oxy::backend::cuda
