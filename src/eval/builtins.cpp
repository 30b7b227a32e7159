// Functions about compiling itself, what is pure, and what is not evaluated.
#include "eval/builtins.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "eval/builtin_families.h"
#include "eval/objects.h"
#include "eval/prelude.h"
#include "eval/traceback.h"

namespace oxy::eval {
namespace {

// While something compiles, a module does not call the hooks that are always to be called if it raises: here
// they are called.
bool is_call_of_module(const Frame& frame) {
  const auto* code = reinterpret_cast<PyCodeObject*>(frame.pycode());
  PyObject* module = PyDict_GetItemString(frame.globals.get(), "__name__");
  return PyUnicode_CompareWithASCIIString(code->co_qualname, "Module._call_impl") == 0 && module &&
         PyUnicode_Check(module) && PyUnicode_CompareWithASCIIString(module, "torch.nn.modules.module") == 0;
}

Ref compiling(Evaluator& e, Arguments&) {
  if (is_call_of_module(calling_frame(e, "is_compiling"))) return boolean(false);
  e.tell_that_it_compiles();
  return boolean(true);
}

Ref not_so(Evaluator&, Arguments&) {
  return boolean(false);
}

Ref handled_exception(Evaluator& e, Arguments& a) {
  expect(e, a, "sys.exception", 0, 0);
  e.rely_on_nothing_handled();
  Ref handled = Ref::steal(PyErr_GetHandledException());
  return handled ? handled : Ref::borrow(Py_None);
}

Ref handled_details(Evaluator& e, Arguments& a) {
  Ref handled = handled_exception(e, a);
  if (handled == Py_None) return Ref::steal(PyTuple_Pack(3, Py_None, Py_None, Py_None));
  return Ref::steal(PyTuple_Pack(3, reinterpret_cast<PyObject*>(Py_TYPE(handled.get())), handled.get(),
                                 unknown_traceback()));
}

Ref annotate(Evaluator& e, Arguments& arguments) {
  if (arguments.positional.size() != 2 || !arguments.keywords.empty()) e.stop("calls torch.jit.annotate()");
  return arguments.positional[1];
}

Ref print_text(Evaluator& e, Arguments&) {
  e.stop("calls print()");
}

Ref graph_break(Evaluator& e, Arguments&) {
  e.stop("calls oxyfuel.graph_break()");
}

// It says where another compiler is to end a graph.
Ref foreign_graph_break(Evaluator&, Arguments&) {
  return Ref::borrow(Py_None);
}

// Which distributions are installed in the folders of sys.path does not change while a program runs.
Ref installed_version(Evaluator& e, Arguments& a) {
  expect(e, a, "importlib.metadata.version", 1, 1);
  if (!PyUnicode_CheckExact(arg(a, 0))) e.stop("calls importlib.metadata.version()");
  const Ref folders = e.get_attribute(e.pin(PyImport_AddModule("sys")).get(), interned("path").get());
  if (!folders || !e.drain(folders.get())) return {};
  return e.call_real(well_known("importlib.metadata", "version"), a);
}

// Modules are looked up where the program has loaded them, never imported, and what is found is only compared
// with what the program calls: these functions do not run.
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
    {"torch._dynamo.decorators", "graph_break", &foreign_graph_break},
    {"torch._utils", "is_compiling", &compiling},
    {"torch.jit", "is_tracing", &not_so},
    {"torch.jit", "is_scripting", &not_so},
    {"torch.jit", "annotate", &annotate},
    {"oxyfuel", "is_compiling", &compiling},
    {"oxyfuel", "graph_break", &graph_break},
};

template <size_t N>
bool module_among(const std::array<std::string_view, N>& prefixes, std::string_view module) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](std::string_view prefix) {
    return module == prefix ||
           (module.size() > prefix.size() && module.starts_with(prefix) && module[prefix.size()] == '.');
  });
}

// Modules whose functions do what a compiler must not look into: a call of one ends the region, and it runs
// in eager as the program has it.
constexpr std::array<std::string_view, 22> kNotInlined = {"torch._dynamo",
                                                          "torch._inductor",
                                                          "torch._functorch",
                                                          "torch._higher_order_ops",
                                                          "torch._subclasses",
                                                          "torch._library",
                                                          "torch._ops",
                                                          "torch.fx",
                                                          "torch.jit",
                                                          "torch.autograd.function",
                                                          "torch.autograd.graph",
                                                          "torch.utils.data",
                                                          "torch.distributed",
                                                          "torch.random",
                                                          "torch.serialization",
                                                          "logging",
                                                          "warnings",
                                                          "threading",
                                                          "oxyfuel._api",
                                                          "oxyfuel._controls",
                                                          "torch.library",
                                                          "torch.utils._pytree"};

}  // namespace

BuiltinHandler find_builtin(PyObject* callable) {
  static std::unordered_map<PyObject*, BuiltinHandler> table;
  static std::vector<const BuiltinEntry*> missing = [] {
    std::vector<const BuiltinEntry*> all_entries;
    for (auto family : {object_builtins(), container_builtins(), iterator_builtins(), operator_builtins(),
                        torch_builtins(), autograd_builtins(), autocast_builtins(), function_builtins(),
                        checkpoint_builtins(), hook_builtins(), std::span<const BuiltinEntry>(kTable)})
      for (const BuiltinEntry& entry : family) all_entries.push_back(&entry);
    return all_entries;
  }();
  if (auto it = table.find(callable); it != table.end()) return it->second;
  const bool may_be_one = PyFunction_Check(callable) || PyCFunction_Check(callable) ||
                          PyType_Check(callable) || c_class_name(Py_TYPE(callable)) == "nanobind.nb_func";
  if (!missing.empty() && may_be_one) {
    // An entry whose module was not loaded so far may be what is asked for.
    std::erase_if(missing, [](const BuiltinEntry* entry) {
      PyObject* object = well_known(entry->module, entry->name);
      if (object) table.emplace(object, entry->handler);
      return object != nullptr;
    });
    if (auto it = table.find(callable); it != table.end()) return it->second;
  }
  return nullptr;
}

