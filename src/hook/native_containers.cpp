// Building, extending, unpacking and formatting.
#include <vector>

#include "cpy/ref.h"
#include "hook/native.h"

namespace oxy::hook {
namespace {

using bytecode::Instruction;
using bytecode::Op;
using cpy::Ref;

// Pushes a tuple or list whose `count` items, on top of the stack, move into it.
template <PyObject* (*make)(Py_ssize_t), void (*set)(PyObject*, Py_ssize_t, PyObject*)>
Outcome build_sequence(const Machine& machine, const Instruction& instruction) {
  PyObject* sequence = make(instruction.arg);
  if (sequence == nullptr) return Outcome::Raised;
  for (Py_ssize_t i = instruction.arg; i-- > 0;) set(sequence, i, machine.pop());
  machine.push(sequence);
  return Outcome::Next;
}

void set_tuple_item(PyObject* tuple, Py_ssize_t i, PyObject* item) {
  PyTuple_SET_ITEM(tuple, i, item);
}
void set_list_item(PyObject* list, Py_ssize_t i, PyObject* item) {
  PyList_SET_ITEM(list, i, item);
}

Outcome build_set(const Machine& machine, const Instruction& instruction) {
  Ref set = Ref::steal(PySet_New(nullptr));
  for (int i = instruction.arg; set && i > 0; --i)
    if (PySet_Add(set.get(), machine.peek(i)) < 0) set.reset();
  return replace(machine, instruction.arg, set.release());
}

Outcome build_map(const Machine& machine, const Instruction& instruction) {
  const int operands = 2 * instruction.arg;
  Ref map = Ref::steal(PyDict_New());
  for (int i = operands; map && i > 0; i -= 2)
    if (PyDict_SetItem(map.get(), machine.peek(i), machine.peek(i - 1)) < 0) map.reset();
  return replace(machine, operands, map.release());
}

Outcome build_const_key_map(const Machine& machine, const Instruction& instruction) {
  PyObject* keys = machine.peek(1);
  Ref map = Ref::steal(PyDict_New());
  for (int i = 0; map && i < instruction.arg; ++i)
    if (PyDict_SetItem(map.get(), PyTuple_GET_ITEM(keys, i), machine.peek(instruction.arg + 1 - i)) < 0)
      map.reset();
  return replace(machine, instruction.arg + 1, map.release());
}

Outcome build_string(const Machine& machine, const Instruction& instruction) {
  const Ref parts = Ref::steal(PyTuple_New(instruction.arg));
  const Ref empty = Ref::steal(PyUnicode_FromStringAndSize(nullptr, 0));
  if (!parts || !empty) return Outcome::Raised;
  for (int i = 0; i < instruction.arg; ++i)
    PyTuple_SET_ITEM(parts.get(), i, Py_NewRef(machine.peek(instruction.arg - i)));
  return replace(machine, instruction.arg, PyUnicode_Join(empty.get(), parts.get()));
}

Outcome build_slice(const Machine& machine, const Instruction& instruction) {
  const int operands = instruction.arg == 3 ? 3 : 2;
  PyObject* step = operands == 3 ? machine.peek(1) : nullptr;
  return replace(machine, operands, PySlice_New(machine.peek(operands), machine.peek(operands - 1), step));
}

bool is_iterable(PyObject* object) {
  return Py_TYPE(object)->tp_iter != nullptr || PySequence_Check(object);
}

// Ends an instruction that has added the operand on top to the container `arg` entries below it.
Outcome finish_add(const Machine& machine, int operands, int failed) {
  machine.drop(operands);
  return failed ? Outcome::Raised : Outcome::Next;
}

Outcome list_extend(const Machine& machine, const Instruction& instruction) {
  PyObject* iterable = machine.peek(1);
  if (!is_iterable(iterable)) return Outcome::Refused;  // CPython words the error
  static PyObject* extend = PyUnicode_InternFromString("extend");
  const Ref done = Ref::steal(PyObject_CallMethodOneArg(machine.peek(1 + instruction.arg), extend, iterable));
  return finish_add(machine, 1, !done);
}

Outcome set_update(const Machine& machine, const Instruction& instruction) {
  static PyObject* update = PyUnicode_InternFromString("update");
  PyObject* set = machine.peek(1 + instruction.arg);
  const Ref done = Ref::steal(PyObject_CallMethodOneArg(set, update, machine.peek(1)));
  return finish_add(machine, 1, !done);
}

Outcome dict_update(const Machine& machine, const Instruction& instruction) {
  if (!PyDict_Check(machine.peek(1))) return Outcome::Refused;
  return finish_add(machine, 1, PyDict_Update(machine.peek(1 + instruction.arg), machine.peek(1)));
}

// Merges keyword arguments. CPython raises the errors for a name that is given twice, or for an object that
// is no mapping.
Outcome dict_merge(const Machine& machine, const Instruction& instruction) {
  PyObject* update = machine.peek(1);
  PyObject* dict = machine.peek(1 + instruction.arg);
  if (!PyDict_CheckExact(update)) return Outcome::Refused;
  if (PyDict_GET_SIZE(dict) != 0) {
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t position = 0; PyDict_Next(update, &position, &key, &value);)
      if (!PyUnicode_CheckExact(key) || PyDict_GetItemWithError(dict, key) != nullptr || PyErr_Occurred()) {
        PyErr_Clear();
        return Outcome::Refused;
      }
  }
  return finish_add(machine, 1, PyDict_Update(dict, update));
}

Outcome list_append(const Machine& machine, const Instruction& instruction) {
  return finish_add(machine, 1, PyList_Append(machine.peek(1 + instruction.arg), machine.peek(1)));
}

Outcome set_add(const Machine& machine, const Instruction& instruction) {
  return finish_add(machine, 1, PySet_Add(machine.peek(1 + instruction.arg), machine.peek(1)));
}

Outcome map_add(const Machine& machine, const Instruction& instruction) {
  PyObject* map = machine.peek(2 + instruction.arg);
  return finish_add(machine, 2, PyDict_SetItem(map, machine.peek(2), machine.peek(1)));
}

Outcome list_to_tuple(const Machine& machine, const Instruction&) {
  return replace(machine, 1, PyList_AsTuple(machine.peek(1)));
}

// Items of an iterable for `before` targets, and with `starred` a list and `after` targets behind it. Empty
// with an error set when their number does not fit.
std::vector<Ref> unpack(PyObject* sequence, int before, bool starred, int after) {
  std::vector<Ref> items;
  const Ref iterator = Ref::steal(PyObject_GetIter(sequence));
  if (!iterator) return {};
  for (int i = 0; i < before; ++i) {
    Ref item = Ref::steal(PyIter_Next(iterator.get()));
    if (!item) {
      if (!PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "not enough values to unpack (expected %s%d, got %d)",
                     starred ? "at least " : "", before + after, i);
      return {};
    }
    items.push_back(std::move(item));
  }
  if (!starred) {
    const Ref surplus = Ref::steal(PyIter_Next(iterator.get()));
    if (surplus) PyErr_Format(PyExc_ValueError, "too many values to unpack (expected %d)", before);
    if (PyErr_Occurred()) return {};
    return items;
  }
  Ref rest = Ref::steal(PySequence_List(iterator.get()));
  if (!rest) return {};
  const Py_ssize_t kept = PyList_GET_SIZE(rest.get()) - after;
  if (kept < 0) {
    PyErr_Format(PyExc_ValueError, "not enough values to unpack (expected at least %d, got %zd)",
                 before + after, before + kept + after);
    return {};
  }
  std::vector<Ref> last;
  for (Py_ssize_t i = kept; i < kept + after; ++i)
    last.push_back(Ref::borrow(PyList_GET_ITEM(rest.get(), i)));
  if (PyList_SetSlice(rest.get(), kept, kept + after, nullptr) < 0) return {};
  items.push_back(std::move(rest));
  for (Ref& item : last) items.push_back(std::move(item));
  return items;
}

Outcome unpack_onto(const Machine& machine, int before, bool starred, int after) {
  PyObject* sequence = machine.peek(1);
  if (!is_iterable(sequence)) return Outcome::Refused;
  std::vector<Ref> items = unpack(sequence, before, starred, after);
  machine.drop(1);
  if (PyErr_Occurred()) return Outcome::Raised;
  for (size_t i = items.size(); i-- > 0;) machine.push(items[i].release());
  return Outcome::Next;
}

Outcome unpack_sequence(const Machine& machine, const Instruction& instruction) {
  return unpack_onto(machine, instruction.arg, false, 0);
}

Outcome unpack_ex(const Machine& machine, const Instruction& instruction) {
  return unpack_onto(machine, instruction.arg, true, instruction.arg2);
}

// conversion: 0 none, 1 str, 2 repr, 3 ascii.
Ref converted(PyObject* value, int conversion) {
  switch (conversion) {
    case 1:
      return Ref::steal(PyObject_Str(value));
    case 2:
      return Ref::steal(PyObject_Repr(value));
    case 3:
      return Ref::steal(PyObject_ASCII(value));
    default:
      return Ref::borrow(value);
  }
}

Outcome format_value(const Machine& machine, const Instruction& instruction) {
  PyObject* specification = instruction.arg2 ? machine.peek(1) : nullptr;
  Ref value = converted(machine.peek(1 + instruction.arg2), instruction.arg);
  if (value && (specification != nullptr || !PyUnicode_CheckExact(value.get())))
    value = Ref::steal(PyObject_Format(value.get(), specification));
  return replace(machine, 1 + instruction.arg2, value.release());
}

Outcome convert_value(const Machine& machine, const Instruction& instruction) {
  return replace(machine, 1, converted(machine.peek(1), instruction.arg).release());
}

constexpr NativeEntry kEntries[] = {
    {Op::BuildTuple, build_sequence<PyTuple_New, set_tuple_item>},
    {Op::BuildList, build_sequence<PyList_New, set_list_item>},
    {Op::BuildSet, build_set},
    {Op::BuildMap, build_map},
    {Op::BuildConstKeyMap, build_const_key_map},
    {Op::BuildString, build_string},
    {Op::BuildSlice, build_slice},
    {Op::ListExtend, list_extend},
    {Op::SetUpdate, set_update},
    {Op::DictUpdate, dict_update},
    {Op::DictMerge, dict_merge},
    {Op::ListAppend, list_append},
    {Op::SetAdd, set_add},
    {Op::MapAdd, map_add},
    {Op::ListToTuple, list_to_tuple},
    {Op::UnpackSequence, unpack_sequence},
    {Op::UnpackEx, unpack_ex},
    {Op::FormatValue, format_value},
    {Op::ConvertValue, convert_value},
};

}  // namespace

std::span<const NativeEntry> native_containers() {
  return kEntries;
}

}  // namespace oxy::hook
