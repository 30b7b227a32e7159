#include "runtime/cuda/graphs/generator_capture.h"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <Python.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <c10/util/ScopeExit.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "runtime/cuda/graphs/captured_graph.h"

namespace oxy::runtime {

namespace {

using backend::cuda::Driver;

// What has begun on other threads while the GIL was free has drawn by then.
constexpr auto kSomeTime = std::chrono::milliseconds(3);

[[noreturn]] void refuse(const std::string& why) {
  throw NotReplayable{"it draws random numbers, and " + why, {}, true};
}

// The text of the Python exception that is set, which is cleared.
std::string take_error() {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  const cpy::Ref owned[] = {cpy::Ref::steal(type), cpy::Ref::steal(value), cpy::Ref::steal(trace)};
  const cpy::Ref text = cpy::Ref::steal(value ? PyObject_Str(value) : nullptr);
  const char* const characters = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  std::string result = characters ? characters : "unknown error";
  PyErr_Clear();
  return result;
}

cpy::Ref call_method(PyObject* object, const char* name, PyObject* keywords) {
  const cpy::Ref named = cpy::Ref::steal(keywords);
  const cpy::Ref method = cpy::Ref::steal(PyObject_GetAttrString(object, name));
  const cpy::Ref none = cpy::Ref::steal(PyTuple_New(0));
  return cpy::Ref::steal(method && none ? PyObject_Call(method.get(), none.get(), named.get()) : nullptr);
}

// PyTorch's class for graphs, with the graph kept after the capture. Null with an exception.
cpy::Ref new_graph() {
  const cpy::Ref module = cpy::Ref::steal(PyImport_ImportModule("torch.cuda"));
  if (!module) return {};
  return call_method(module.get(), "CUDAGraph", Py_BuildValue("{s:O}", "keep_graph", Py_True));
}

// Calls `first` when this thread first allocates memory, while the object lives.
class AtAllocation {
 public:
  explicit AtAllocation(std::function<void()> first)
      : guard_(c10::DebugInfoKind::PROFILER_STATE, std::make_shared<Report>(std::move(first))) {}

 private:
  class Report : public c10::MemoryReportingInfoBase {
   public:
    explicit Report(std::function<void()> first) : first_(std::move(first)) {}
    void reportMemoryUsage(void* /*pointer*/, int64_t /*change*/, size_t /*allocated*/, size_t /*reserved*/,
                           c10::Device /*device*/) override {
      if (first_) std::exchange(first_, nullptr)();
    }
    bool memoryProfilingEnabled() const override { return true; }

   private:
    std::function<void()> first_;
  };
  c10::DebugInfoGuard guard_;
};

}  // namespace

GeneratorCapture::GeneratorCapture(const Driver& driver, const c10::Stream& beside)
    : driver_(driver),
      beside_(beside),
      generator_(at::globalContext().defaultGenerator(beside.device())),
      original_(generator_.graphsafe_get_state()),
      captured_(generator_.clone()) {
  const c10::StreamGuard stream(beside_);
  try {
    at::Tensor probe = at::empty({1}, at::TensorOptions(c10::kFloat).device(beside_.device()));
    const uint64_t before = captured_.get_offset();
    probe.uniform_(0, 1, captured_);
    drawn_ = captured_.get_offset() - before;
    begin();
    probe.uniform_(0, 1, captured_);
    std::this_thread::sleep_for(kSomeTime);
  } catch (const c10::Error& error) {
    end();
    refuse(error.what_without_backtrace());
  }
}

void GeneratorCapture::set_state(const at::Generator& state) {
  const std::scoped_lock lock(generator_.mutex());
  generator_.graphsafe_set_state(state);
}

// PyTorch's capture takes the state that the default generator has when it begins. It releases the GIL
// meanwhile, and a state that is captured refuses whoever draws for a result. So the state for captures is
// there no longer than until the capture knows it: then the capture allocates memory for it. What others take
// of it up to then they should have taken of the original one.
void GeneratorCapture::begin() {
  graph_ = new_graph();
  if (!graph_) refuse(take_error());
  const uint64_t before = captured_.get_offset();
  bool is_original = false;
  const auto restore = [&] {
    if (std::exchange(is_original, true)) return;
    set_state(original_);
    const uint64_t taken = captured_.get_offset() - before;
    if (taken == 0) return;
    const std::scoped_lock lock(generator_.mutex());
    generator_.set_offset(generator_.get_offset() + taken);
  };
  set_state(captured_);
  {
    const AtAllocation known(restore);
    is_capturing_ = static_cast<bool>(
        call_method(graph_.get(), "capture_begin",
                    Py_BuildValue("{s:O,s:s}", "pool", Py_None, "capture_error_mode", "relaxed")));
  }
  restore();
  if (!is_capturing_) refuse(take_error());
}

GeneratorCapture::~GeneratorCapture() {
  end();
}

void GeneratorCapture::draw(const std::function<void()>& enqueue_operator) {
  set_state(captured_);
  const auto restore = c10::make_scope_exit([&] { set_state(original_); });
  enqueue_operator();
}

void GeneratorCapture::end() noexcept {
  if (!is_capturing_) return;
  is_capturing_ = false;
  const c10::StreamGuard stream(beside_);
  if (!call_method(graph_.get(), "capture_end", nullptr)) PyErr_Clear();  // finish() finds out
}

CapturedGenerator GeneratorCapture::finish() {
  end();
  const cpy::Ref handle = call_method(graph_.get(), "raw_cuda_graph", nullptr);
  void* const graph = handle ? PyLong_AsVoidPtr(handle.get()) : nullptr;
  if (graph == nullptr) refuse(take_error());
  std::optional<CapturedGenerator> result = generator_of(nodes_of(driver_, graph));
  if (!result) refuse("PyTorch passes the state of its generator in an unknown way");
  result->first = drawn_;
  return *result;
}

}  // namespace oxy::runtime
