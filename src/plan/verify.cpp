#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "plan/plan.h"

namespace oxy::plan {

namespace {

// The last element that (sizes, strides, offset) reaches, plus one; 0 if there are no elements. None unless
// all are constants.
std::optional<int64_t> constant_extent(const std::vector<Expr>& sizes, const std::vector<Expr>& strides,
                                       const Expr& offset) {
  std::optional<int64_t> start = offset.as_constant();
  if (!start) return std::nullopt;
  int64_t extent = *start + 1;
  bool empty = false;
  for (size_t d = 0; d < sizes.size(); ++d) {
    const auto size = sizes[d].as_constant();
    const auto stride = strides[d].as_constant();
    if (!size || !stride) return std::nullopt;
    empty |= *size == 0;
    extent += (*size - 1) * *stride;
  }
  return empty ? 0 : extent;
}

class Verifier {
 public:
  explicit Verifier(const Plan& plan) : plan_(plan), defined_(plan.buffers.size(), false) {}

  void verify() {
    for (const BufferId id : plan_.buffers.ids()) verify(plan_.buffers[id], id);
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      where_ = fmt::format("step {}", i);
      std::visit([&](const auto& step) { verify(step); }, plan_.steps[i]);
    }
    for (size_t i = 0; i < plan_.outputs.size(); ++i) {
      where_ = fmt::format("output {}", i);
      verify(plan_.outputs[i], i);
    }
    for (const Mutation& mutation : plan_.mutations) {
      where_ = fmt::format("the mutation of input {}", mutation.input);
      require(mutation.input >= 0 && mutation.input < plan_.input_count, "there is no such input");
      read(mutation.value);
    }
  }

 private:
  void require(bool condition, std::string_view what) const {
    if (!condition) throw InternalError(fmt::format("plan: {}: {}", where_, what));
  }

  void verify(const Buffer& buffer, BufferId id) {
    where_ = fmt::format("buffer {} ({})", id, buffer.name);
    require(buffer.sizes.size() == buffer.strides.size(), "sizes and strides differ in number");
    switch (buffer.storage) {
      case Storage::Input:
        require(buffer.slot >= 0 && buffer.slot < plan_.input_count, "its input does not exist");
        defined_[id] = true;
        break;
      case Storage::Constant:
        require(buffer.slot >= 0, "it has no constant's handle");
        defined_[id] = true;
        break;
      case Storage::Arena: {
        const auto offset = buffer.arena_offset.as_constant();
        const auto elements = constant_extent(buffer.sizes, buffer.strides, 0);
        const auto bytes = plan_.arena_bytes.as_constant();
        require(!offset || (*offset >= 0 && *offset % 64 == 0),
                "its place in the arena is not aligned to 64 bytes");
        require(!offset || !elements || !bytes ||
                    *offset + *elements * static_cast<int64_t>(item_size(buffer.dtype)) <= *bytes,
                "it reaches past the end of the arena");
        if (elements == 0) break;
        if (!arena_) arena_ = buffer.device;
        require(buffer.device == *arena_, "it is on another device than the arena");
        break;
      }
      case Storage::Temporary:
      case Storage::Output:
      case Storage::Extern:
        break;
    }
  }

  const Buffer& buffer(BufferId id) const {
    require(plan_.buffers.contains(id), fmt::format("there is no buffer {}", id));
    return plan_.buffers[id];
  }

  void bounds(const View& view) const {
    const Buffer& target = buffer(view.buffer);
    require(view.sizes.size() == view.strides.size(), "a view's sizes and strides differ in number");
    const auto offset = view.offset.as_constant();
    require(!offset || *offset >= 0, "a view begins before its buffer");
    const auto reach = constant_extent(view.sizes, view.strides, view.offset);
    const auto extent = constant_extent(target.sizes, target.strides, 0);
    require(!reach || !extent || *reach <= *extent,
            fmt::format("a view reaches past buffer {}", target.name));
  }

  void read(const View& view) const {
    bounds(view);
    require(defined_[view.buffer],
            fmt::format("buffer {} is read before anything writes it", buffer(view.buffer).name));
  }

  void verify(const Launch& launch) {
    require(plan_.kernels.contains(launch.kernel), "there is no such kernel");
    if (const auto* slices = std::get_if<Slices>(&launch.shape))
      require(slices->grain >= 1 && slices->scratch_bytes.range().low >= 0,
              "grain or scratch is out of range");
    for (const BufferId id : launch.buffers) {
      const Buffer& used = buffer(id);
      require(used.device == buffer(launch.buffers[0]).device, "a kernel uses buffers on several devices");
      require(used.storage != Storage::Extern || defined_[id],
              fmt::format("a kernel uses buffer {} before the call that owns it", used.name));
      defined_[id] = true;  // a kernel may name a buffer without elements, which nobody writes
    }
    for (const BufferId id : launch.written)
      require(std::ranges::find(launch.buffers, id) != launch.buffers.end(),
              fmt::format("a kernel writes buffer {}, which it does not use", buffer(id).name));
  }

  void verify(const Call& call) {
    require(call.op != nullptr, "a call without an operator");
    require(call.args.size() == call.op->arguments.size(),
            fmt::format("{} has {} arguments, not {}", call.op->name, call.op->arguments.size(),
                        call.args.size()));
    for (const CallArgument& argument : call.args) {
      if (const auto* view = std::get_if<View>(&argument)) read(*view);
      if (const auto* views = std::get_if<std::vector<std::optional<View>>>(&argument))
        for (const auto& view : *views)
          if (view) read(*view);
    }
    for (const BufferId id : call.outputs) {
      if (id == kNoBuffer) continue;
      const Storage storage = buffer(id).storage;
      require(storage != Storage::Input && storage != Storage::Constant,
              fmt::format("the result of {} goes to an input or a constant", call.op->name));
      defined_[id] = true;
    }
  }

  void verify(const Free& step) {
    const Storage storage = buffer(step.buffer).storage;
    require(storage == Storage::Extern || storage == Storage::Temporary,
            "only temporaries and what an extern call returned are freed");
    require(defined_[step.buffer], "a buffer is freed before it exists");
    defined_[step.buffer] = false;
  }

  void verify(const Output& output, size_t index) const {
    switch (output.kind) {
      case graph::OutputKind::Value:
        read(output.view);
        require(buffer(output.view.buffer).dtype == output.dtype, "its type is not its buffer's");
        break;
      case graph::OutputKind::InputAlias:
        require(output.alias >= 0 && output.alias < plan_.input_count,
                "it aliases an input that does not exist");
        break;
      case graph::OutputKind::OutputAlias:
        require(output.alias >= 0 && static_cast<size_t>(output.alias) < index,
                "it aliases no earlier output");
        break;
    }
  }

  const Plan& plan_;
  IdVector<BufferId, bool> defined_;
  std::optional<Device> arena_;
  std::string where_;
};

}  // namespace

void verify(const Plan& plan) {
  Verifier(plan).verify();
}

}  // namespace oxy::plan
