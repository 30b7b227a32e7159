#include "eval/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/error.h"
#include "cpy/generator.h"
#include "eval/library_code.h"
#include "eval/objects.h"
#include "eval/pending_error.h"
#include "eval/prelude.h"
#include "eval/prelude_iterators.h"
#include "eval/stack.h"

namespace oxy::eval {
namespace {

struct GeneratorObject {
  PyObject_HEAD GeneratorData* data;
};

// An error that is thrown into a generator has what the generator is handling as its context.
void chain_to_handled() {
  if (!cpy::handled_here()) return;
  Ref value;
  {
    PendingError pending;
    value = Ref::borrow(pending.value());
  }
  PyErr_Clear();
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(value.get())), value.get());
}

void end_frame(Frame& frame) {
  const std::vector<Ref> locals = std::move(frame.locals), stack = std::move(frame.stack);
  frame.locals.clear();
  frame.stack.clear();
}

const char* name_of(PyTypeObject* type) {
  if (type == &PyCoro_Type) return "coroutine";
  return type == &PyAsyncGen_Type ? "async generator" : "generator";
}

// The pending exception becomes cause and context of a RuntimeError.
void raise_runtime_error(const std::string& text) {
  Ref cause;
  {
    PendingError pending;
    cause = Ref::borrow(pending.value());
  }
  PyErr_Clear();
  PyErr_SetString(PyExc_RuntimeError, text.c_str());
  PendingError pending;
  PyException_SetCause(pending.value(), cause.new_reference());
  PyException_SetContext(pending.value(), cause.release());
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

// Methods have a name and an object for the evaluator to find: generator_methods.cpp.
PyObject* refuse(PyObject*, PyObject*) {
  PyErr_SetString(PyExc_SystemError, "only the evaluator can advance this generator");
  return nullptr;
}

PyTypeObject* generator_type() {
  static PyObject* type = nullptr;
  cpy::made_once(type, [] {
    static PyMethodDef methods[] = {
        {"send", &refuse, METH_O, nullptr},     {"throw", &refuse, METH_O, nullptr},
        {"close", &refuse, METH_O, nullptr},    {"__next__", &refuse, METH_O, nullptr},
        {"__iter__", &refuse, METH_O, nullptr}, {nullptr, nullptr, 0, nullptr}};
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, reinterpret_cast<void*>(&deallocate)}, {Py_tp_methods, methods}, {0, nullptr}};
    static PyType_Spec spec = {kGeneratorClassName, sizeof(GeneratorObject), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    return PyType_FromSpec(&spec);
  });
  check(type != nullptr, "cannot make the generator type");
  return reinterpret_cast<PyTypeObject*>(type);
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
  return Py_TYPE(object) == generator_type() && class_of(generator_data(object)) == &PyGen_Type;
}

bool is_coroutine(PyObject* object) {
  return Py_TYPE(object) == generator_type() && class_of(generator_data(object)) != &PyGen_Type;
}

PyTypeObject* class_of(const GeneratorData& data) {
  return class_of_code(data.frame.pycode());
}

PyTypeObject* class_of_generator(const Evaluator& evaluator, PyObject* generator) {
  const GeneratorData& data = generator_data(generator);
  if (is_prelude_code(data.frame.pycode())) evaluator.stop("tests the class of an iterator");
  return class_of(data);
}

PyTypeObject* class_of_code(PyCodeObject* code) {
  const int flags = code->co_flags;
  if (flags & CO_COROUTINE) return &PyCoro_Type;
  return flags & CO_ASYNC_GENERATOR ? &PyAsyncGen_Type : &PyGen_Type;
}

GeneratorData& generator_data(PyObject* object) {
  return *reinterpret_cast<GeneratorObject*>(object)->data;
}

void set_stop_iteration(const Ref& returned) {
  if (returned == Py_None) {
    PyErr_SetNone(PyExc_StopIteration);
    return;
  }
  // A tuple or an exception would be taken apart.
  Ref stop = Ref::steal(PyObject_CallOneArg(PyExc_StopIteration, returned.get()));
  if (stop) PyErr_SetObject(PyExc_StopIteration, stop.get());
}

