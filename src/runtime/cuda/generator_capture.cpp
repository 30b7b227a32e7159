#include "runtime/cuda/generator_capture.h"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <Python.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include "runtime/cuda/captured_graph.h"
#include "runtime/device/generator_position.h"
#include "runtime/device/generators.h"

namespace oxy::runtime {

namespace {

using backend::cuda::Driver;

constexpr auto kMostWaiting = std::chrono::milliseconds(100);
// An operator that has begun on another thread has drawn by then.
constexpr auto kSomeTime = std::chrono::milliseconds(1);

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

bool begin(const cpy::Ref& graph) {
  return graph && call_method(graph.get(), "capture_begin",
                              Py_BuildValue("{s:O,s:s}", "pool", Py_None, "capture_error_mode", "relaxed"));
}

}  // namespace

DrawsAlone::DrawsAlone() {
  if (!draw_mutex().try_lock_for(kMostWaiting)) refuse("other threads draw, too");
  std::this_thread::sleep_for(kSomeTime);
}

DrawsAlone::~DrawsAlone() {
  draw_mutex().unlock();
}

GeneratorCapture::GeneratorCapture(const Driver& driver, const c10::Stream& beside)
    : driver_(driver), beside_(beside) {
  const c10::StreamGuard stream(beside_);
  const c10::Device device = beside_.device();
  try {
    const KeepsGenerators keeps({&device, 1});
    // If the program itself captures on another stream, the generator refuses this.
    at::Tensor probe = at::empty({1}, at::TensorOptions(c10::kFloat).device(device)).uniform_();
    const uint64_t before = generator_position(device).offset;
    probe.uniform_();
    drawn_ = generator_position(device).offset - before;
    graph_ = new_graph();
    if (!begin(graph_)) refuse(take_error());
    is_capturing_ = true;
    probe.uniform_();
  } catch (const c10::Error& error) {
    end();
    refuse(error.what_without_backtrace());
  }
}

GeneratorCapture::~GeneratorCapture() {
  if (is_capturing_) end();
}

// A generator that still takes itself for captured would refuse all who draw later: another capture of
// nothing frees it.
void GeneratorCapture::end() noexcept {
  if (!is_capturing_) return;
  is_capturing_ = false;
  const c10::StreamGuard stream(beside_);
  if (call_method(graph_.get(), "capture_end", nullptr)) return;
  PyErr_Clear();
  const cpy::Ref other = new_graph();
  if (begin(other)) call_method(other.get(), "capture_end", nullptr);
  PyErr_Clear();
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
