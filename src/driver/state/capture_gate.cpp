#include "driver/state/capture_gate.h"

#include "cpy/interruption.h"
#include "eval/state/break.h"
#include "eval/treatment/library_code.h"
#include "trace/session/set_aside.h"

namespace oxy::driver {

bool CaptureGate::admits(cpy::Frame frame) {
  const PyCodeObject* code = frame.code();
  const bool takes_rest = (code->co_flags & CO_VARARGS) != 0;
  PyObject* first = code->co_argcount > 0 || takes_rest ? frame.slots()[0] : nullptr;
  if (code->co_argcount == 0 && takes_rest) {
    // `*args` lie behind the keyword-only arguments.
    first = frame.slots()[code->co_kwonlyargcount];
    first = first && PyTuple_CheckExact(first) && PyTuple_GET_SIZE(first) > 0 ? PyTuple_GET_ITEM(first, 0)
                                                                              : nullptr;
  }
  return gate_.admits(frame.function(), first);
}

bool CaptureGate::is_apart(cpy::Frame frame) {
  return !gate_.includes_own_code() && !trace::PartOfRecording::is_alive() &&
         !eval::is_library_code(frame.code());
}

PyObject* CaptureGate::run_apart(const std::function<PyObject*()>& run) {
  const trace::SetAside set_aside;
  return run();
}

void CaptureGate::notice_error() {
  Raised raised;
  PyErr_Fetch(raised.type.out(), raised.value.out(), raised.traceback.out());
  if (cpy::is_interruption(raised.type.get(), raised.traceback.get())) interruption_ = raised;
  PyErr_Restore(raised.type.release(), raised.value.release(), raised.traceback.release());
}

void CaptureGate::raise_interruption() {
  if (!interruption_.type) return;
  PyErr_Restore(interruption_.type.release(), interruption_.value.release(),
                interruption_.traceback.release());
  throw eval::Interrupted{};
}

}  // namespace oxy::driver
