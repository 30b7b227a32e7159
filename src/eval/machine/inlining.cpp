// Inlining: Python functions are interpreted where they are called.
#include "eval/machine/inlining.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "eval/builtins/builtins.h"
#include "eval/externals/admission.h"
#include "eval/machine/run.h"
#include "eval/python/objects.h"
#include "eval/state/evaluation.h"
#include "eval/state/generator.h"
#include "eval/state/interpreter.h"
#include "eval/treatment/inlined.h"

namespace oxy::eval {

using guards::kNoSource;
using guards::SourceKind;

namespace {

// Calls the function with as many Nones, if its arguments do not fit: CPython sets its TypeError before any
// code of the function runs. Always false.
bool refused(PyObject* function, const Arguments& arguments) {
  const Ref positional = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(arguments.positional.size())));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(positional.get()); ++i)
    PyTuple_SET_ITEM(positional.get(), i, Py_NewRef(Py_None));
  const Ref keywords = Ref::steal(PyDict_New());
  for (const auto& [key, value] : arguments.keywords) PyDict_SetItem(keywords.get(), key.get(), Py_None);
  const Ref result = Ref::steal(PyObject_Call(function, positional.get(), keywords.get()));
  check(!result, "a function takes arguments that were said not to fit");
  return false;
}

}  // namespace

bool bind_arguments(Interpreter& interpreter, PyObject* function, Arguments arguments, Frame& frame) {
  auto* object = reinterpret_cast<PyFunctionObject*>(function);
  auto* code = reinterpret_cast<PyCodeObject*>(object->func_code);
  frame.code_object = Ref::borrow(object->func_code);
  frame.code = bytecode::decode(code);
  frame.function = Ref::borrow(function);
  frame.globals = Ref::borrow(object->func_globals);
  frame.builtins = Ref::borrow(object->func_builtins);
  frame.locals.resize(static_cast<size_t>(code->co_nlocalsplus));
  const auto positional_count = static_cast<size_t>(code->co_argcount);
  const auto keyword_only = static_cast<size_t>(code->co_kwonlyargcount);
  const size_t named = positional_count + keyword_only;

  const size_t given = arguments.positional.size();
  for (size_t i = 0; i < std::min(given, positional_count); ++i) frame.locals[i] = arguments.positional[i];
  size_t next_slot = named;
  if (code->co_flags & CO_VARARGS) {
    const size_t extra = given > positional_count ? given - positional_count : 0;
    Ref rest = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(extra)));
    for (size_t i = 0; i < extra; ++i)
      PyTuple_SET_ITEM(rest.get(), static_cast<Py_ssize_t>(i),
                       arguments.positional[positional_count + i].new_reference());
    frame.locals[next_slot++] = std::move(rest);
  } else if (given > positional_count) {
    return refused(function, arguments);
  }
  Ref extra_keywords;
  if (code->co_flags & CO_VARKEYWORDS) {
    extra_keywords = Ref::steal(PyDict_New());
    frame.locals[next_slot] = extra_keywords;
  }
  for (auto& [key, value] : arguments.keywords) {
    size_t slot = named;
    for (size_t i = static_cast<size_t>(code->co_posonlyargcount); i < named; ++i) {
      PyObject* parameter = PyTuple_GET_ITEM(code->co_localsplusnames, static_cast<Py_ssize_t>(i));
      if (parameter == key.get() || PyUnicode_Compare(parameter, key.get()) == 0) {
        slot = i;
        break;
      }
    }
    if (slot == named) {
      if (!extra_keywords) return refused(function, arguments);
      PyDict_SetItem(extra_keywords.get(), key.get(), value.get());
      continue;
    }
    if (frame.locals[slot]) return refused(function, arguments);
    frame.locals[slot] = value;
  }
  const SourceId source = interpreter.externals.source_of(function);
  if (object->func_defaults) {
    const auto count = static_cast<size_t>(PyTuple_GET_SIZE(object->func_defaults));
    for (size_t i = positional_count - std::min(count, positional_count); i < positional_count; ++i) {
      if (frame.locals[i]) continue;
      const auto k = static_cast<Py_ssize_t>(i - (positional_count - count));
      PyObject* value = PyTuple_GET_ITEM(object->func_defaults, k);
      frame.locals[i] = source == kNoSource
                            ? Ref::borrow(value)
                            : admit(interpreter, value,
                                    interpreter.guards().tuple_item(
                                        interpreter.guards().derived(SourceKind::FunctionDefaults, source),
                                        static_cast<int32_t>(k)));
    }
  }
  if (object->func_kwdefaults) {
    for (size_t i = positional_count; i < named; ++i) {
      if (frame.locals[i]) continue;
      PyObject* parameter = PyTuple_GET_ITEM(code->co_localsplusnames, static_cast<Py_ssize_t>(i));
      PyObject* value = PyDict_GetItemWithError(object->func_kwdefaults, parameter);
      if (!value) continue;
      frame.locals[i] =
          source == kNoSource
              ? Ref::borrow(value)
              : admit(interpreter, value,
                      interpreter.guards().dict_item(
                          interpreter.guards().derived(SourceKind::FunctionKwDefaults, source), parameter));
    }
  }
  for (size_t i = 0; i < named; ++i)
    if (!frame.locals[i]) return refused(function, arguments);
  return true;
}