bool waits_for_another(const GeneratorData& data) {
  const Frame& frame = data.frame;
  return data.state == GeneratorState::Suspended && frame.current > 0 &&
         frame.code->instructions[frame.current - 1].op == bytecode::Op::Send;
}

Ref taken_stop_value() {
  if (!PyErr_ExceptionMatches(PyExc_StopIteration)) return {};
  Ref value;
  {
    const PendingError pending;
    value = Ref::borrow(reinterpret_cast<PyStopIterationObject*>(pending.value())->value);
  }
  PyErr_Clear();
  return value;
}

// Whether closing the generator would run code of its own. From Python 3.12 on there are handlers of the
// interpreter's: one around the whole body that turns StopIteration into an error, and one around each wait
// for another generator that takes its result.
bool has_cleanup(const GeneratorData& data) {
  // A coroutine that was never awaited warns.
  if (data.state == GeneratorState::Created) return class_of(data) == &PyCoro_Type;
  if (data.state != GeneratorState::Suspended) return false;
  const bytecode::Code& code = *data.frame.code;
  int32_t at = data.frame.instruction().at;
  for (;;) {
    const auto covers = [&](const bytecode::ExceptionEntry& entry) {
      return at >= entry.begin && at < entry.end;
    };
    const auto entry = std::find_if(code.exception_table.begin(), code.exception_table.end(), covers);
    if (entry == code.exception_table.end()) return false;
    const bytecode::Op handler = code.at(entry->target).op;
    if (handler == bytecode::Op::StopIterationError) return false;
    if (handler != bytecode::Op::CleanupThrow) return true;
    at = entry->target;
  }
}

// In the interpreter the traceback of an exception that a local holds holds the frame, and so all that is in
// it. (What contextlib catches and keeps in a local it gives another traceback.)
void Evaluator::refuse_what_tracebacks_hold(const Frame& frame) const {
  if (frame.caught.empty() || is_library_code(frame.pycode())) return;
  const bool holds_one = std::ranges::any_of(frame.locals, [&](const Ref& local) {
    PyObject* const value = local && PyCell_Check(local.get()) ? PyCell_GET(local.get()) : local.get();
    return std::ranges::find(frame.caught, value) != frame.caught.end();
  });
  const auto has_work = [](const auto& made) {
    return !made.first.expired() && has_cleanup(generator_data(made.second));
  };
  if (holds_one && std::ranges::any_of(generators_, has_work))
    stop("a frame ends whose exceptions hold it, and with it a generator with something left to do");
}

