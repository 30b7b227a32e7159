// A second backend through the same contract: its kernels are loop programs, which the reference interpreter
// runs.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <set>

#include "backend/graph_checks.h"
#include "backend/registry/backends.h"
#include "backend/shared/fusion.h"
#include "base/error.h"
#include "loop/interpreter.h"

using namespace oxy;

namespace {

using loop::BufferId;

// The steps of a group as a program of their own. Its inputs and outputs are memory of the plan.
struct Piece {
  loop::Program program;
  std::vector<BufferId> inputs, outputs;  // buffers of the whole program
};

Piece piece_of(const loop::Program& whole, const backend::Group& group,
               const std::function<bool(BufferId)>& is_needed) {
  Piece piece;
  piece.program.buffers = whole.buffers;
  std::set<BufferId> written;
  const auto read = [&](BufferId id) {
    if (written.contains(id) || std::ranges::find(piece.inputs, id) != piece.inputs.end()) return;
    loop::Buffer& buffer = piece.program.buffers[id];
    buffer.kind = loop::BufferKind::Input;
    buffer.source = static_cast<int32_t>(piece.inputs.size());
    piece.inputs.push_back(id);
  };
  for (const loop::StepId step : group.steps) {
    const auto& computation = std::get<loop::Computation>(whole.steps[step]);
    for (const loop::Inst& inst : computation.body.insts)
      if (inst.op == loop::Op::Load) read(inst.buffer);
    for (const loop::Store& store : computation.stores)
      if (store.buffer != loop::kNoBuffer) written.insert(store.buffer);
    piece.program.steps.add(computation);
  }
  for (const BufferId id : written) {
    if (!is_needed(id)) continue;
    const loop::Buffer& buffer = piece.program.buffers[id];
    piece.program.outputs.push_back(
        {.view = {id, buffer.sizes, contiguous_strides(buffer.sizes), 0}, .dtype = buffer.dtype});
    piece.outputs.push_back(id);
  }
  return piece;
}

struct ToyDraft final : backend::KernelDraft {
  explicit ToyDraft(Piece piece) : piece(std::move(piece)) {}
  bool has_work() const override { return !piece.outputs.empty(); }
  void for_each_buffer(const std::function<void(BufferId, bool)>& fn) const override {
    for (const BufferId id : piece.inputs) fn(id, false);
    for (const BufferId id : piece.outputs) fn(id, true);
  }
  std::vector<std::pair<BufferId, BufferId>> write_in_place(
      const Test&, const Test&, const std::function<bool(BufferId, BufferId)>&) override {
    return {};
  }
  std::string print() const override { return loop::print(piece.program); }

  Piece piece;
};

using Run = std::function<int(void* const* buffers)>;
constexpr size_t kMostKernels = 16;
std::array<Run, kMostKernels> running;

template <size_t kNumber>
int enter(void* const* buffers, const int64_t*, void*, int64_t, int64_t) {
  return running[kNumber](buffers);
}

template <size_t... kNumbers>
constexpr std::array<backend::SliceFunction, sizeof...(kNumbers)> entries(std::index_sequence<kNumbers...>) {
  return {&enter<kNumbers>...};
}

struct ToyLibrary final : backend::KernelLibrary {
  backend::KernelFunction function(size_t kernel) const override {
    static constexpr auto kEntries = entries(std::make_index_sequence<kMostKernels>());
    return kEntries.at(kernel);
  }
};

std::vector<int64_t> numbers(const std::vector<Expr>& list) {
  std::vector<int64_t> result;
  for (const Expr& e : list) result.push_back(e.constant());
  return result;
}

// Calls fn(element of memory, its number in row-major order).
template <class Fn>
void for_each_place(const loop::Buffer& buffer, void* memory, const Fn& fn) {
  const std::vector<int64_t> sizes = numbers(buffer.sizes);
  const std::vector<int64_t> strides =
      numbers(buffer.strides ? *buffer.strides : contiguous_strides(buffer.sizes));
  oxy::testing::for_each_element(sizes, strides, 0, [&](int64_t at, int64_t k) {
    fn(static_cast<float*>(memory) + at, static_cast<size_t>(k));
  });
}

int interpret(const Piece& piece, const IdVector<BufferId, loop::Buffer>& layouts, void* const* buffers) {
  std::vector<loop::Array> inputs;
  for (size_t i = 0; i < piece.inputs.size(); ++i) {
    const loop::Buffer& buffer = layouts[piece.inputs[i]];
    loop::Array array{buffer.dtype, numbers(buffer.sizes), {}, {}};
    for_each_place(buffer, buffers[i], [&](const float* p, size_t) { array.floats.push_back(*p); });
    inputs.push_back(std::move(array));
  }
  const loop::InterpreterResult result = loop::interpret(piece.program, inputs);
  for (size_t o = 0; o < piece.outputs.size(); ++o)
    for_each_place(layouts[piece.outputs[o]], buffers[piece.inputs.size() + o],
                   [&](float* p, size_t k) { *p = static_cast<float>(result.outputs[o].floats[k]); });
  return 0;
}

// Float32 alone.
class ToyBackend final : public backend::Backend {
 public:
  std::string_view name() const override { return "toy"; }
  backend::FusionCosts fusion_costs() const override { return {0, 1e9, 1 << 20}; }

