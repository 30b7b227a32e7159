#include "runners.h"

#include <random>
#include <string>
#include <utility>

#include "base/error.h"
#include "bytecode/decode.h"

namespace oxy::frame_testing {

Counts counts;

namespace {

using cpy::Ref;
using hook::EndKind;
using hook::FrameState;
using hook::SegmentEnd;

class SelectiveRunner : public hook::SegmentRunner {
 public:
  explicit SelectiveRunner(Ref wanted) : wanted_(std::move(wanted)) {}

  bool wants(PyCodeObject* code, PyObject*) override {
    if (wanted_.get() == Py_None) return true;
    const int found = PySet_Contains(wanted_.get(), reinterpret_cast<PyObject*>(code));
    if (found < 0) PyErr_Clear();
    return found > 0;
  }

  const void* enter(const void* context) override { return std::exchange(context_, context); }

  SegmentEnd run(FrameState& state) override {
    const auto code = bytecode::decode(state.code);
    ++counts.segments;
    if (code->instructions[size_t(code->entry)].offset == state.offset) ++counts.frames;
    return run_segment(state);
  }

 private:
  virtual SegmentEnd run_segment(FrameState& state) = 0;
  Ref wanted_;
  const void* context_ = nullptr;
};

class BreakRunner : public SelectiveRunner {
 public:
  using SelectiveRunner::SelectiveRunner;

 private:
  SegmentEnd run_segment(FrameState& state) override { return {EndKind::Break, state.offset}; }
};

class RandomRunner : public SelectiveRunner {
 public:
  RandomRunner(Ref wanted, unsigned seed, unsigned period)
      : SelectiveRunner(std::move(wanted)), random_(seed), period_(period) {}

 private:
  SegmentEnd run_segment(FrameState& state) override {
    return {random_() % period_ == 0 ? EndKind::HandOver : EndKind::Break, state.offset};
  }

  std::minstd_rand random_;
  unsigned period_;
};

class ScriptRunner : public SelectiveRunner {
 public:
  ScriptRunner(Ref wanted, Ref function, Ref null)
      : SelectiveRunner(std::move(wanted)), function_(std::move(function)), null_(std::move(null)) {}

 private:
  Ref list_of(const std::vector<Ref>& values) const {
    Ref list = Ref::steal(PyList_New(0));
    for (const Ref& value : values) PyList_Append(list.get(), value ? value.get() : null_.get());
    return list;
  }

  std::vector<Ref> values_of(PyObject* list) const {
    std::vector<Ref> values;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
      PyObject* value = PyList_GET_ITEM(list, i);
      values.push_back(value == null_.get() ? Ref() : Ref::borrow(value));
    }
    return values;
  }

  SegmentEnd run_segment(FrameState& state) override {
    const Ref locals = list_of(state.locals), stack = list_of(state.stack);
    const Ref view =
        Ref::steal(Py_BuildValue("{s:O,s:i,s:O,s:O,s:O}", "code", state.code, "offset", state.offset,
                                 "locals", locals.get(), "stack", stack.get(), "globals", state.globals));
    const Ref result = Ref::steal(PyObject_CallOneArg(function_.get(), view.get()));
    const char* kind = nullptr;
    int offset = 0;
    PyObject* error = nullptr;
    if (!result || !PyArg_ParseTuple(result.get(), "si|O", &kind, &offset, &error)) {
      PyErr_Print();
      throw InternalError("the script failed");
    }
    state.locals = values_of(locals.get());
    state.stack = values_of(stack.get());
    const std::string name = kind;
    if (name == "fail") throw InternalError("as asked");
    if (name == "return") return {EndKind::Return, offset};
    if (name == "break") return {EndKind::Break, offset};
    if (name == "hand over") return {EndKind::HandOver, offset};
    if (name == "leave all") return {EndKind::LeaveAll, offset};
    if (error != nullptr) PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error)), error);
    return {EndKind::Raise, offset};
  }

  Ref function_;
  Ref null_;
};

}  // namespace

std::unique_ptr<hook::SegmentRunner> make_break_runner(Ref wanted) {
  return std::make_unique<BreakRunner>(std::move(wanted));
}

std::unique_ptr<hook::SegmentRunner> make_random_runner(Ref wanted, unsigned seed, unsigned period) {
  return std::make_unique<RandomRunner>(std::move(wanted), seed, period);
}

std::unique_ptr<hook::SegmentRunner> make_script_runner(Ref wanted, Ref function, Ref null) {
  return std::make_unique<ScriptRunner>(std::move(wanted), std::move(function), std::move(null));
}

}  // namespace oxy::frame_testing