bool is_pure_builtin(PyObject* function) {
  static constexpr std::array<std::string_view, 6> kModules = {"math",  "cmath",     "_operator",
                                                               "_stat", "itertools", "_bisect"};
  static constexpr std::array<std::string_view, 8> kBuiltins = {"round", "divmod", "chr", "ord",
                                                                "bin",   "hex",    "oct", "ascii"};
  PyObject* self = PyCFunction_GET_SELF(function);
  if (!self || !PyModule_Check(self)) return false;
  const char* module = PyModule_GetName(self);
  if (!module) {
    PyErr_Clear();
    return false;
  }
  const std::string_view name = reinterpret_cast<PyCFunctionObject*>(function)->m_ml->ml_name;
  const bool calls_or_writes = name == "call" || name == "iconcat" || name.starts_with("insort");
  if (std::find(kModules.begin(), kModules.end(), module) != kModules.end()) return !calls_or_writes;
  return std::string_view(module) == "builtins" &&
         std::find(kBuiltins.begin(), kBuiltins.end(), name) != kBuiltins.end();
}

bool is_pure_type(PyTypeObject* type) {
  static constexpr std::array<std::string_view, 14> kNames = {"range",
                                                              "slice",
                                                              "complex",
                                                              "bytes",
                                                              "bytearray",
                                                              "torch.Size",
                                                              "torch.device",
                                                              "torch.finfo",
                                                              "torch.iinfo",
                                                              "itertools.count",
                                                              "datetime.timedelta",
                                                              "operator.itemgetter",
                                                              "operator.attrgetter",
                                                              "torch._C._InferenceMode"};
  return std::find(kNames.begin(), kNames.end(), c_class_name(type)) != kNames.end();
}

bool is_enum_class(PyObject* object) {
  PyObject* enum_type = well_known("enum", "EnumMeta");
  return enum_type && PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(enum_type));
}

namespace {

// torch.compile puts these over nn.Module's own __init__ and __setstate__, to know of modules made later.
PyObject* behind_module_tagging(PyFunctionObject* function) {
  auto* code = reinterpret_cast<PyCodeObject*>(function->func_code);
  const std::string_view name = PyUnicode_AsUTF8(code->co_qualname);
  const bool is_of_torch_compile =
      function->func_module && PyUnicode_Check(function->func_module) &&
      PyUnicode_CompareWithASCIIString(function->func_module, "torch._dynamo.mutation_guard") == 0;
  if (!is_of_torch_compile || !name.starts_with("install_generation_tagging_init.<locals>.patched_") ||
      !function->func_closure || PyTuple_GET_SIZE(function->func_closure) != 1)
    return nullptr;
  PyObject* original = PyCell_GET(PyTuple_GET_ITEM(function->func_closure, 0));
  return original && PyFunction_Check(original) ? original : nullptr;
}

}  // namespace

PyObject* behind_torch_compile(PyObject* function) {
  if (PyObject* original = behind_module_tagging(reinterpret_cast<PyFunctionObject*>(function)))
    return original;
  static constexpr std::array<std::string_view, 1> kModules = {"torch.optim"};
  auto* object = reinterpret_cast<PyFunctionObject*>(function);
  if (!object->func_dict) return nullptr;
  const bool is_disabled = PyDict_GetItemString(object->func_dict, "_torchdynamo_disable") != nullptr;
  // The second one becomes the first when it is called for the first time.
  const bool will_be =
      PyUnicode_CompareWithASCIIString(reinterpret_cast<PyCodeObject*>(object->func_code)->co_qualname,
                                       "_disable_dynamo.<locals>.inner") == 0;
  if (!is_disabled && !will_be) return nullptr;
  PyObject* original =
      PyDict_GetItemString(object->func_dict, is_disabled ? "_torchdynamo_orig_callable" : "__wrapped__");
  if (!original || !PyFunction_Check(original)) return nullptr;
  PyObject* module = reinterpret_cast<PyFunctionObject*>(original)->func_module;
  const char* text = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : nullptr;
  return text && module_among(kModules, text) ? original : nullptr;
}

const char* refusal_to_inline(PyObject* function) {
  PyObject* module = reinterpret_cast<PyFunctionObject*>(function)->func_module;
  const char* text = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : nullptr;
  if (!text) return nullptr;
  // Questions about the process.
  static constexpr std::array<std::string_view, 4> kAsked = {"is_available", "is_initialized", "WORLD",
                                                             "default_pg"};
  const char* name = PyUnicode_AsUTF8(reinterpret_cast<PyFunctionObject*>(function)->func_name);
  const bool is_asked = std::string_view(text).starts_with("torch.distributed") &&
                        std::ranges::find(kAsked, std::string_view(name)) != kAsked.end();
  if (!is_asked && module_among(kNotInlined, text)) return "functions of this module run in eager";
  return nullptr;
}

bool is_inlined(PyObject* callable) {
  return PyFunction_Check(callable) && !treatment_of(callable) && !find_builtin(callable) &&
         !python_form(callable) && !is_torch_function(callable) && !behind_torch_compile(callable) &&
         !refusal_to_inline(callable);
}

}  // namespace oxy::eval
