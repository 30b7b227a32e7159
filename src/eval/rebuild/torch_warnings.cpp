#include "eval/rebuild/torch_warnings.h"

#include <utility>

#include "eval/python/objects.h"

namespace oxy::eval {
namespace {

constexpr int kMostCaptures = 3;  // of a region whose warnings have another text each time

thread_local std::vector<Ref>* collecting = nullptr;

// The replaced state of the module `warnings`. The GIL guards it.
struct Installed {
  int users = 0;
  Ref filters;  // those of the module `warnings`
  Ref entry;    // its first: every warning is shown
  Ref show;     // its _showwarnmsg()
};

Installed& installed() {
  static Installed* const state = new Installed;  // outlives CPython
  return *state;
}

PyObject* show_or_keep(PyObject*, PyObject* message) {
  if (collecting == nullptr) return PyObject_CallOneArg(installed().show.get(), message);
  collecting->push_back(Ref::borrow(message));
  Py_RETURN_NONE;
}

PyObject* warnings_dict() {
  return PyModule_GetDict(well_known("warnings", ""));
}

void install() {
  Installed& state = installed();
  if (state.users++ > 0) return;
  static PyMethodDef method = {"show_or_keep", &show_or_keep, METH_O, nullptr};
  static PyObject* function = nullptr;
  cpy::made_once(function, [] { return PyCFunction_New(&method, nullptr); });
  PyObject* const module = warnings_dict();
  state.filters = Ref::borrow(PyDict_GetItemString(module, "filters"));
  state.show = Ref::borrow(PyDict_GetItemString(module, "_showwarnmsg"));
  if (state.show) PyDict_SetItemString(module, "_showwarnmsg", function);
  if (!state.filters || !PyList_Check(state.filters.get())) return;
  state.entry = Ref::steal(Py_BuildValue("(sOOOi)", "always", Py_None, PyExc_Warning, Py_None, 0));
  PyList_Insert(state.filters.get(), 0, state.entry.get());
}

void uninstall() {
  Installed& state = installed();
  if (--state.users > 0) return;
  if (state.show) PyDict_SetItemString(warnings_dict(), "_showwarnmsg", state.show.get());
  for (Py_ssize_t i = 0; state.entry && i < PyList_GET_SIZE(state.filters.get()); ++i)
    if (state.entry == PyList_GET_ITEM(state.filters.get(), i)) {
      PyList_SetSlice(state.filters.get(), i, i + 1, nullptr);
      break;
    }
  state.filters.reset();
  state.entry.reset();
  state.show.reset();
}

// The texts of the warnings that captures of this process have met.
std::set<std::string>& met() {
  static auto* const texts = new std::set<std::string>;
  return *texts;
}

}  // namespace

CollectedWarnings::CollectedWarnings() : outer_(std::exchange(collecting, &messages_)) {
  install();
}

CollectedWarnings::~CollectedWarnings() {
  collecting = outer_;
  const cpy::SavedError saved;
  uninstall();
}

bool PendingWarnings::note(PyObject* message, PyObject* category, WarningPlace place) {
  const Ref text = Ref::steal(PyObject_Str(message));
  const char* utf8 = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  PyErr_Clear();
  std::string key =
      std::string(reinterpret_cast<PyTypeObject*>(category)->tp_name) + ": " + (utf8 ? utf8 : "");
  if (!met().insert(key).second) {
    std::erase_if(pending_, [&](const Pending& pending) { return pending.key == key; });
    return true;
  }
  pending_.push_back({std::move(key), Ref::borrow(message), Ref::borrow(category), std::move(place)});
  has_new_ = true;
  return false;
}

bool PendingWarnings::captures_again() {
  return std::exchange(has_new_, false) && ++captures_ < kMostCaptures;
}

bool PendingWarnings::show() {
  for (const Pending& pending : std::exchange(pending_, {})) {
    PyObject* const globals = pending.place.globals.get();
    PyObject* registry = nullptr;
    Ref module;
    if (globals) {
      registry =
          PyDict_SetDefault(globals, interned("__warningregistry__").get(), Ref::steal(PyDict_New()).get());
      module = Ref::borrow(PyDict_GetItemString(globals, "__name__"));
    }
    if (PyErr_WarnExplicitObject(pending.category.get(), pending.message.get(), pending.place.filename.get(),
                                 pending.place.line, module.get(), registry) < 0)
      return false;
  }
  return true;
}

}  // namespace oxy::eval
