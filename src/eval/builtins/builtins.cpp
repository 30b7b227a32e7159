#include "eval/builtins/builtins.h"

#include <unordered_map>
#include <vector>

#include "eval/builtins/builtin_families.h"
#include "eval/python/objects.h"
#include "eval/treatment/inlined.h"
#include "eval/treatment/prelude.h"
#include "eval/treatment/treatment.h"

namespace oxy::eval {

BuiltinHandler find_builtin(PyObject* callable) {
  static std::unordered_map<PyObject*, BuiltinHandler> table;
  static std::vector<const BuiltinEntry*> missing = [] {
    std::vector<const BuiltinEntry*> all_entries;
    for (auto family : {object_builtins(), container_builtins(), iterator_builtins(), operator_builtins(),
                        torch_builtins(), reduction_builtins(), number_form_builtins(), autograd_builtins(),
                        autocast_builtins(), function_builtins(), checkpoint_builtins(), hook_builtins(),
                        compiling_builtins(), stream_builtins()})
      for (const BuiltinEntry& entry : family) all_entries.push_back(&entry);
    return all_entries;
  }();
  if (auto it = table.find(callable); it != table.end()) return it->second;
  const bool may_be_one = PyFunction_Check(callable) || PyCFunction_Check(callable) ||
                          PyType_Check(callable) || Py_TYPE(callable) == &PyMethodDescr_Type ||
                          c_class_name(Py_TYPE(callable)) == "nanobind.nb_func";
  if (!missing.empty() && may_be_one) {
    // The module of an entry may have been loaded since the last look-up.
    std::erase_if(missing, [](const BuiltinEntry* entry) {
      PyObject* object = entry->module == nullptr ? prelude_function(entry->name).get()
                                                  : well_known(entry->module, entry->name);
      if (object) table.emplace(object, entry->handler);
      return object != nullptr;
    });
    if (auto it = table.find(callable); it != table.end()) return it->second;
  }
  return nullptr;
}

bool is_inlined(PyObject* callable) {
  return PyFunction_Check(callable) && !treatment_of(callable) && !find_builtin(callable) &&
         !python_form(callable) && !is_torch_function(callable) && !behind_torch_compile(callable) &&
         !refusal_to_inline(callable);
}

}  // namespace oxy::eval
