#include "eval/treatment/pure.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "eval/python/objects.h"

namespace oxy::eval {

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

}  // namespace oxy::eval