void Evaluator::close_abandoned() {
  Ref type, value, traceback;
  PyErr_Fetch(type.out(), value.out(), traceback.out());
  // The interpreter's traceback holds the frame, and with it the generator, until the exception is handled.
  if (type) stop("an exception leaves a frame that holds a generator with something left to do");
  while (!abandoned_->empty()) {
    std::unique_ptr<GeneratorData> data = std::move(abandoned_->front());
    abandoned_->erase(abandoned_->begin());
    Frame& frame = data->frame;
    if (data->state == GeneratorState::Created) stop("a coroutine is never awaited");
    if (class_of(*data) == &PyAsyncGen_Type) stop("an asynchronous generator is dropped before its end");
    // Whose traceback, in the interpreter, holds the frames that it went through: they end with the cycle.
    if (data->handled && data->handled != Py_None) stop("a generator that handles an exception is dropped");
    PyErr_SetNone(PyExc_GeneratorExit);
    if (waits_for_another(*data)) {
      Ref returned;
      throw_into_receiver(*data, &returned);
    }
    // No object leads to the data any more, so nothing can reach it while it runs.
    Flow flow = Flow::Raised;
    {
      const cpy::HandledItem item(data->handled);
      frame.stack.push_back(Ref::borrow(Py_None));
      chain_to_handled();
      if (unwind(frame)) flow = run(frame);
    }
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

// A value: what the receiver yields for it. Null: the generator goes on, with `returned` if that is set, else
// with the error that is.
Ref Evaluator::throw_into_receiver(GeneratorData& data, Ref* returned) {
  Frame& frame = data.frame;
  Ref receiver = frame.stack.back();
  const bool generator = is_generator(receiver.get()) || is_coroutine(receiver.get());
  // What the prelude stands for has no throw(), as C iterators have none.
  if (generator && is_prelude_code(generator_data(receiver.get()).frame.pycode())) return {};
  if (!generator && is_builtin_iterator(receiver.get())) return {};
  if (!generator) stop("an exception is thrown into a generator that waits for another object");
  if (PyErr_ExceptionMatches(PyExc_GeneratorExit)) {
    Ref type, value, traceback;
    PyErr_Fetch(type.out(), value.out(), traceback.out());
    data.state = GeneratorState::Running;
    if (close_generator(receiver.get())) PyErr_Restore(type.release(), value.release(), traceback.release());
    data.state = GeneratorState::Suspended;
    return {};
  }
  data.state = GeneratorState::Running;
  bool error = false;
  Ref value = run_generator(receiver.get(), nullptr, &error);
  data.state = GeneratorState::Suspended;
  if (value) return value;
  if constexpr (PY_VERSION_HEX >= 0x030C0000) {
    // A handler in the generator's own code takes the result from there.
    if (!error) set_stop_iteration(generator_data(receiver.get()).returned);
    return {};
  }
  frame.stack.pop_back();
  if (error) return {};
  *returned = generator_data(receiver.get()).returned;
  jump(frame, frame.code->instructions[frame.current - 1].arg);
  return {};
}

bool Evaluator::close_generator(PyObject* generator) {
  GeneratorData& data = generator_data(generator);
  if (data.state == GeneratorState::Created) {
    data.state = GeneratorState::Finished;
    end_frame(data.frame);
  }
  if (data.state == GeneratorState::Finished) return true;
  PyErr_SetNone(PyExc_GeneratorExit);
  bool error = false;
  if (run_generator(generator, nullptr, &error)) {
    PyErr_Format(PyExc_RuntimeError, "%s ignored GeneratorExit", name_of(class_of(data)));
    return false;
  }
  if (error && !PyErr_ExceptionMatches(PyExc_StopIteration) && !PyErr_ExceptionMatches(PyExc_GeneratorExit))
    return false;
  PyErr_Clear();
  return true;
}

Ref Evaluator::run_generator(PyObject* generator, PyObject* sent, bool* error) {
  Ref hold = Ref::borrow(generator);
  GeneratorData& data = generator_data(generator);
  if (data.state == GeneratorState::Finished) {
    if (asks_again(data)) stop("asks an iterator that has ended once more");
    *error = sent == nullptr;
    if (class_of(data) == &PyCoro_Type) {
      PyErr_SetString(PyExc_RuntimeError, "cannot reuse already awaited coroutine");
      *error = true;
    }
    data.returned = Ref::borrow(Py_None);
    return {};
  }
  if (data.state == GeneratorState::Running) {
    // What it stands for in C has no such rule.
    if (is_prelude_code(data.frame.pycode())) stop("an iterator asks itself for an item");
    PyErr_Format(PyExc_ValueError, "%s already executing", name_of(class_of(data)));
    *error = true;
    return {};
  }
  Frame& frame = data.frame;
  Flow flow = Flow::Raised;
  Ref returned;
  if (!sent && waits_for_another(data)) {
    if (Ref value = throw_into_receiver(data, &returned)) return value;
    sent = returned.get();
  }
  data.state = GeneratorState::Running;
  {
    const cpy::HandledItem item(data.handled);
    frame.stack.push_back(Ref::borrow(sent ? sent : Py_None));
    if (!sent) chain_to_handled();
    if (sent || unwind(frame)) flow = run(frame);
  }
  if (flow == Flow::Yielded) {
    data.state = GeneratorState::Suspended;
    return pop(frame);
  }
  data.state = GeneratorState::Finished;
  if (flow == Flow::Returned) data.returned = pop(frame);
  end_frame(frame);
  *error = flow == Flow::Raised;
  if (*error && PyErr_ExceptionMatches(PyExc_StopIteration)) {
    if (is_prelude_code(frame.pycode())) {
      // An iterator of C's ends with the StopIteration of the function that it calls.
      data.returned = taken_stop_value();
      *error = false;
    } else {
      raise_runtime_error(fmt::format("{} raised StopIteration", name_of(class_of(data))));
    }
  }
  if (*error && is_prelude_code(frame.pycode())) {
    PyErr_Clear();
    stop("an iterator raises", "an iterator of C's goes on behind the item that raised");
  }
  return {};
}

Flow Evaluator::step_generator(Frame& frame, const bytecode::Instruction& in) {
  using bytecode::Op;
  auto& stack = frame.stack;
  switch (in.op) {
    case Op::Resume:
      return Flow::Next;
    case Op::ReturnGenerator:
    case Op::YieldValue:
      return Flow::Yielded;
    case Op::AsyncGenWrap:
      // What a yield of an asynchronous generator begins with: a segment ends there.
      if (&frame == outermost_) return Flow::Yielded;
      stop("an asynchronous generator is not captured");
    case Op::GetAwaitable: {
      PyObject* object = stack.back().get();
      if (!is_generator(object) && !is_coroutine(object)) {
        Ref await = special_method(object, "__await__");
        if (!await) stop(fmt::format("awaits an object of type {}", Py_TYPE(object)->tp_name));
        Ref iterator = call_positional(await.get(), {});
        if (!iterator) return Flow::Raised;
        if (!is_generator(iterator.get()) && !is_builtin_iterator(iterator.get()))
          stop(fmt::format("awaits an object of type {}", Py_TYPE(object)->tp_name));
        stack.back() = std::move(iterator);
        return Flow::Next;
      }
      const GeneratorData& data = generator_data(object);
      const int flags = data.frame.pycode()->co_flags;
      if (data.state == GeneratorState::Created && (flags & (CO_COROUTINE | CO_ITERABLE_COROUTINE)))
        return Flow::Next;
      stop(fmt::format("awaits an object of type {}", class_of(data)->tp_name));
    }
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
      if (is_generator(receiver) || is_coroutine(receiver)) {
        value = run_generator(receiver, sent.get(), &error);
        if (!value && !error) returned = generator_data(receiver).returned;
      } else if (sent != Py_None) {
        stop("sends a value into an iterator");
      } else {
        value = iterate(receiver, &error, &returned);
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
    case Op::StopIterationError: {
      PyObject* exception = stack.back().get();
      PyTypeObject* type = class_of_code(frame.pycode());
      const char* what = nullptr;
      if (PyErr_GivenExceptionMatches(exception, PyExc_StopIteration))
        what = "StopIteration";
      else if (type == &PyAsyncGen_Type && PyErr_GivenExceptionMatches(exception, PyExc_StopAsyncIteration))
        what = "StopAsyncIteration";
      if (!what || is_prelude_code(frame.pycode())) return Flow::Next;
      PyErr_Restore(Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(exception))), Py_NewRef(exception),
                    PyException_GetTraceback(exception));
      raise_runtime_error(fmt::format("{} raised {}", name_of(type), what));
      Ref error_type, error, traceback;
      PyErr_Fetch(error_type.out(), error.out(), traceback.out());
      stack.back() = std::move(error);
      return Flow::Next;
    }
    case Op::CleanupThrow: {
      // The receiver, what was sent into it last, and what it raised.
      Ref exception = pop(frame);
      if (!PyErr_GivenExceptionMatches(exception.get(), PyExc_StopIteration)) {
        PyErr_Restore(Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(exception.get()))),
                      exception.new_reference(), PyException_GetTraceback(exception.get()));
        return Flow::Raised;
      }
      pop(frame);
      stack.back() = Ref::borrow(Py_None);
      stack.push_back(Ref::borrow(reinterpret_cast<PyStopIterationObject*>(exception.get())->value));
      return Flow::Next;
    }
    default:
      stop("an instruction of a coroutine is not captured");
  }
}

}  // namespace oxy::eval
