#include "eval/treatment/treatment.h"

#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "cpy/ref.h"
#include "eval/treatment/machine_questions.h"

namespace oxy::eval {
namespace {

using cpy::Ref;

struct Mark {
  Ref reference;  // weak: a new object at the address of a dead one is not marked
  Treatment treatment;
};

// Never destroyed: CPython is gone when statics die.
std::unordered_map<PyObject*, Mark>& marks() {
  static auto& all = *new std::unordered_map<PyObject*, Mark>;
  return all;
}

bool is_alive(const Mark& mark) {
  return Ref::steal(PyObject_CallNoArgs(mark.reference.get())) != Py_None;
}

const Treatment* find(PyObject* object) {
  const auto it = marks().find(object);
  return it != marks().end() && is_alive(it->second) ? &it->second.treatment : nullptr;
}

// Callables may be marked and dropped again and again.
void forget_the_dead() {
  static size_t next_size = 64;
  if (marks().size() < next_size) return;
  std::erase_if(marks(), [](const auto& mark) { return !is_alive(mark.second); });
  next_size = 2 * marks().size() + 64;
}

}  // namespace

void set_treatment(PyObject* object, Treatment treatment) {
  Ref reference = Ref::steal(PyWeakref_NewRef(object, nullptr));
  if (!reference) {
    PyErr_Clear();
    throw UserError(std::string("a callable of type ") + Py_TYPE(object)->tp_name +
                    " cannot be marked: wrap it in a function");
  }
  forget_the_dead();
  marks()[object] = {std::move(reference), std::move(treatment)};
}

namespace {

const Treatment* mark_of(PyObject* callable) {
  if (marks().empty()) return nullptr;
  if (const Treatment* treatment = find(callable)) return treatment;
  return PyFunction_Check(callable) ? find(PyFunction_GET_CODE(callable)) : nullptr;
}

}  // namespace

const Treatment* treatment_of(PyObject* callable) {
  static const Treatment constant = {.kind = TreatmentKind::Constant, .reason = ""};
  if (const Treatment* treatment = mark_of(callable)) return treatment;
  return is_machine_question(callable) ? &constant : nullptr;
}

}  // namespace oxy::eval
