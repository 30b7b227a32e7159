// CPython 3.12.
#include "cpy/internals.h"

#if OXY_PYTHON == 312

#include <algorithm>
#include <new>

#include "cpy/code_extra.h"
#include "cpy/dict.h"
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

}  // namespace

uint64_t dict_version(PyObject* dict) {
  return reinterpret_cast<PyDictObject*>(dict)->ma_version_tag >> DICT_MAX_WATCHERS;
}

size_t first_changed(std::span<const KnownDict> dicts) {
  const auto is_changed = [](const KnownDict& known) {
    const uint64_t version = dict_version(known.dict);
    return version == 0 || version != known.version;
  };
  return static_cast<size_t>(std::ranges::find_if(dicts, is_changed) - dicts.begin());
}

uint32_t type_version(PyTypeObject* type) {
  return PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG) ? type->tp_version_tag : 0;
}

Ref type_dict(PyTypeObject* type) {
  return Ref::steal(PyType_GetDict(type));
}

PyCodeObject* Frame::code() const {
  return frame_->f_code;
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
  return frame_->prev_instr == _PyCode_CODE(frame_->f_code) - 1;
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
  frame_->prev_instr = _PyCode_CODE(frame_->f_code) + unit - 1;
}
void Frame::set_executing(int32_t unit) const {
  frame_->prev_instr = _PyCode_CODE(frame_->f_code) + unit;
}
int32_t Frame::executing() const {
  return int32_t(frame_->prev_instr - _PyCode_CODE(frame_->f_code));
}

int32_t Frame::next() const {
  return executing() + 1;
}

void set_suspended(PyObject* generator, bool) {
  reinterpret_cast<PyGenObject*>(generator)->gi_frame_state = FRAME_SUSPENDED;
}

FrameLink::FrameLink(PyThreadState* thread, Frame frame) : thread_(thread), frame_(frame.get()) {
  static_assert(sizeof(_PyCFrame) <= sizeof(storage_));
  auto* entry = new (storage_) _PyCFrame(*thread->cframe);
  entry->previous = thread->cframe;
  entry->current_frame = frame_;
  frame_->previous = thread->cframe->current_frame;
  thread->cframe = entry;
  --thread->py_recursion_remaining;
  --thread->c_recursion_remaining;
}

void FrameLink::unlink() {
  if (!linked_) return;
  linked_ = false;
  ++thread_->py_recursion_remaining;
  ++thread_->c_recursion_remaining;
  thread_->cframe = reinterpret_cast<_PyCFrame*>(storage_)->previous;
}

PyObject* evaluate(PyThreadState* thread, Frame frame) {
  return _PyEval_EvalFrameDefault(thread, frame.get(), 0);
}

PyObject* throw_into(PyThreadState* thread, Frame frame, FrameLink& link, int32_t unit) {
  link.unlink();
  frame.set_executing(unit);
  return _PyEval_EvalFrameDefault(thread, frame.get(), 1);
}

bool needs_interpreter_start(PyThreadState* thread, PyCodeObject* code) {
  if (code->_co_monitoring == nullptr)
    return false;  // never instrumented: no tool that was active before is left
  return code->_co_instrumentation_version != thread->interp->monitoring_version ||
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
  return thread->interp->ceval.eval_breaker._value != 0;
}

Ref take_async_exception(PyThreadState* thread) {
  if (thread->async_exc == nullptr) return nullptr;
  thread->interp->ceval.pending.async_exc = 0;
  return Ref::steal(std::exchange(thread->async_exc, nullptr));
}

bool can_recurse(PyThreadState* thread) {
  return thread->py_recursion_remaining > 0 && thread->c_recursion_remaining > 0;
}

bool is_c_stack_deep(PyThreadState* thread) {
  return thread->c_recursion_remaining < C_RECURSION_LIMIT / 2 || is_native_stack_deep();
}

PyObject* const* dict_place(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  PyObject* const* place = nullptr;
  if (type->tp_flags & Py_TPFLAGS_MANAGED_DICT) {
    const PyDictOrValues* held = _PyObject_DictOrValuesPointer(object);
    place = _PyDictOrValues_IsValues(*held) ? nullptr : &held->dict;
  } else if (type->tp_dictoffset != 0) {
    place = _PyObject_GetDictPtr(object);
  }
  return place == nullptr || *place == nullptr ? nullptr : place;
}

InlineValues inline_values(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (!(type->tp_flags & Py_TPFLAGS_MANAGED_DICT)) return {};
  const PyDictOrValues held = *_PyObject_DictOrValuesPointer(object);
  if (!_PyDictOrValues_IsValues(held)) return {};
  const PyDictValues* values = _PyDictOrValues_GetValues(held);
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
