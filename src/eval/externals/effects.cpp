// Writes to attributes, cells and globals of external objects: they go to shadows.
#include "eval/externals/effects.h"

#include <fmt/format.h>

#include <algorithm>

#include "eval/externals/external_containers.h"
#include "eval/numbers/varying_number.h"
#include "eval/python/objects.h"
#include "eval/state/interpreter.h"
#include "guards/constants.h"

namespace oxy::eval {

void require_open_effects(Interpreter& interpreter) {
  if (interpreter.shadows.closed_by)
    interpreter.stop(fmt::format("{} that changes objects", interpreter.shadows.closed_by));
}

void record_attribute_effect(Interpreter& interpreter, PyObject* object, PyObject* name, PyObject* value) {
  require_open_effects(interpreter);
  Shadow& s = interpreter.shadows.of(object);
  if (!s.copy) {
    s.write(name, value);
    return;
  }
  s.written = true;
  if (value)
    PyDict_SetItem(s.copy.get(), name, value);
  else if (PyDict_Contains(s.copy.get(), name) == 1)
    PyDict_DelItem(s.copy.get(), name);
}

std::optional<Ref> attribute_effect(Interpreter& interpreter, PyObject* object, PyObject* name) {
  Shadow* s = interpreter.shadows.find(object);
  if (!s) return std::nullopt;
  if (s->copy) return Ref::borrow(PyDict_GetItem(s->copy.get(), name));
  if (auto written = s->find(name)) return written;
  return s->emptied ? std::optional<Ref>(Ref()) : std::nullopt;
}

void record_global_effect(Interpreter& interpreter, PyObject* globals, PyObject* name, PyObject* value) {
  interpreter.externals.sources.emplace(globals, interpreter.guards().pinned(globals));
  record_attribute_effect(interpreter, globals, name, value);
}

}  // namespace oxy::eval
