// CPython 3.13.
#include "cpy/internals.h"

#include <internal/pycore_ceval.h>

#if OXY_PYTHON == 313

#include <algorithm>
#include <new>

#include "cpy/code_extra.h"
#include "cpy/dict.h"
#include "cpy/exception_table.h"
#include "cpy/frame.h"
#include "cpy/generator.h"
#include "cpy/object_dict.h"
#include "cpy/thread.h"
#include "cpy/type.h"
#include "cpy/versions/shared.h"

namespace oxy::cpy {

namespace {

// Whether a tool listens to one of the events.
template <size_t size>
bool listens(const uint8_t (&tools)[size]) {
  return std::any_of(std::begin(tools), std::end(tools), [](uint8_t tool) { return tool != 0; });
}

// How much one evaluation of a frame takes from the allowance of nested C calls.
constexpr int kEvaluationUnits = 2;

}  // namespace

// A store through an object neither renews the version of the dict that shares the object's values nor,
// in 3.13.0, tells the dict's watchers.
uint64_t dict_version(PyObject* dict) {
  const auto* object = reinterpret_cast<PyDictObject*>(dict);
  if (object->ma_values != nullptr && object->ma_values->embedded) return 0;
  return object->ma_version_tag >> (DICT_MAX_WATCHERS + DICT_WATCHED_MUTATION_BITS);
}

size_t first_changed(std::span<const KnownDict> dicts) {
  const auto is_changed = [](const KnownDict& known) {
    const uint64_t version = dict_version(known.dict);
    return version == 0 || version != known.version;
  };
  return static_cast<size_t>(std::ranges::find_if(dicts, is_changed) - dicts.begin());
}

uint32_t type_version(PyTypeObject* type) {
  return type->tp_version_tag;
}

Ref type_dict(PyTypeObject* type) {
  return Ref::steal(PyType_GetDict(type));
}

PyCodeObject* Frame::code() const {
  return reinterpret_cast<PyCodeObject*>(frame_->f_executable);
}
PyObject* Frame::function() const {
  return frame_->f_funcobj;
}
PyObject* Frame::globals() const {
  return frame_->f_globals;
}
PyObject* Frame::builtins() const {
  return frame_->f_builtins;
}
PyObject* Frame::names() const {
  return (code()->co_flags & CO_OPTIMIZED) ? nullptr : frame_->f_locals;
}
bool Frame::is_plain_call() const {
  return frame_->owner == FRAME_OWNED_BY_THREAD;
}
bool Frame::is_at_start() const {
  return frame_->instr_ptr == _PyCode_CODE(code());
}

bool Frame::is_of_generator() const {
  return frame_->owner == FRAME_OWNED_BY_GENERATOR;
}
void Frame::set_function(PyObject* function) const {
  Py_XSETREF(frame_->f_funcobj, Py_NewRef(function));
}

PyObject** Frame::slots() const {
  return frame_->localsplus;
}
int Frame::slot_count() const {
  return frame_->stacktop;
}
void Frame::set_slot_count(int count) const {
  frame_->stacktop = count;
}

void Frame::set_next(int32_t unit) const {
  frame_->instr_ptr = _PyCode_CODE(code()) + unit;
}
void Frame::set_executing(int32_t unit) const {
  set_next(unit);
}
int32_t Frame::executing() const {
  return int32_t(frame_->instr_ptr - _PyCode_CODE(code()));
}

int32_t Frame::next() const {
  return executing();
}

void set_suspended(PyObject* generator, bool delegates) {
  reinterpret_cast<PyGenObject*>(generator)->gi_frame_state =
      delegates ? FRAME_SUSPENDED_YIELD_FROM : FRAME_SUSPENDED;
}

FrameLink::FrameLink(PyThreadState* thread, Frame frame) : thread_(thread), frame_(frame.get()) {
  frame_->previous = thread->current_frame;
  thread->current_frame = frame_;
  --thread->py_recursion_remaining;
  thread->c_recursion_remaining -= kEvaluationUnits;
}

void FrameLink::unlink() {
  if (!linked_) return;
  linked_ = false;
  ++thread_->py_recursion_remaining;
  thread_->c_recursion_remaining += kEvaluationUnits;
  thread_->current_frame = frame_->previous;
}

PyObject* evaluate(PyThreadState* thread, Frame frame) {
  return _PyEval_EvalFrameDefault(thread, frame.get(), 0);
}

namespace {

// Enters a handler: cuts the stack to its depth, and pushes the position, if the handler wants it, and the
// exception.
PyObject* enter_handler(PyThreadState* thread, Frame frame, FrameLink& link, int32_t unit,
                        const Handler& handler) {
  PyTraceBack_Here(PyEval_GetFrame());
  PyObject** slots = frame.slots();
  int count = frame.slot_count();
  const int kept = frame.code()->co_nlocalsplus + handler.depth;
  while (count > kept) {
    frame.set_slot_count(--count);
    Py_XDECREF(slots[count]);
  }
  if (handler.push_last_instruction) {
    PyObject* exception = PyErr_GetRaisedException();
    slots[count++] = PyLong_FromLong(unit);
    PyErr_SetRaisedException(exception);
  }
  slots[count++] = PyErr_GetRaisedException();
  frame.set_slot_count(count);
  frame.set_next(handler.target);
  link.unlink();
  return evaluate(thread, frame);
}

// Corrects the traceback entry that was just made for a frame: its position is `made` and should be `unit`.
void correct_traceback(PyCodeObject* code, int32_t made, int32_t unit) {
  const Ref exception = Ref::steal(PyErr_GetRaisedException());
  const Ref traceback = Ref::steal(PyException_GetTraceback(exception.get()));
  if (traceback) {
    auto* entry = reinterpret_cast<PyTracebackObject*>(traceback.get());
    const int size = int(sizeof(_Py_CODEUNIT));
    if (entry->tb_frame->f_frame->f_executable == reinterpret_cast<PyObject*>(code) &&
        entry->tb_lasti == made * size) {
      entry->tb_lasti = unit * size;
      entry->tb_lineno = PyCode_Addr2Line(code, unit * size);
    }
  }
  PyErr_SetRaisedException(exception.new_reference());
}

}  // namespace

// Given a frame to throw into, this version finds the handler of the instruction before instr_ptr but writes
// instr_ptr into the traceback: right for a suspended generator, not for us. So the handler, if there is one,
// is entered here.
PyObject* throw_into(PyThreadState* thread, Frame frame, FrameLink& link, int32_t unit) {
  frame.set_executing(unit);
  PyCodeObject* code = frame.code();
  const Handler handler = find_handler(code, unit);
  if (handler.target >= 0) return enter_handler(thread, frame, link, unit, handler);
  link.unlink();
  const bool shift = unit > 0 && find_handler(code, unit - 1).target >= 0;
  const Ref kept = Ref::borrow(reinterpret_cast<PyObject*>(code));
  if (shift) frame.set_executing(unit + 1);
  PyObject* result = _PyEval_EvalFrameDefault(thread, frame.get(), 1);
  if (shift && result == nullptr) correct_traceback(code, unit + 1, unit);
  return result;
}

bool needs_interpreter_start(PyThreadState* thread, PyCodeObject* code) {
  if (code->_co_monitoring == nullptr)
    return false;  // never instrumented: no tool that was active before is left
  return code->_co_instrumentation_version != (thread->eval_breaker & ~uintptr_t{_PY_EVAL_EVENTS_MASK}) ||
         listens(code->_co_monitoring->local_monitors.tools);
}

bool is_traced(PyThreadState* thread) {
  // A tool may listen to single code objects only. Any of them may run in a call below the frame.
  return thread->c_tracefunc != nullptr || thread->c_profilefunc != nullptr ||
         std::ranges::any_of(thread->interp->monitoring_tool_names,
                             [](PyObject* name) { return name != nullptr; }) ||
         listens(thread->interp->monitors.tools);
}

bool has_requests(PyThreadState* thread) {
  return (thread->eval_breaker & _PY_EVAL_EVENTS_MASK) != 0;
}

Ref take_async_exception(PyThreadState* thread) {
  if (thread->async_exc == nullptr) return nullptr;
  _Py_unset_eval_breaker_bit(thread, _PY_ASYNC_EXCEPTION_BIT);
  return Ref::steal(std::exchange(thread->async_exc, nullptr));
}

bool can_recurse(PyThreadState* thread) {
  return thread->py_recursion_remaining > 0 && thread->c_recursion_remaining > 0;
}

bool is_c_stack_deep(PyThreadState* thread) {
  return thread->c_recursion_remaining < Py_C_RECURSION_LIMIT / 2 || is_native_stack_deep();
}

PyObject* const* dict_place(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  PyObject* const* place = nullptr;
  if (type->tp_flags & Py_TPFLAGS_MANAGED_DICT)
    place = reinterpret_cast<PyObject* const*>(&_PyObject_ManagedDictPointer(object)->dict);
  else if (type->tp_dictoffset != 0)
    place = _PyObject_GetDictPtr(object);
  return place == nullptr || *place == nullptr ? nullptr : place;
}

InlineValues inline_values(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (!(type->tp_flags & Py_TPFLAGS_INLINE_VALUES) || existing_dict(object) != nullptr) return {};
  const PyDictValues* values = _PyObject_InlineValues(object);
  if (!values->valid) return {};
  PyDictKeysObject* keys = reinterpret_cast<PyHeapTypeObject*>(type)->ht_cached_keys;
  return {keys, keys->dk_nentries, {values->values, size_t(keys->dk_nentries)}};
}

Py_ssize_t request_code_extra(freefunc free) {
  return PyUnstable_Eval_RequestCodeExtraIndex(free);
}

void* CodeExtra::get(PyCodeObject* code) const {
  void* value = nullptr;
  PyUnstable_Code_GetExtra(reinterpret_cast<PyObject*>(code), index_, &value);
  return value;
}

void CodeExtra::set(PyCodeObject* code, void* value) const {
  if (PyUnstable_Code_SetExtra(reinterpret_cast<PyObject*>(code), index_, value) < 0) {
    PyErr_Clear();
    throw std::bad_alloc();
  }
}

}  // namespace oxy::cpy

#endif
