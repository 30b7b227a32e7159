#include "eval/methods/partial.h"

#include <algorithm>

#include "eval/externals/external_containers.h"
#include "eval/objects/attributes.h"
#include "eval/objects/taking_items.h"
#include "eval/python/objects.h"

namespace oxy::eval {
using cpy::Ref;

bool is_partial(PyObject* object) {
  return reinterpret_cast<PyObject*>(Py_TYPE(object)) == well_known("functools", "partial");
}

std::optional<OpenedPartial> opened_partial(Interpreter& interpreter, PyObject* partial,
                                            Arguments arguments) {
  const auto member = [&](const char* name) {
    const Ref descriptor = Ref::borrow(_PyType_Lookup(Py_TYPE(partial), interned(name).get()));
    return bind_descriptor(interpreter, descriptor.get(), partial, Py_TYPE(partial));
  };
  OpenedPartial opened{.function = member("func"), .arguments = {}};
  const Ref positional = member("args"), keywords = member("keywords");
  if (!opened.function || !positional || !keywords) return std::nullopt;
  const Ref items = drain(interpreter, positional.get());
  const Ref dict = materialize(interpreter, keywords.get());
  Arguments& all = opened.arguments;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i)
    all.positional.push_back(Ref::borrow(PyList_GET_ITEM(items.get(), i)));
  for (Ref& value : arguments.positional) all.positional.push_back(std::move(value));
  PyObject *key = nullptr, *value = nullptr;
  Py_ssize_t position = 0;
  // A keyword that the call gives again keeps its place in the order.
  while (PyDict_Next(dict.get(), &position, &key, &value)) {
    const auto given = std::ranges::find_if(
        arguments.keywords, [&](const auto& k) { return PyUnicode_Compare(k.first.get(), key) == 0; });
    Ref chosen = Ref::borrow(value);
    if (given != arguments.keywords.end()) {
      chosen = std::move(given->second);
      arguments.keywords.erase(given);
    }
    all.keywords.emplace_back(Ref::borrow(key), std::move(chosen));
  }
  for (auto& keyword : arguments.keywords) all.keywords.push_back(std::move(keyword));
  return opened;
}

}  // namespace oxy::eval
