#include "driver/entries/entry.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/scalar_tensor.h>
#include <c10/core/impl/COW.h>
#include <c10/util/SmallVector.h>
#include <torch/csrc/Exceptions.h>

#include <fmt/format.h>

#include <algorithm>

#include "base/config.h"
#include "base/error.h"
#include "base/log.h"
#include "base/timing.h"
#include "cpy/gil.h"
#include "driver/entries/computed_objects.h"
#include "driver/state/metrics.h"
#include "eval/rebuild/perform.h"
#include "eval/state/break.h"
#include "hook/hook.h"
#include "runtime/device/current.h"
#include "runtime/execution/executable.h"
#include "runtime/extern/index_range.h"
#include "runtime/values/tensor_object.h"
#include "torch_api/error_text.h"
#include "trace/functional/functionalise.h"

namespace oxy::driver {

using cpy::Ref;

namespace {

bool nothing_handled() {
  const Ref handled = Ref::steal(PyErr_GetHandledException());
  return !handled || handled == Py_None;
}

bool holds(const sym::Condition& condition, std::span<const int64_t> symbols) {
  return sym::evaluate(condition,
                       [&](int64_t id) { return std::optional(symbols[static_cast<size_t>(id)]); });
}

// Graph inputs are tensors and varying numbers (eval/numbers/varying_number.h).
bool is_number(PyObject* input) {
  return PyFloat_CheckExact(input) || PyLong_CheckExact(input);
}

at::Tensor input_tensor(PyObject* value) {
  if (PyFloat_CheckExact(value)) return at::scalar_tensor(PyFloat_AS_DOUBLE(value), at::kDouble);
  if (PyLong_CheckExact(value)) return at::scalar_tensor(PyLong_AsLongLong(value), at::kLong);
  return runtime::tensor_of(value);
}

// Raises, since nothing else can be done or strict mode asks for it.
std::vector<Ref> internal_error(const char* what) {
  PyErr_Format(PyExc_RuntimeError, "oxyfuel internal error: %s\nPlease report it.", what);
  return {};
}

// The address range of a tensor's storage. Ranges overlap if storages share a buffer, or are copy-on-write
// clones that have not been copied yet.
struct MemoryRange {
  const char* begin = nullptr;
  const char* end = nullptr;
  bool is_written = false;
};

MemoryRange memory_of(const at::Tensor& tensor) {
  const auto* begin = static_cast<const char*>(tensor.storage().data());
  return {begin, begin + tensor.storage().nbytes(), false};
}

// The graph inputs that matches() found, for the time of a call. Their Python objects are kept alive, and the
// tensors are borrowed from them. (A second owner of a tensor that Python alone owns costs some 100 ns and
// needs the GIL.) Tensors that operators read while the GIL is released are owned. Made and dropped with the
// GIL.
class CallInputs {
 public:
  // `owns`: by input; empty: none.
  CallInputs(const eval::Capture& capture, const std::vector<bool>& owns) {
    tensors_.reserve(capture.inputs.size());
    objects_.reserve(capture.inputs.size());
    for (size_t i = 0; i < capture.inputs.size(); ++i) {
      PyObject* const value = capture.guards.value(capture.inputs[i]);
      if ((!owns.empty() && owns[i]) || is_number(value)) {
        tensors_.push_back(input_tensor(value));
        objects_.push_back(nullptr);
      } else {
        tensors_.push_back(Borrow::createBorrow(runtime::tensor_of(value)));
        objects_.push_back(Py_NewRef(value));
      }
    }
  }
  ~CallInputs() {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (objects_[i] == nullptr) continue;
      Borrow::destroyBorrow(tensors_[i]);
      Py_DECREF(objects_[i]);
    }
  }
  CallInputs(const CallInputs&) = delete;
  CallInputs& operator=(const CallInputs&) = delete;

  std::span<const at::Tensor> get() const { return {tensors_.data(), tensors_.size()}; }

 private:
  using Borrow = c10::MaybeOwnedTraits<at::Tensor>;
  static constexpr size_t kFewInputs = 8;  // for which no memory is allocated
  c10::SmallVector<at::Tensor, kFewInputs> tensors_;
  c10::SmallVector<PyObject*, kFewInputs> objects_;  // null: the tensor is not borrowed
};

// Collects the warnings of PyTorch's kernels while a region runs, and shows them as PyTorch's functions do.
class KernelWarnings final : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override { warnings_.push_back(warning); }

  // False: a filter of the program's has turned a warning into a Python error, which is set.
  bool show() const {
    if (warnings_.empty()) return true;
    try {
      const torch::PyWarningHandler handler;
      for (const c10::Warning& warning : warnings_) c10::warn(warning);
    } catch (python_error& error) {
      error.restore();
      return false;
    }
    return true;
  }

 private:
  std::vector<c10::Warning> warnings_;
};

}  // namespace

