#include "driver/compilation/custom_backend.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include "base/dump.h"
#include "base/log.h"
#include "base/timing.h"
#include "driver/compilation/graph_module.h"
#include "driver/state/metrics.h"
#include "eval/state/break.h"
#include "hook/hook.h"
#include "runtime/values/tensor_object.h"

namespace oxy::driver {
namespace {

using cpy::Ref;

[[noreturn]] void raise(PyObject* type, const std::string& text) {
  PyErr_SetString(type, text.c_str());
  throw eval::Interrupted{};
}

// Replaces the pending error by a RuntimeError with `text` and the error's own text; the error becomes its
// cause. KeyboardInterrupt and the like stay as they are.
[[noreturn]] void raise_from_pending(const std::string& text) {
  if (!PyErr_ExceptionMatches(PyExc_Exception)) throw eval::Interrupted{};
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback) PyException_SetTraceback(value, traceback);
  Ref words = Ref::steal(PyObject_Str(value));
  PyErr_Clear();
  const char* utf8 = words ? PyUnicode_AsUTF8(words.get()) : nullptr;
  const std::string cause = fmt::format("{}: {}", Py_TYPE(value)->tp_name, utf8 ? utf8 : "?");
  PyErr_SetString(PyExc_RuntimeError, fmt::format("{}: {}", text, cause).c_str());
  PyObject *new_type = nullptr, *new_value = nullptr, *new_traceback = nullptr;
  PyErr_Fetch(&new_type, &new_value, &new_traceback);
  PyErr_NormalizeException(&new_type, &new_value, &new_traceback);
  PyException_SetCause(new_value, value);  // takes over the reference
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  PyErr_Restore(new_type, new_value, new_traceback);
  throw eval::Interrupted{};
}

void add_note(const std::string& text) {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  Ref done = Ref::steal(PyObject_CallMethod(value, "add_note", "s", text.c_str()));
  if (!done) PyErr_Clear();
  PyErr_Restore(type, value, traceback);
}

// "self.__dict__['_modules']['first'].weight" → "self_first_weight".
std::string placeholder_name(const std::string& source) {
  std::string result, word;
  const auto end_word = [&] {
    const bool says_nothing = word.empty() || word == "__dict__" || word == "_modules" ||
                              word == "_parameters" || word == "_buffers" || word == "the" ||
                              word == "compiled";
    if (!says_nothing) result += (result.empty() ? "" : "_") + word;
    word.clear();
  };
  for (const char c : source) {
    const bool is_word =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (is_word)
      word += c;
    else
      end_word();
  }
  end_word();
  return result.empty() ? "input" : result;
}

// What a graph module takes: the numbers of the symbols, and the tensors.
Ref list_of(std::span<const sym::Expr> symbols, std::span<const int64_t> values,
            std::span<const at::Tensor> tensors) {
  Ref list = Ref::steal(PyList_New(static_cast<Py_ssize_t>(symbols.size() + tensors.size())));
  Py_ssize_t place = 0;
  for (const sym::Expr& symbol : symbols)
    PyList_SET_ITEM(list.get(), place++,
                    PyLong_FromLongLong(values[static_cast<size_t>(symbol.variable_id())]));
  for (const at::Tensor& tensor : tensors) PyList_SET_ITEM(list.get(), place++, runtime::wrap_tensor(tensor));
  return list;
}

class CustomGraph : public CompiledGraph {
 public:
  CustomGraph(Ref callable, std::vector<sym::Expr> symbols, size_t outputs, std::string backend,
              std::string name)
      : callable_(std::move(callable)),
        symbols_(std::move(symbols)),
        outputs_(outputs),
        backend_(std::move(backend)),
        name_(std::move(name)) {}

  std::vector<at::Tensor> run(std::span<const at::Tensor> inputs, std::span<int64_t> values) override {
    const hook::HookPause pause;  // the backend's own code is not captured
    const c10::AutoGradMode restored(at::GradMode::is_enabled());
    Ref list = list_of(symbols_, values, inputs);
    Ref arguments = Ref::steal(PyList_AsTuple(list.get()));
    Ref result = Ref::steal(PyObject_CallObject(callable_.get(), arguments.get()));
    if (!result) {
      add_note(fmt::format("in a captured region of {} that backend '{}' compiled", name_, backend_));
      throw eval::Interrupted{};
    }
    if (!PyTuple_Check(result.get()) && !PyList_Check(result.get()))
      raise(PyExc_TypeError,
            fmt::format("{} an object of type {}", expectation(), Py_TYPE(result.get())->tp_name));
    const auto count = static_cast<size_t>(PySequence_Fast_GET_SIZE(result.get()));
    if (count != outputs_) raise(PyExc_ValueError, fmt::format("{} {} values", expectation(), count));
    std::vector<at::Tensor> outputs;
    for (size_t i = 0; i < count; ++i) {
      PyObject* output = PySequence_Fast_GET_ITEM(result.get(), static_cast<Py_ssize_t>(i));
      if (!runtime::is_tensor(output))
        raise(PyExc_TypeError,
              fmt::format("{} an object of type {} as value {}", expectation(), Py_TYPE(output)->tp_name, i));
      outputs.push_back(runtime::tensor_of(output));
    }
    return outputs;
  }

  bool is_long() const override { return false; }

 private:
  std::string expectation() const {
    return fmt::format("what backend '{}' returned for a region of {} must give a tuple of {} tensors, not",
                       backend_, name_, outputs_);
  }

  Ref callable_;
  std::vector<sym::Expr> symbols_;
  size_t outputs_;
  std::string backend_, name_;
};

}  // namespace

std::unique_ptr<CompiledGraph> compile_with_backend(const eval::Capture& capture,
                                                    std::span<const at::Tensor> examples,
                                                    const CustomBackend& backend, const std::string& name) {
  const eval::TorchProgram& program = *capture.torch_program;
  metrics().compiled += statistics_of(capture.recording);
  const hook::HookPause pause;
  std::vector<std::string> names;
  for (guards::SourceId source : capture.inputs)
    names.push_back(placeholder_name(capture.guards.describe(source)));
  Ref module;
  {
    Span span("graph_module");
    module = make_graph_module(program, names);
  }
  const Dump dump(name);
  if (log_enabled(Channel::Graph) || dump.enabled()) {
    Ref code = Ref::steal(PyObject_GetAttrString(module.get(), "code"));
    const char* text = code ? PyUnicode_AsUTF8(code.get()) : nullptr;
    if (!text) PyErr_Clear();
    log(Channel::Graph, "{}", text ? text : "?");
    dump.write("graph_module", text ? text : "?");
  }
  Span span("backend");
  Ref list = list_of(program.symbols, capture.guards.symbol_values(), examples);
  Ref compiled =
      Ref::steal(PyObject_CallFunctionObjArgs(backend.callable.get(), module.get(), list.get(), nullptr));
  if (!compiled)
    raise_from_pending(fmt::format("backend '{}' failed for a region of {}", backend.name, name));
  if (!PyCallable_Check(compiled.get()))
    raise(PyExc_TypeError, fmt::format("backend '{}' must return a callable, not an object of type {}",
                                       backend.name, Py_TYPE(compiled.get())->tp_name));
  return std::make_unique<CustomGraph>(std::move(compiled), program.symbols, program.outputs.size(),
                                       backend.name, name);
}

}  // namespace oxy::driver
