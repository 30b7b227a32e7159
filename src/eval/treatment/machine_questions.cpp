#include "eval/treatment/machine_questions.h"

#include <array>
#include <unordered_set>

namespace oxy::eval {

namespace {

struct Place {
  const char* module;
  const char* name;
};

constexpr auto kQuestions = std::to_array<Place>({
    {"torch.cuda", "is_available"},
    {"torch.cuda", "device_count"},
    {"torch.cuda", "is_bf16_supported"},
    {"torch.cuda", "is_tf32_supported"},
    {"torch.cuda", "get_device_capability"},
    {"torch.cuda", "get_device_name"},
    {"torch.cuda", "get_arch_list"},
    {"torch.cuda.amp.common", "amp_definitely_not_available"},
    {"torch.accelerator", "is_available"},
    {"torch.accelerator", "device_count"},
    {"torch.accelerator", "current_accelerator"},
});

// Null for what the program has put there instead.
PyObject* function_at(const Place& place) {
  PyObject* const module = PyDict_GetItemString(PyImport_GetModuleDict(), place.module);
  PyObject* const dict = module && PyModule_Check(module) ? PyModule_GetDict(module) : nullptr;
  PyObject* const found = dict ? PyDict_GetItemString(dict, place.name) : nullptr;
  if (!found || !PyFunction_Check(found)) return nullptr;
  PyObject* const own = reinterpret_cast<PyFunctionObject*>(found)->func_module;
  const bool is_torchs =
      own && PyUnicode_Check(own) && PyUnicode_CompareWithASCIIString(own, place.module) == 0;
  return is_torchs ? found : nullptr;
}

// The code of these functions, which lives as long as PyTorch's modules.
const std::unordered_set<PyObject*>& codes() {
  static const auto& found = *new std::unordered_set<PyObject*>([] {
    std::unordered_set<PyObject*> result;
    for (const Place& place : kQuestions)
      if (PyObject* const function = function_at(place)) {
        Py_INCREF(PyFunction_GET_CODE(function));
        result.insert(PyFunction_GET_CODE(function));
      }
    return result;
  }());
  return found;
}

}  // namespace

bool is_machine_question(PyObject* callable) {
  return PyFunction_Check(callable) && codes().contains(PyFunction_GET_CODE(callable));
}

}  // namespace oxy::eval
