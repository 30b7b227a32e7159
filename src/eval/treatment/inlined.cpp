#include "eval/treatment/inlined.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace oxy::eval {

namespace {

template <size_t N>
bool module_among(const std::array<std::string_view, N>& prefixes, std::string_view module) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](std::string_view prefix) {
    return module == prefix ||
           (module.size() > prefix.size() && module.starts_with(prefix) && module[prefix.size()] == '.');
  });
}

// Modules whose functions a capture must not look into. A call of one is a break, so it runs in eager.
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

// The function behind one that torch.compile puts over nn.Module.__init__ or __setstate__, to hear of new
// modules.
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
  // A function with this qualified name becomes a disabled one when it is called for the first time.
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
  // Functions that only ask something of the process. They are inlined.
  static constexpr std::array<std::string_view, 4> kAsked = {"is_available", "is_initialized", "WORLD",
                                                             "default_pg"};
  const char* name = PyUnicode_AsUTF8(reinterpret_cast<PyFunctionObject*>(function)->func_name);
  const bool is_asked = std::string_view(text).starts_with("torch.distributed") &&
                        std::ranges::find(kAsked, std::string_view(name)) != kAsked.end();
  if (!is_asked && module_among(kNotInlined, text)) return "functions of this module run in eager";
  return nullptr;
}

}  // namespace oxy::eval
