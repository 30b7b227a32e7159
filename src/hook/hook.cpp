#include "hook/hook.h"

#include <utility>

#include "cpy/frame.h"
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

PyObject* hook(PyThreadState* thread, _PyInterpreterFrame* raw, int throw_flag);

// Another tool may have put its hook above ours: ours is then reached through it, unless it has cut ours off
// since.
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
  const bool wanted = state.active_calls > 0 && state.suspensions == 0;
  const _PyFrameEvalFunction current = _PyInterpreterState_GetEvalFrameFunc(interpreter);
  if (wanted && current != hook && !(state.installed && is_reached())) {
    state.earlier = current;
    state.installed = true;
    _PyInterpreterState_SetEvalFrameFunc(interpreter, hook);
  } else if (!wanted && state.installed && current == hook) {
    // If somebody installed another hook above ours, ours stays in its chain and lets every frame pass.
    state.installed = false;
    _PyInterpreterState_SetEvalFrameFunc(interpreter, state.earlier);
  }
}

struct Activation {
  Activation() {
    // The first visit makes a function; later it would be made by frames run in segments.
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
  if (state.runner == nullptr || !frame.is_plain_call() || !frame.is_at_start()) return false;
  PyCodeObject* code = frame.code();
  return !(code->co_flags & kSuspendable) && !cpy::is_traced(thread) &&
         state.runner->wants(code, frame.globals()) && !cpy::needs_interpreter_start(thread, code);
}

PyObject* hook(PyThreadState* thread, _PyInterpreterFrame* raw, int throw_flag) {
  ++state.entered;
  give_up_arguments(cpy::Frame(raw));
  if (state.suspensions == 0 && cpy::is_c_stack_deep(thread)) [[unlikely]] {
    Suspension suspension;
    return pass_on(thread, raw, throw_flag);
  }
  if (active_on_thread == 0 || throw_flag || !is_ours(thread, cpy::Frame(raw)))
    return pass_on(thread, raw, throw_flag);
  return run_frame(thread, cpy::Frame(raw), *state.runner);
}

}  // namespace

void set_runner(SegmentRunner* runner) {
  state.runner = runner;
}

PyObject* call_with_hook(PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  const Activation activation;
  return PyObject_Vectorcall(callable, args, nargsf, kwnames);
}

HookPause::HookPause() : saved_(active_on_thread) {
  active_on_thread = 0;
}
HookPause::~HookPause() {
  active_on_thread = saved_;
}

bool is_installed() {
  return state.installed;
}

}  // namespace oxy::hook