  std::unique_ptr<backend::KernelDraft> draft(const loop::Program& program,
                                              const IdVector<loop::StepId, backend::Item>&,
                                              const backend::Group& group,
                                              const std::function<bool(BufferId)>& is_needed,
                                              const backend::ScheduleOptions&) const override {
    ++drafts;
    return std::make_unique<ToyDraft>(piece_of(program, group, is_needed));
  }

  backend::PrintedKernels print(std::span<const std::unique_ptr<backend::KernelDraft>> drafts,
                                const backend::ScheduleOptions&) const override {
    backend::PrintedKernels result;
    result.launches.resize(drafts.size());
    for (size_t d = 0; d < drafts.size(); ++d) {
      if (!drafts[d] || !drafts[d]->has_work()) continue;
      const Piece& piece = static_cast<const ToyDraft&>(*drafts[d]).piece;
      backend::PrintedLaunch printed;
      printed.launch.kernel = result.kernels.next_id();
      printed.launch.shape = plan::Slices{.grain = std::numeric_limits<int64_t>::max() / 2};
      printed.buffers = piece.inputs;
      printed.buffers.insert(printed.buffers.end(), piece.outputs.begin(), piece.outputs.end());
      result.launches[d] = printed;
      result.kernels.add(
          {fmt::format("toy{}", printed.launch.kernel), loop::print(piece.program), plan::Language::Loops});
      pieces[result.kernels.back().source] = piece;
    }
    return result;
  }

  std::shared_ptr<backend::KernelLibrary> load(std::span<const plan::Kernel> kernels) const override {
    for (size_t k = 0; k < kernels.size(); ++k)
      running.at(k) = [piece = pieces.at(kernels[k].source)](void* const* buffers) {
        return interpret(piece, piece.program.buffers, buffers);
      };
    return std::make_shared<ToyLibrary>();
  }
  std::string standalone(const plan::Plan& plan, plan::KernelId kernel) const override {
    return plan.kernels[kernel].source;
  }
  std::string_view suffix() const override { return ".loops"; }

  mutable int drafts = 0;
  mutable std::map<std::string, Piece> pieces;  // by text
};

}  // namespace

TEST_CASE("backend: another one is registered, asked, and gives the same results") {
  CHECK(backend::find_backend(Device::Kind::Cpu)->name() == "cpu");
  REQUIRE(backend::find_backend(Device::Kind::Meta) == nullptr);
  backend::register_backend(Device::Kind::Meta, std::make_unique<ToyBackend>());
  CHECK_THROWS_AS(backend::register_backend(Device::Kind::Meta, std::make_unique<ToyBackend>()),
                  InternalError);
  const backend::Backend* found = backend::find_backend(Device::Kind::Meta);
  REQUIRE(found != nullptr);
  const auto& toy = static_cast<const ToyBackend&>(*found);

  const loop::Program program = oxy::testing::lowered(R"(
    graph(%0 : float32[3, 5], %1 : float32[5]) {
      %2 : float32[3, 5] = aten::add.Tensor(%0, %1)
      %3 : float32[3, 5] = aten::tanh(%2)
      %4 : float32[5, 3] = aten::permute(%3, [1, 0])
      %5 : float32[5, 3] = aten::exp(%4)
      %6 : float32[3] = aten::sum.dim_IntList(%5, [0], False)
      return %3, %6
    })");
  std::string log;
  plan::Plan plan = backend::schedule(program, toy, {.log = &log});
  plan::verify(plan);
  CHECK(toy.drafts > 0);
  CHECK(log.find("step 0:") != std::string::npos);
  REQUIRE(plan.kernels.size() > 0);
  CHECK(toy.standalone(plan, plan::KernelId(0)) == plan.kernels.front().source);

  loop::Array matrix{DType::Float32, {3, 5}, {}, {}}, row{DType::Float32, {5}, {}, {}};
  for (int k = 0; k < 15; ++k) matrix.floats.push_back(0.1 * k - 0.7);
  for (int k = 0; k < 5; ++k) row.floats.push_back(0.3 - 0.2 * k);
  const loop::InterpreterResult expected = loop::interpret(program, {matrix, row});
  oxy::testing::PlanRunner runner(plan, toy.load(plan.kernels));
  runner.set_input(matrix, 0);
  runner.set_input(row, 1);
  CHECK(runner.run() == 0);
  for (size_t k = 0; k < 2; ++k)
    oxy::testing::compare(runner.output(k), expected.outputs[k], {}, fmt::format("output {}", k));
}