Entry::Entry(std::unique_ptr<eval::Capture> capture, const GlobalState& state,
             const CompileOptions& wanted_options, const CustomBackend& backend, const std::string& name)
    : capture_(std::move(capture)), state_(state), name_(name) {
  metrics().guards += static_cast<int64_t>(capture_->guards.size());
  if (log_enabled(Channel::Guards))
    for (const std::string& line : capture_->guards.describe_all()) log(Channel::Guards, "{}", line);
  const graph::Graph& graph = capture_->recording.graph;
  operators_ = static_cast<int64_t>(graph.nodes.size());
  if (graph.nodes.empty() && graph.outputs.empty()) return;
  CompileOptions options = wanted_options;
  options.hints = sym::Hints(capture_->guards.known_symbol_values());
  options.multiples = capture_->multiples;
  for (const sym::Multiple& multiple : options.multiples) options.hints.add(multiple);
  options.static_variants.name = name;
  if (backend) {
    if (capture_->torch_program) {
      graph_ = compile_with_backend(*capture_, inputs(), backend, name);
      return;
    }
    count_break(fmt::format("a region of {} is not given to backend '{}' and runs one operator at a time: {}",
                            name, backend.name, capture_->torch_problem),
                "", {});
    options.backend = Backend::Eager;
  }
  CompileStatistics statistics = statistics_of(capture_->recording);
  const Dump dump(name);
  FunctionalRecording functional =
      make_functional(std::move(capture_->recording), std::move(capture_->joint), options, dump);
  for (const graph::Mutation& mutation : functional.recording.graph.mutations)
    written_.push_back(mutation.input);
  if (writes_shared_memory())
    throw Unsupported("an argument that is written to shares memory with another one");
  std::vector<at::Tensor> weights;
  if (options.freezing && options.backend == Backend::Native && !at::GradMode::is_enabled()) {
    weights = inputs();
    for (size_t i = 0; i < weights.size(); ++i)
      if (!capture_->guards.is_module_state(capture_->inputs[i])) weights[i] = at::Tensor();
  }
  Compiled compiled = compile(std::move(functional), weights, options, dump);
  graph_ = std::move(compiled.graph);
  statistics += compiled.statistics;
  kernels_ = statistics.kernels;
  extern_calls_ = statistics.extern_calls;
  metrics().compiled += statistics;
}

runtime::Readiness Entry::readiness() {
  using runtime::Readiness;
  if (is_ready_ || !graph_) return Readiness::Ready;
  if (const Readiness state = graph_->readiness(); state != Readiness::Ready) return state;
  if (graph_->is_long())
    for (size_t i = 0; i < capture_->inputs.size(); ++i) owned_.push_back(graph_->reads(i));
  holds_weights_ = graph_->holds_weights();
  is_ready_ = true;
  return Readiness::Ready;
}

Region Entry::describe() {
  const bool is_pending = readiness() == runtime::Readiness::Pending;
  return {.function = name_,
          .is_captured = true,
          .is_pending = is_pending,
          .operators = operators_,
          .kernels = kernels_,
          .extern_calls = extern_calls_,
          .device_graphs = graph_ ? graph_->device_graph_state() : runtime::DeviceGraphState(),
          .guards = capture_->guards.describe_all(),
          .symbols = {capture_->guards.symbols().begin(), capture_->guards.symbols().end()},
          .end = end};
}

std::vector<at::Tensor> Entry::inputs() const {
  std::vector<at::Tensor> tensors;
  tensors.reserve(capture_->inputs.size());
  for (const guards::SourceId source : capture_->inputs)
    tensors.push_back(input_tensor(capture_->guards.value(source)));
  return tensors;
}

bool Entry::matches(std::span<PyObject* const> roots, const GlobalState& state) {
  return !given_up_ && state == state_ && (!capture_->needs_nothing_handled || nothing_handled()) &&
         capture_->guards.check(roots) && !writes_shared_memory();
}

bool Entry::writes_shared_memory() const {
  if (written_.empty()) return false;
  std::vector<MemoryRange> memory;
  memory.reserve(capture_->inputs.size());
  for (guards::SourceId source : capture_->inputs) {
    PyObject* value = capture_->guards.value(source);
    // Numbers have no memory.
    memory.push_back(is_number(value) ? MemoryRange() : memory_of(runtime::tensor_of(value)));
  }
  for (int32_t w : written_) memory[static_cast<size_t>(w)].is_written = true;
  std::ranges::sort(memory, {}, &MemoryRange::begin);
  const char *end = nullptr,
             *end_of_written = nullptr;  // the largest end of all ranges before, and of written ones
  for (const MemoryRange& range : memory) {
    if (range.begin == range.end) continue;
    if (range.begin < end_of_written || (range.is_written && range.begin < end)) return true;
    end = std::max(end, range.end);
    if (range.is_written) end_of_written = std::max(end_of_written, range.end);
  }
  return false;
}

bool Entry::valid() {
  // What is not ready becomes so here at the earliest: weights may have been written to meanwhile.
  if (readiness() != runtime::Readiness::Ready || !holds_weights_) return true;
  return graph_->valid([this](size_t i) -> const at::Tensor& {
    return runtime::tensor_of(capture_->guards.value(capture_->inputs[i]));
  });
}