namespace {

// Guards the code of an external function.
void pin_function(Interpreter& interpreter, PyObject* function) {
  if (interpreter.calls.is_fresh_function(function)) return;
  auto* object = reinterpret_cast<PyFunctionObject*>(function);
  const bool by_code = interpreter.externals.is_known_by_code(function);
  if (!by_code) pin(interpreter, function);
  const SourceId source = interpreter.externals.source_of(function);
  interpreter.guards().require(interpreter.guards().derived(SourceKind::FunctionCode, source),
                               guards::CheckKind::Identity, object->func_code);
  if (by_code)
    interpreter.guards().require(interpreter.guards().derived(SourceKind::FunctionGlobals, source),
                                 guards::CheckKind::Identity, object->func_globals);
  for (Py_ssize_t i = 0; object->func_closure && i < PyTuple_GET_SIZE(object->func_closure); ++i) {
    PyObject* cell = PyTuple_GET_ITEM(object->func_closure, i);
    admit(interpreter, cell,
          by_code ? interpreter.guards().tuple_item(
                        interpreter.guards().derived(SourceKind::FunctionClosure, source),
                        static_cast<int32_t>(i))
                  : interpreter.guards().pinned(cell));
  }
}

}  // namespace

Ref call_with_unread(Interpreter& interpreter, PyObject* function, Ref self,
                     std::span<PyObject* const> values, std::span<const SourceId> sources,
                     PyObject* kwnames) {
  auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function));
  const size_t keyword_count = kwnames ? static_cast<size_t>(PyTuple_GET_SIZE(kwnames)) : 0;
  const size_t positional = values.size() - keyword_count;
  const auto positional_slots = static_cast<size_t>(code->co_argcount);
  const size_t named = positional_slots + static_cast<size_t>(code->co_kwonlyargcount);
  std::vector<SourceId> unread(static_cast<size_t>(code->co_nlocalsplus), kNoSource);
  Arguments arguments;
  if (self) arguments.positional.push_back(std::move(self));
  for (size_t i = 0; i < positional; ++i) {
    const size_t slot = arguments.positional.size();
    if (slot < positional_slots) unread[slot] = sources[i];
    arguments.positional.push_back(slot < positional_slots ? Ref::borrow(values[i])
                                                           : admit(interpreter, values[i], sources[i]));
  }
  for (size_t i = 0; i < keyword_count; ++i) {
    PyObject* name = PyTuple_GET_ITEM(kwnames, static_cast<Py_ssize_t>(i));
    const size_t from = positional + i;
    size_t slot = static_cast<size_t>(code->co_posonlyargcount);
    while (slot < named &&
           PyUnicode_Compare(PyTuple_GET_ITEM(code->co_localsplusnames, static_cast<Py_ssize_t>(slot)),
                             name) != 0)
      ++slot;
    if (slot < named) unread[slot] = sources[from];
    arguments.keywords.emplace_back(Ref::borrow(name), slot < named
                                                           ? Ref::borrow(values[from])
                                                           : admit(interpreter, values[from], sources[from]));
  }
  pin_function(interpreter, function);
  Frame frame;
  if (!bind_arguments(interpreter, function, std::move(arguments), frame)) return {};
  frame.unread = std::move(unread);
  return run_to_return(interpreter, frame);
}

Ref call_python_function(Interpreter& interpreter, PyObject* function, Arguments arguments) {
  auto* object = reinterpret_cast<PyFunctionObject*>(function);
  auto* code = reinterpret_cast<PyCodeObject*>(object->func_code);
  if (PyObject* original = behind_torch_compile(function)) {
    pin(interpreter, function);
    return call(interpreter, pin(interpreter, original).get(), std::move(arguments));
  }
  if (const char* reason = refusal_to_inline(function))
    interpreter.stop(fmt::format("calls {}: {}", describe_callable(function), reason));
  pin_function(interpreter, function);
  if (code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)) {
    if ((code->co_flags & CO_COROUTINE) && PyThreadState_Get()->coroutine_origin_tracking_depth > 0)
      interpreter.stop("calls a coroutine function while origins of coroutines are tracked");
    auto data = std::make_unique<GeneratorData>();
    data->abandoned = interpreter.calls.abandoned;
    if (!bind_arguments(interpreter, function, std::move(arguments), data->frame)) return {};
    if (run(interpreter, data->frame) != Flow::Yielded) return {};
    const std::weak_ptr<void> life = data->life;
    Ref generator = make_generator(std::move(data));
    interpreter.calls.generators.emplace_back(life, generator.get());
    return generator;
  }
  Frame frame;
  if (!bind_arguments(interpreter, function, std::move(arguments), frame)) return {};
  return run_to_return(interpreter, frame);
}

bool accepts(Interpreter& interpreter, PyObject* function, const Arguments& arguments) {
  Frame frame;
  const bool fits = bind_arguments(interpreter, function, arguments, frame);
  PyErr_Clear();
  return fits;
}

}  // namespace oxy::eval
