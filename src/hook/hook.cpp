#include "hook/hook.h"

#include <unordered_map>
#include <utility>

#include "cpy/frame.h"
#include "cpy/generator.h"
#include "cpy/ref.h"
#include "cpy/thread.h"
#include "hook/arguments.h"
#include "hook/frame_loop.h"
#include "hook/segment.h"

namespace oxy::hook {
namespace {

constexpr int kSuspendable = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR;

// All guarded by the GIL.
struct HookState {
  SegmentRunner* runner = nullptr;
  int active_calls = 0;    // threads times nesting
  int suspensions = 0;     // threads whose calls nest too deep
  bool installed = false;  // put in place and not taken away again, though another tool may have replaced it
  long entered = 0;
  bool prepared = false;
  _PyFrameEvalFunction earlier = nullptr;  // the hook below ours
};

HookState state;
thread_local int active_on_thread = 0;
thread_local int pauses_on_thread = 0;
thread_local FrameGate* gate_on_thread = nullptr;

struct Adopted {
  cpy::Ref reference;  // weak, with a callback that forgets the generator
  std::shared_ptr<const void> context;
};

// Never destroyed: the interpreter is gone when statics die.
std::unordered_map<PyObject*, Adopted>& adopted() {
  static auto& all = *new std::unordered_map<PyObject*, Adopted>;
  return all;
}

PyObject* hook(PyThreadState* thread, _PyInterpreterFrame* raw, int throw_flag);

// Whether CPython reaches our hook. If another tool has put its own hook above ours, ours is called through
// that, unless the tool has cut it off.
bool is_reached() {
  const HookPause pause;
  const long before = state.entered;
  PyObject* result = cpy::visit();
  if (result == nullptr) PyErr_Clear();
  Py_XDECREF(result);
  return state.entered != before;
}

void update() {
  PyInterpreterState* interpreter = PyInterpreterState_Get();
  const bool wanted = (state.active_calls > 0 || !adopted().empty()) && state.suspensions == 0;
  const _PyFrameEvalFunction current = _PyInterpreterState_GetEvalFrameFunc(interpreter);
  if (wanted && current != hook && !(state.installed && is_reached())) {
    state.earlier = current;
    state.installed = true;
    _PyInterpreterState_SetEvalFrameFunc(interpreter, hook);
  } else if (!wanted && state.installed && current == hook) {
    // If another hook lies above ours, ours stays in the chain and passes every frame on.
    state.installed = false;
    _PyInterpreterState_SetEvalFrameFunc(interpreter, state.earlier);
  }
}

struct Activation {
  Activation() {
    // The first visit() makes its function. It must not be made later, in a frame that runs in segments.
    if (!std::exchange(state.prepared, true)) static_cast<void>(cpy::Ref::steal(cpy::visit()));
    ++active_on_thread;
    if (++state.active_calls == 1) update();
  }
  ~Activation() {
    --active_on_thread;
    if (--state.active_calls == 0) update();
  }
};

struct Suspension {
  Suspension() {
    if (++state.suspensions == 1) update();
  }
  ~Suspension() {
    if (--state.suspensions == 0) update();
  }
};

PyObject* pass_on(PyThreadState* thread, _PyInterpreterFrame* raw, int throw_flag) {
  const _PyFrameEvalFunction earlier = state.earlier;
  return (earlier != nullptr ? earlier : _PyEval_EvalFrameDefault)(thread, raw, throw_flag);
}

bool is_ours(PyThreadState* thread, cpy::Frame frame) {
  if (state.runner == nullptr) return false;
  PyCodeObject* code = frame.code();
  // A call of a generator function only makes the generator. CPython does that.
  const bool starts = frame.is_plain_call() && frame.is_at_start() && !(code->co_flags & kSuspendable);
  return (starts || frame.is_of_generator()) && !cpy::is_traced(thread) &&
         state.runner->wants(code, frame.globals()) && !cpy::needs_interpreter_start(thread, code);
}

void forget(PyObject* generator) {
  // Dropping the context may run Python code.
  const auto forgotten = adopted().extract(generator);
  if (adopted().empty()) update();
}

PyObject* forget_dead(PyObject* address, PyObject*) {
  forget(static_cast<PyObject*>(PyLong_AsVoidPtr(address)));
  Py_RETURN_NONE;
}

PyObject* run_or_pass_on(PyThreadState* thread, _PyInterpreterFrame* raw, int throw_flag) {
  const cpy::Frame frame(raw);
  if (throw_flag || !is_ours(thread, frame)) return pass_on(thread, raw, throw_flag);
  return run_frame(thread, frame, *state.runner);
}

// Holds the context while the generator runs, which may let go of it.
PyObject* resume_adopted(PyThreadState* thread, _PyInterpreterFrame* raw, int throw_flag,
                         std::shared_ptr<const void> context) {  // NOLINT(performance-*)
  const cpy::Ref generator = cpy::Ref::borrow(cpy::generator_of(cpy::Frame(raw)));
  SegmentRunner& runner = *state.runner;
  PyObject* result = nullptr;
  {
    const Activation activation;
    const void* outer = runner.enter(context.get());
    result = run_or_pass_on(thread, raw, throw_flag);
    runner.enter(outer);
  }
  // If it has not yielded, it has ended. The generator object is updated only after this.
  if (cpy::is_running(generator.get()) || cpy::has_ended(generator.get())) forget(generator.get());
  return result;
}

PyObject* run_frame(PyThreadState* thread, _PyInterpreterFrame* raw, int throw_flag) {
  if (state.suspensions == 0 && cpy::is_c_stack_deep(thread)) [[unlikely]] {
    Suspension suspension;
    return pass_on(thread, raw, throw_flag);
  }
  if (pauses_on_thread == 0 && !adopted().empty() && cpy::Frame(raw).is_of_generator()) {
    const auto found = adopted().find(cpy::generator_of(cpy::Frame(raw)));
    if (found != adopted().end() && state.runner != nullptr)
      return resume_adopted(thread, raw, throw_flag, found->second.context);
  }
  if (active_on_thread == 0) return pass_on(thread, raw, throw_flag);
  return run_or_pass_on(thread, raw, throw_flag);
}

PyObject* run_gated(FrameGate& gate, PyThreadState* thread, _PyInterpreterFrame* raw, int throw_flag) {
  const cpy::Frame frame(raw);
  if (throw_flag == 0 && frame.is_at_start() && !gate.admits(frame)) return pass_on(thread, raw, 1);
  if (!gate.is_apart(frame)) return run_frame(thread, raw, throw_flag);
  const Gated none(nullptr);
  return gate.run_apart([&] { return pass_on(thread, raw, throw_flag); });
}

PyObject* hook(PyThreadState* thread, _PyInterpreterFrame* raw, int throw_flag) {
  ++state.entered;
  give_up_arguments(cpy::Frame(raw));
  FrameGate* const gate = gate_on_thread;
  if (gate == nullptr) return run_frame(thread, raw, throw_flag);
  PyObject* const result = run_gated(*gate, thread, raw, throw_flag);
  if (result == nullptr) gate->notice_error();
  return result;
}

}  // namespace

void set_runner(SegmentRunner* runner) {
  state.runner = runner;
}

PyObject* call_with_hook(PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  const Activation activation;
  return PyObject_Vectorcall(callable, args, nargsf, kwnames);
}

bool can_adopt(PyObject* object) {
  return PyGen_CheckExact(object) || PyCoro_CheckExact(object) || PyAsyncGen_CheckExact(object);
}

void adopt(PyObject* generator, std::shared_ptr<const void> context) {
  if (!can_adopt(generator) || state.runner == nullptr || cpy::has_ended(generator) ||
      cpy::is_running(generator) || adopted().contains(generator))
    return;
  const cpy::Frame frame = cpy::generator_frame(generator);
  const void* outer = state.runner->enter(context.get());
  const bool wanted = state.runner->wants(frame.code(), frame.globals());
  state.runner->enter(outer);
  if (!wanted) return;
  static PyMethodDef method = {"forget", forget_dead, METH_O, nullptr};
  const cpy::Ref address = cpy::Ref::steal(PyLong_FromVoidPtr(generator));
  const cpy::Ref callback = cpy::Ref::steal(address ? PyCFunction_New(&method, address.get()) : nullptr);
  cpy::Ref reference = cpy::Ref::steal(callback ? PyWeakref_NewRef(generator, callback.get()) : nullptr);
  if (!reference) {
    PyErr_Clear();
    return;
  }
  adopted().emplace(generator, Adopted{std::move(reference), std::move(context)});
  if (adopted().size() == 1) update();
}

HookPause::HookPause() : saved_(active_on_thread) {
  active_on_thread = 0;
  ++pauses_on_thread;
}
HookPause::~HookPause() {
  active_on_thread = saved_;
  --pauses_on_thread;
}

Gated::Gated(FrameGate* gate) : outer_(std::exchange(gate_on_thread, gate)) {
  if (++state.active_calls == 1) update();
}
Gated::~Gated() {
  gate_on_thread = outer_;
  if (--state.active_calls == 0) update();
}

bool is_installed() {
  return state.installed;
}

}  // namespace oxy::hook