std::string Entry::explain_failure(std::span<PyObject* const> roots, const GlobalState& state) {
  if (given_up_) return "what was likely of sizes that depend on data was not so: " + unmet_;
  if (!(state == state_)) return state_.difference(state) + " changed";
  if (capture_->needs_nothing_handled && !nothing_handled()) return "an exception is being handled";
  std::string reason = capture_->guards.explain_failure(roots);
  return reason.empty() && writes_shared_memory()
             ? "an argument that is written to shares memory with another one"
             : reason;
}

guards::Changes Entry::changes(std::span<PyObject* const> roots, const GlobalState& state) {
  if (given_up_ || !(state == state_)) return {};
  return capture_->guards.changes(roots);
}

void Entry::note_unmet(const sym::Condition& condition) {
  const auto likely = std::ranges::find(capture_->likely, condition, &eval::Capture::Likely::condition);
  if (likely == capture_->likely.end()) {
    log(Channel::Breaks, "a check of a size fails, and a compiled region runs in eager");
    return;
  }
  unmet_ = likely->text;
  ++unmet_in_row_;
  log(Channel::Breaks,
      "{} is likely of sizes that depend on data, but is not so: a compiled region runs in eager", unmet_);
}

std::optional<std::vector<Ref>> Entry::run() {
  constexpr int kMostUnmet = 4;
  constexpr int64_t kCallsBetweenTries = 64;
  ++runs;
  if (unmet_in_row_ >= kMostUnmet && ++calls_unmet_ % kCallsBetweenTries != 0) return std::nullopt;
  const bool is_long = graph_ && graph_->is_long();
  const std::vector<bool> none;
  const CallInputs tensors_in(*capture_, graph_ && graph_->only_replays() ? none : owned_);
  const std::span<const int64_t> values = capture_->guards.symbol_values();
  std::vector<int64_t> symbols(values.begin(), values.end());  // other calls may run meanwhile
  for (const sym::Condition& condition : capture_->checks)
    if (!holds(condition, symbols)) {
      note_unmet(condition);
      return std::nullopt;
    }
  std::vector<Ref> externals;
  externals.reserve(capture_->externals.size());
  for (guards::SourceId source : capture_->externals)
    externals.push_back(Ref::borrow(capture_->guards.value(source)));

  std::vector<Ref> outputs;
  if (graph_) {
    std::vector<at::Tensor> tensors;
    KernelWarnings warnings;
    try {
      const hook::HookPause pause;  // kernels of the program's operators are not captured
      const c10::WarningUtils::WarningHandlerGuard guard(&warnings);
      std::optional<cpy::WithoutGil> without_gil;
      if (is_long) without_gil.emplace();
      tensors = graph_->run(tensors_in.get(), symbols);
    } catch (const eval::Interrupted&) {
      return std::vector<Ref>();
    } catch (const c10::AcceleratorError&) {  // the device is lost: eager could not run either
      torch::translate_exception_to_python(std::current_exception());
      return std::vector<Ref>();
    } catch (const runtime::IndexOutOfRange&) {  // eager would lose the device
      torch::translate_exception_to_python(std::current_exception());
      return std::vector<Ref>();
    } catch (const runtime::LeftToEager& left) {
      if (left.unmet)
        note_unmet(*left.unmet);
      else
        log(Channel::Breaks, "a compiled region met an index out of range and runs in eager");
      return std::nullopt;
    } catch (const runtime::FailedAfterRun& error) {
      return internal_error(error.what());
    } catch (const InternalError& error) {
      if (strict()) return internal_error(error.what());
      warn(fmt::format("internal error, a call runs in eager: {}\nPlease report it.", error.what()));
      return std::nullopt;
    } catch (const std::exception& error) {
      log(Channel::Breaks, "a compiled region raised and runs in eager: {}", torch_api::error_text(error));
      return std::nullopt;
    }
    unmet_in_row_ = 0;
    if (!warnings.show()) return std::vector<Ref>();
    outputs.reserve(tensors.size());
    for (at::Tensor& tensor : tensors) outputs.push_back(Ref::steal(runtime::wrap_tensor(std::move(tensor))));
  }
  const std::vector<Ref> computed = computed_objects(capture_->computed, symbols);
  eval::Rebuilder rebuilder(capture_->objects, externals, outputs, computed);
  // Results are made after effects, since an iterator among them may go over a container that these change.
  for (const eval::Effect& effect : capture_->effects)
    if (!eval::perform(effect, rebuilder)) return std::vector<Ref>();
  std::vector<Ref> results;
  results.reserve(capture_->results.size());
  for (const eval::Template& result : capture_->results) results.push_back(rebuilder.build(result));
  if (PyErr_Occurred()) return results;
  if (capture_->changes_handled) PyErr_SetHandledException(rebuilder.build(capture_->handled).get());
  if (capture_->final_grad_mode >= 0) at::GradMode::set_enabled(capture_->final_grad_mode != 0);
  if (capture_->final_device >= 0)
    runtime::set_current_device_index(static_cast<c10::DeviceIndex>(capture_->final_device));
  if (capture_->autocast_change) capture_->autocast_change->apply();
  if (!capture_->default_device_change.apply()) return std::vector<Ref>();
  return results;
}

}  // namespace oxy::driver
