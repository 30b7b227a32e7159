// Functions that ask whether something is being compiled, and functions that ask about the process.
#include <array>

#include "eval/builtins/builtin_families.h"
#include "eval/externals/admission.h"
#include "eval/externals/c_calls.h"
#include "eval/objects/taking_items.h"
#include "eval/python/objects.h"
#include "eval/python/traceback.h"
#include "eval/state/evaluation.h"

namespace oxy::eval {

namespace {

// A module that finds that it is being compiled does not call its always-called hooks after an error. Here it
// must call them, so it is told no.
bool is_call_of_module(const Frame& frame) {
  const auto* code = reinterpret_cast<PyCodeObject*>(frame.pycode());
  PyObject* module = PyDict_GetItemString(frame.globals.get(), "__name__");
  return PyUnicode_CompareWithASCIIString(code->co_qualname, "Module._call_impl") == 0 && module &&
         PyUnicode_Check(module) && PyUnicode_CompareWithASCIIString(module, "torch.nn.modules.module") == 0;
}

Ref compiling(Interpreter& interpreter, Arguments&) {
  if (is_call_of_module(calling_frame(interpreter, "is_compiling"))) return boolean(false);
  if (!interpreter.options.tells_that_it_compiles) return boolean(false);
  interpreter.calls.told_that_it_compiles = true;
  return boolean(true);
}

Ref not_so(Interpreter&, Arguments&) {
  return boolean(false);
}

Ref handled_exception(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "sys.exception", 0, 0);
  rely_on_nothing_handled(interpreter);
  Ref handled = Ref::steal(PyErr_GetHandledException());
  return handled ? handled : Ref::borrow(Py_None);
}

Ref handled_details(Interpreter& interpreter, Arguments& a) {
  Ref handled = handled_exception(interpreter, a);
  if (handled == Py_None) return Ref::steal(PyTuple_Pack(3, Py_None, Py_None, Py_None));
  return Ref::steal(PyTuple_Pack(3, reinterpret_cast<PyObject*>(Py_TYPE(handled.get())), handled.get(),
                                 unknown_traceback()));
}

Ref annotate(Interpreter& interpreter, Arguments& arguments) {
  if (arguments.positional.size() != 2 || !arguments.keywords.empty())
    interpreter.stop("calls torch.jit.annotate()");
  return arguments.positional[1];
}

Ref print_text(Interpreter& interpreter, Arguments&) {
  interpreter.stop("calls print()");
}

Ref graph_break(Interpreter& interpreter, Arguments&) {
  interpreter.stop("calls oxyfuel.graph_break()");
}

// What tells another compiler something. It does nothing here.
Ref for_another_compiler(Interpreter&, Arguments&) {
  return Ref::borrow(Py_None);
}

// importlib.metadata.version(). Installed distributions do not change while a program runs.
Ref installed_version(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "importlib.metadata.version", 1, 1);
  if (!PyUnicode_CheckExact(arg(a, 0))) interpreter.stop("calls importlib.metadata.version()");
  const Ref folders =
      get_attribute(interpreter, pin(interpreter, PyImport_AddModule("sys")).get(), interned("path").get());
  if (!folders || !drain(interpreter, folders.get())) return {};
  return call_real(interpreter, well_known("importlib.metadata", "version"), a);
}

// These modules are never imported, but found if the program has loaded them. What is found in them is only
// compared with what the program calls. The functions themselves do not run.
constexpr BuiltinEntry kTable[] = {
    {"builtins", "print", &print_text},
    {"importlib.metadata", "version", &installed_version},
    {"sys", "exc_info", &handled_details},
    {"sys", "exception", &handled_exception},
    {"torch.compiler", "is_compiling", &compiling},
    {"torch.compiler", "is_dynamo_compiling", &compiling},
    {"torch.compiler", "is_exporting", &not_so},
    {"torch._dynamo", "is_compiling", &compiling},
    {"torch._dynamo.external_utils", "is_compiling", &compiling},
    {"torch._dynamo.decorators", "graph_break", &for_another_compiler},
    {"torch._dynamo.decorators", "mark_static_address", &for_another_compiler},
    {"torch._utils", "is_compiling", &compiling},
    {"torch.jit", "is_tracing", &not_so},
    {"torch.jit", "is_scripting", &not_so},
    {"torch.jit", "annotate", &annotate},
    {"oxyfuel", "is_compiling", &compiling},
    {"oxyfuel", "graph_break", &graph_break},
};

}  // namespace

std::span<const BuiltinEntry> compiling_builtins() {
  return kTable;
}

}  // namespace oxy::eval
