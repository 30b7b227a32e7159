#include "eval/generator.h"

#include "base/error.h"
#include "eval/pending_error.h"
#include "eval/prelude.h"
#include "eval/stack.h"

namespace oxy::eval {
namespace {

struct GeneratorObject {
  PyObject_HEAD GeneratorData* data;
};

// Whether closing the generator would run code of its own: the handler that turns StopIteration into an
// error, which surrounds generators from Python 3.12 on, is none.
bool has_cleanup(const GeneratorData& data) {
  if (data.state != GeneratorState::Suspended) return false;
  const bytecode::Code& code = *data.frame.code;
  const int32_t at = data.frame.instruction().at;
  for (const bytecode::ExceptionEntry& entry : code.exception_table) {
    if (at < entry.begin || at >= entry.end) continue;
    if (code.at(entry.target).op != bytecode::Op::StopIterationError) return true;
  }
  return false;
}

// A generator may hold another, and that one the next: they die one after the other, not one inside the
// other.
void destroy(std::unique_ptr<GeneratorData> data) {
  static thread_local AbandonedGenerators* dying = nullptr;
  if (!data) return;
  if (dying) {
    dying->push_back(std::move(data));
    return;
  }
  AbandonedGenerators rest;
  dying = &rest;
  data.reset();
  while (!rest.empty()) {
    std::unique_ptr<GeneratorData> next = std::move(rest.back());
    rest.pop_back();
    next.reset();
  }
  dying = nullptr;
}

void deallocate(PyObject* self) {
  std::unique_ptr<GeneratorData> data(reinterpret_cast<GeneratorObject*>(self)->data);
  if (auto abandoned = data->abandoned.lock(); abandoned && has_cleanup(*data))
    abandoned->push_back(std::move(data));
  destroy(std::move(data));
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyTypeObject* generator_type() {
  static PyTypeObject* type = [] {
    static PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(&deallocate)}, {0, nullptr}};
    static PyType_Spec spec = {"oxyfuel.generator", sizeof(GeneratorObject), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  }();
  check(type != nullptr, "cannot make the generator type");
  return type;
}

}  // namespace

Ref make_generator(std::unique_ptr<GeneratorData> data) {
  PyTypeObject* type = generator_type();
  auto* object = reinterpret_cast<GeneratorObject*>(type->tp_alloc(type, 0));
  if (!object) return {};
  object->data = data.release();
  return Ref::steal(reinterpret_cast<PyObject*>(object));
}

bool is_generator(PyObject* object) {
  return Py_TYPE(object) == generator_type();
}

GeneratorData& generator_data(PyObject* object) {
  return *reinterpret_cast<GeneratorObject*>(object)->data;
}

void Evaluator::close_abandoned() {
  Ref type, value, traceback;
  PyErr_Fetch(type.out(), value.out(), traceback.out());
  while (!abandoned_->empty()) {
    std::unique_ptr<GeneratorData> data = std::move(abandoned_->front());
    abandoned_->erase(abandoned_->begin());
    Frame& frame = data->frame;
    if (frame.current > 0 && frame.code->instructions[frame.current - 1].op == bytecode::Op::Send)
      stop("a generator is dropped inside a try or with block while it waits for another");
    PyErr_SetNone(PyExc_GeneratorExit);
    // No object leads to the data any more, so nothing can reach it while it runs.
    const Flow flow = unwind(frame) ? run(frame) : Flow::Raised;
    if (flow == Flow::Yielded) stop("a generator that is dropped yields");
    if (flow == Flow::Raised) {
      const bool closed =
          PyErr_ExceptionMatches(PyExc_GeneratorExit) || PyErr_ExceptionMatches(PyExc_StopIteration);
      PyErr_Clear();
      if (!closed) stop("a generator that is dropped raises");
    }
  }
  PyErr_Restore(type.release(), value.release(), traceback.release());
}

Ref Evaluator::run_generator(PyObject* generator, PyObject* sent, bool* error) {
  Ref hold = Ref::borrow(generator);
  GeneratorData& data = generator_data(generator);
  if (data.state == GeneratorState::Finished) {
    data.returned = Ref::borrow(Py_None);
    return {};
  }
  if (data.state == GeneratorState::Running) {
    // What it stands for in C has no such rule.
    if (is_prelude_code(data.frame.pycode())) stop("an iterator asks itself for an item");
    PyErr_SetString(PyExc_ValueError, "generator already executing");
    *error = true;
    return {};
  }
  if (data.state == GeneratorState::Suspended) data.frame.stack.push_back(Ref::borrow(sent));
  data.state = GeneratorState::Running;
  const Flow flow = run(data.frame);
  if (flow == Flow::Raised) {
    data.state = GeneratorState::Finished;
    if (PyErr_ExceptionMatches(PyExc_StopIteration)) {
      Ref stop_iteration;
      {
        PendingError pending;
        stop_iteration = Ref::borrow(pending.value());
      }
      PyErr_Clear();
      PyErr_SetString(PyExc_RuntimeError, "generator raised StopIteration");
      PendingError pending;
      PyException_SetCause(pending.value(), stop_iteration.new_reference());
      PyException_SetContext(pending.value(), stop_iteration.release());
    }
    *error = true;
    return {};
  }
  Ref value = pop(data.frame);
  if (flow == Flow::Yielded) {
    data.state = GeneratorState::Suspended;
    return value;
  }
  data.state = GeneratorState::Finished;
  data.returned = std::move(value);
  return {};
}

Flow Evaluator::step_generator(Frame& frame, const bytecode::Instruction& in) {
  using bytecode::Op;
  auto& stack = frame.stack;
  switch (in.op) {
    case Op::Resume:
      return Flow::Next;
    case Op::ReturnGenerator:
      if (&frame == outermost_) stop("the frame of a generator runs in eager");
      stack.push_back(Ref::borrow(Py_None));
      return Flow::Next;
    case Op::YieldValue:
      if (&frame == outermost_) stop("the frame of a generator runs in eager");
      return Flow::Yielded;
    case Op::GetYieldFromIter: {
      if (is_generator(stack.back().get())) return Flow::Next;
      Ref object = pop(frame);
      Ref iterator = get_iterator(object.get());
      if (!iterator) return Flow::Raised;
      stack.push_back(std::move(iterator));
      return Flow::Next;
    }
    case Op::Send: {
      Ref sent = pop(frame);
      PyObject* receiver = stack.back().get();
      bool error = false;
      Ref value;
      Ref returned = Ref::borrow(Py_None);
      if (is_generator(receiver)) {
        value = run_generator(receiver, sent.get(), &error);
        if (!value && !error) returned = generator_data(receiver).returned;
      } else if (sent == Py_None) {
        value = iterate(receiver, &error);
      } else {
        stop("sends a value into an iterator");
      }
      if (error) return Flow::Raised;
      if (value) {
        stack.push_back(std::move(value));
        return Flow::Next;
      }
      if constexpr (PY_VERSION_HEX < 0x030C0000) stack.pop_back();
      stack.push_back(std::move(returned));
      jump(frame, in.arg);
      return Flow::Jumped;
    }
    case Op::EndSend: {
      Ref value = pop(frame);
      stack.back() = std::move(value);
      return Flow::Next;
    }
    case Op::EndFor:
      stack.pop_back();
      if constexpr (PY_VERSION_HEX < 0x030D0000) stack.pop_back();
      return Flow::Next;
    default:
      stop("an instruction of a coroutine is not captured");
  }
}

}  // namespace oxy::eval
