// Text form of a plan, for logs, dumps and golden tests.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graph/literals.h"
#include "plan/plan.h"

namespace oxy::plan {

namespace {

std::string list(const std::vector<Expr>& values) {
  std::vector<std::string> words;
  words.reserve(values.size());
  for (const Expr& value : values) words.push_back(value.str());
  return fmt::format("[{}]", fmt::join(words, ", "));
}

std::string_view name(Storage storage) {
  switch (storage) {
    case Storage::Input:
      return "input";
    case Storage::Constant:
      return "constant";
    case Storage::Arena:
      return "arena";
    case Storage::Temporary:
      return "temporary";
    case Storage::Output:
      return "output";
    case Storage::Extern:
      return "extern";
  }
  return "?";
}

std::string_view name(graph::OutputKind kind) {
  switch (kind) {
    case graph::OutputKind::Value:
      return "value";
    case graph::OutputKind::InputAlias:
      return "alias of input";
    case graph::OutputKind::OutputAlias:
      return "alias of output";
  }
  return "?";
}

std::string text(const Slices& slices) {
  return fmt::format(
      "extent {} grain {}{}", slices.extent.str(), slices.grain,
      slices.scratch_bytes == Expr(0) ? "" : fmt::format(" scratch {}", slices.scratch_bytes.str()));
}

std::string text(const Grid& grid) {
  return fmt::format("grid {} x {} x {}", grid.size[0].str(), grid.size[1].str(), grid.size[2].str());
}

class Printer {
 public:
  explicit Printer(const Plan& plan) : plan_(plan) {}

  std::string print() {
    line("plan of {} inputs, arena of {} bytes", plan_.input_count, plan_.arena_bytes.str());
    for (const Expr& size : plan_.positive) line("needs {} > 0", size.str());
    for (const Definition& definition : plan_.definitions)
      line("  {} = {}", definition.variable.str(), definition.value.str());
    for (const Buffer& buffer : plan_.buffers) print(buffer);
    for (const KernelId id : plan_.kernels.ids())
      line("  kernel {}: {} ({} bytes of source)", id, plan_.kernels[id].name,
           plan_.kernels[id].source.size());
    for (const Step& step : plan_.steps) std::visit([&](const auto& s) { print(s); }, step);
    for (size_t i = 0; i < plan_.outputs.size(); ++i) print(plan_.outputs[i], i);
    for (const Mutation& mutation : plan_.mutations)
      line("  input {} <- {}", mutation.input, text(mutation.value));
    return std::move(text_);
  }

 private:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }

  std::string text(BufferId id) const {
    if (id == kNoBuffer) return "_";
    if (!plan_.buffers.contains(id)) return fmt::format("%{}?", id);
    return fmt::format("%{}", plan_.buffers[id].name);
  }

  std::string text(const View& view) const {
    if (plan_.buffers.contains(view.buffer)) {
      const Buffer& buffer = plan_.buffers[view.buffer];
      if (view.sizes == buffer.sizes && view.strides == buffer.strides && view.offset == Expr(0))
        return text(view.buffer);
    }
    return fmt::format("{}{{{} strides {} at {}}}", text(view.buffer), list(view.sizes), list(view.strides),
                       view.offset.str());
  }

  std::string text(const CallArgument& argument) const {
    return std::visit(
        [&](const auto& value) -> std::string {
          using T = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<T, graph::None>) {
            return "None";
          } else if constexpr (std::is_same_v<T, View>) {
            return text(value);
          } else if constexpr (std::is_same_v<T, std::vector<std::optional<View>>>) {
            std::vector<std::string> words;
            for (const auto& view : value) words.push_back(view ? text(*view) : "None");
            return fmt::format("[{}]", fmt::join(words, ", "));
          } else if constexpr (std::is_same_v<T, bool>) {
            return value ? "True" : "False";
          } else if constexpr (std::is_same_v<T, Expr>) {
            return value.str();
          } else if constexpr (std::is_same_v<T, double>) {
            return fmt::format("{}", value);
          } else if constexpr (std::is_same_v<T, std::complex<double>>) {
            return fmt::format("({} + {}j)", value.real(), value.imag());
          } else if constexpr (std::is_same_v<T, std::string>) {
            return fmt::format("'{}'", value);
          } else if constexpr (std::is_same_v<T, DType>) {
            return std::string(oxy::name(value));
          } else if constexpr (std::is_same_v<T, Device>) {
            return str(value);
          } else if constexpr (std::is_same_v<T, MemoryFormat>) {
            for (const auto& [format, word] : graph::kMemoryFormats)
              if (format == value) return std::string(word);
            return "?";
          } else if constexpr (std::is_same_v<T, std::vector<Expr>>) {
            return list(value);
          } else {
            std::vector<std::string> words;
            for (const auto item : value) words.push_back(fmt::format("{}", item));
            return fmt::format("[{}]", fmt::join(words, ", "));
          }
        },
        argument);
  }

  void print(const Buffer& buffer) {
    TensorMeta meta{buffer.dtype, buffer.device, buffer.sizes, buffer.strides, 0};
    std::string place;
    if (buffer.storage == Storage::Arena)
      place = " at " + buffer.arena_offset.str();
    else if (buffer.storage == Storage::Input || buffer.storage == Storage::Constant)
      place = fmt::format(" {}", buffer.slot);
    line("  %{}: {} {}{}", buffer.name, str(meta), name(buffer.storage), place);
  }

  void print(const Launch& launch) {
    std::vector<std::string> names;
    for (const BufferId id : launch.buffers) names.push_back(text(id));
    line("  launch {}({}; {}) {}",
         plan_.kernels.contains(launch.kernel) ? plan_.kernels[launch.kernel].name : "?",
         fmt::join(names, ", "), list(launch.sizes),
         std::visit([](const auto& shape) { return plan::text(shape); }, launch.shape));
  }

  void print(const Call& call) {
    std::vector<std::string> results;
    for (const BufferId id : call.outputs) results.push_back(text(id));
    std::vector<std::string> args;
    for (size_t i = 0; i < call.args.size(); ++i) {
      const bool known = call.op && i < call.op->arguments.size();
      const bool keyword = known && call.op->arguments[i].kwarg_only;
      args.push_back((keyword ? call.op->arguments[i].name + "=" : "") + text(call.args[i]));
    }
    line("  {} = {}({})", fmt::join(results, ", "), call.op ? call.op->name : "?", fmt::join(args, ", "));
  }

  void print(const Free& step) { line("  free {}", text(step.buffer)); }

  void print(const Output& output, size_t index) {
    line("  output {}: {} {} {}{}", index, oxy::name(output.dtype), text(output.view), name(output.kind),
         output.kind == graph::OutputKind::Value ? "" : fmt::format(" {}", output.alias));
  }

  const Plan& plan_;
  std::string text_;
};

}  // namespace

std::string print(const Plan& plan) {
  return Printer(plan).print();
}

}  // namespace oxy::plan
