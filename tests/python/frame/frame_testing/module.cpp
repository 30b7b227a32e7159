// The extension module oxyfuel_frame_testing: the layers cpy, bytecode and hook as Python functions.
#include <Python.h>

#include <exception>
#include <span>
#include <utility>
#include <vector>

#include "base/config.h"
#include "bytecode/decode.h"
#include "bytecode/liveness.h"
#include "bytecode/operations.h"
#include "bytecode/table.h"
#include "cpy/dict.h"
#include "cpy/generator.h"
#include "cpy/object_dict.h"
#include "cpy/type.h"
#include "hook/hook.h"
#include "runners.h"

namespace oxy::frame_testing {
namespace {

using cpy::Ref;

// Never destroyed: the interpreter is gone when static objects are.
Ref& null_marker = *new Ref;
std::unique_ptr<hook::SegmentRunner>& runner = *new std::unique_ptr<hook::SegmentRunner>;

PyObject* raise(const std::exception& error) {
  PyErr_SetString(PyExc_RuntimeError, error.what());
  return nullptr;
}

bool append(const Ref& list, PyObject* item) {
  const Ref owned = Ref::steal(item);
  return owned && PyList_Append(list.get(), owned.get()) == 0;
}

PyObject* py_decode(PyObject*, PyObject* code) {
  if (!PyCode_Check(code)) return PyErr_Format(PyExc_TypeError, "a code object, please");
  try {
    const auto decoded = bytecode::decode(reinterpret_cast<PyCodeObject*>(code));
    const Ref instructions = Ref::steal(PyList_New(0));
    for (const bytecode::Instruction& i : decoded->instructions)
      if (!append(
              instructions,
              Py_BuildValue("{s:s,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:O}", "op", bytecode::name(i.op).data(), "raw",
                            int(i.raw), "arg", i.arg, "arg2", i.arg2, "offset", i.offset, "end", i.end,
                            "line", i.line, "at", i.at, "continues", i.continues ? Py_True : Py_False)))
        return nullptr;
    const Ref table = Ref::steal(PyList_New(0));
    for (const bytecode::ExceptionEntry& e : decoded->exception_table)
      if (!append(table, Py_BuildValue("(iiiiO)", e.begin, e.end, e.target, e.depth,
                                       e.push_lasti ? Py_True : Py_False)))
        return nullptr;
    const Ref index = Ref::steal(PyList_New(0));
    for (const int32_t i : decoded->index_of_offset)
      if (!append(index, PyLong_FromLong(i))) return nullptr;
    return Py_BuildValue("(OOOi)", instructions.get(), table.get(), index.get(), decoded->entry);
  } catch (const std::exception& error) {
    return raise(error);
  }
}

const char* kind_of(bytecode::Form form) {
  switch (form) {
    case bytecode::Form::Nothing:
      return "nothing";
    case bytecode::Form::ReturnConstant:
      return "return_constant";
    case bytecode::Form::Intrinsic1:
      return "intrinsic";
    default:
      return "";
  }
}

bool append_rows(const Ref& rows, int version, std::span<const bytecode::TableEntry> entries) {
  for (const bytecode::TableEntry& entry : entries) {
    const bool has_second = entry.row.second != bytecode::Op::Unknown;
    if (!append(rows, Py_BuildValue("(isssz)", version, entry.name.data(), kind_of(entry.row.form),
                                    bytecode::name(entry.row.op).data(),
                                    has_second ? bytecode::name(entry.row.second).data() : nullptr)))
      return false;
  }
  return true;
}

// ([(version, opcode, kind, operation, second operation or None)], {operation: (is native, is interpreted)})
PyObject* py_instruction_tables(PyObject*, PyObject*) {
  const Ref rows = Ref::steal(PyList_New(0)), operations = Ref::steal(PyDict_New());
  if (!append_rows(rows, 311, bytecode::entries_311()) || !append_rows(rows, 312, bytecode::entries_312()) ||
      !append_rows(rows, 313, bytecode::entries_313()))
    return nullptr;
  for (const bytecode::Operation& operation : bytecode::all_operations()) {
    const Ref fate =
        Ref::steal(Py_BuildValue("(OO)", operation.is_native ? Py_True : Py_False,
                                 operation.symbolic != bytecode::SymbolicForm::None ? Py_True : Py_False));
    PyDict_SetItemString(operations.get(), operation.name.data(), fate.get());
  }
  return Py_BuildValue("(OO)", rows.get(), operations.get());
}

PyObject* py_live_locals(PyObject*, PyObject* argument) {
  auto* code = reinterpret_cast<PyCodeObject*>(argument);
  const int32_t locals = code->co_nlocalsplus;
  const Ref result = Ref::steal(PyList_New(0));
  for (const bytecode::LocalSet& set : bytecode::live_locals(*bytecode::decode(code), locals)) {
    const Ref members = Ref::steal(PySet_New(nullptr));
    for (int32_t i = 0; i < locals; ++i)
      if (set.contains(i)) PySet_Add(members.get(), Ref::steal(PyLong_FromLong(i)).get());
    if (!append(result, members.new_reference())) return nullptr;
  }
  return Py_NewRef(result.get());
}

PyObject* py_dict_version(PyObject*, PyObject* dict) {
  return PyLong_FromUnsignedLongLong(cpy::dict_version(dict));
}

PyObject* py_type_version(PyObject*, PyObject* type) {
  return PyLong_FromUnsignedLong(cpy::type_version(reinterpret_cast<PyTypeObject*>(type)));
}

PyObject* py_assign_type_version(PyObject*, PyObject* type) {
  return PyLong_FromUnsignedLong(cpy::assign_type_version(reinterpret_cast<PyTypeObject*>(type)));
}

PyObject* py_instance_value(PyObject*, PyObject* arguments) {
  PyObject *object = nullptr, *name = nullptr;
  if (!PyArg_ParseTuple(arguments, "OU", &object, &name)) return nullptr;
  PyObject* value = cpy::instance_value(object, name);
  return Py_NewRef(value != nullptr ? value : null_marker.get());
}

PyObject* py_has_dict(PyObject*, PyObject* object) {
  return PyBool_FromLong(cpy::existing_dict(object) != nullptr);
}

PyObject* py_has_inline_values(PyObject*, PyObject* object) {
  return PyBool_FromLong(bool(cpy::inline_values(object)));
}

PyObject* py_call(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  if (count < 1) return PyErr_Format(PyExc_TypeError, "call(function, ...)");
  return hook::call_with_hook(args[0], args + 1, size_t(count - 1) | PY_VECTORCALL_ARGUMENTS_OFFSET, names);
}

PyObject* py_adopt(PyObject*, PyObject* generator) {
  hook::adopt(generator, nullptr);
  return Py_NewRef(generator);
}

// A generator in the state of another, which must be suspended or not started.
PyObject* py_copy_generator(PyObject*, PyObject* generator) {
  const cpy::Frame frame = cpy::generator_frame(generator);
  const Ref delegate = Ref::steal(PyObject_GetAttrString(generator, "gi_yieldfrom"));
  const Ref is_suspended = Ref::steal(PyObject_GetAttrString(generator, "gi_suspended"));
  Ref copy = cpy::new_generator(frame.code(), frame.globals());
  if (!delegate || !is_suspended || !copy) return nullptr;
  std::vector<Ref> slots;
  for (int i = 0; i < frame.slot_count(); ++i) slots.push_back(Ref::borrow(frame.slots()[i]));
  const std::span<const Ref> all = slots;
  const auto locals = size_t(frame.code()->co_nlocalsplus);
  cpy::suspend(copy.get(), {.function = frame.function(),
                            .next = frame.next(),
                            .started = is_suspended == Py_True,
                            .delegates = !(delegate == Py_None),
                            .locals = all.first(locals),
                            .stack = all.subspan(locals),
                            .handled = reinterpret_cast<PyGenObject*>(generator)->gi_exc_state.exc_value});
  return copy.release();
}

PyObject* use(std::unique_ptr<hook::SegmentRunner> next) {
  hook::set_runner(next.get());
  runner = std::move(next);
  counts = {};
  Py_RETURN_NONE;
}

PyObject* py_use_breaks(PyObject*, PyObject* wanted) {
  return use(make_break_runner(Ref::borrow(wanted)));
}

PyObject* py_use_random(PyObject*, PyObject* arguments) {
  PyObject* wanted = nullptr;
  unsigned seed = 0, period = 0;
  if (!PyArg_ParseTuple(arguments, "OII", &wanted, &seed, &period)) return nullptr;
  return use(make_random_runner(Ref::borrow(wanted), seed, period));
}

PyObject* py_use_script(PyObject*, PyObject* arguments) {
  PyObject *wanted = nullptr, *function = nullptr;
  if (!PyArg_ParseTuple(arguments, "OO", &wanted, &function)) return nullptr;
  return use(make_script_runner(Ref::borrow(wanted), Ref::borrow(function), null_marker));
}

PyObject* py_use_none(PyObject*, PyObject*) {
  return use(nullptr);
}

PyObject* py_set_strict(PyObject*, PyObject* on) {
  set_strict(PyObject_IsTrue(on));
  Py_RETURN_NONE;
}

PyObject* py_counts(PyObject*, PyObject*) {
  return Py_BuildValue("(ll)", counts.frames, counts.segments);
}

PyObject* py_is_installed(PyObject*, PyObject*) {
  return PyBool_FromLong(hook::is_installed());
}

// Another tool's hook, which ours must chain to.
long foreign_frames = 0;
PyObject* foreign_hook(PyThreadState* thread, _PyInterpreterFrame* frame, int throw_flag) {
  ++foreign_frames;
  return _PyEval_EvalFrameDefault(thread, frame, throw_flag);
}

PyObject* py_set_foreign_hook(PyObject*, PyObject* on) {
  const bool install = PyObject_IsTrue(on);
  _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(),
                                       install ? foreign_hook : _PyEval_EvalFrameDefault);
  return PyLong_FromLong(std::exchange(foreign_frames, 0));
}

PyObject* py_foreign_frames(PyObject*, PyObject*) {
  return PyLong_FromLong(foreign_frames);
}

PyMethodDef methods[] = {
    {"decode", py_decode, METH_O, nullptr},
    {"instruction_tables", py_instruction_tables, METH_NOARGS, nullptr},
    {"live_locals", py_live_locals, METH_O, nullptr},
    {"dict_version", py_dict_version, METH_O, nullptr},
    {"type_version", py_type_version, METH_O, nullptr},
    {"assign_type_version", py_assign_type_version, METH_O, nullptr},
    {"instance_value", py_instance_value, METH_VARARGS, nullptr},
    {"has_dict", py_has_dict, METH_O, nullptr},
    {"has_inline_values", py_has_inline_values, METH_O, nullptr},
    {"copy_generator", py_copy_generator, METH_O, nullptr},
    {"adopt", py_adopt, METH_O, nullptr},
    {"call", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(py_call)),
     METH_FASTCALL | METH_KEYWORDS, nullptr},
    {"use_breaks", py_use_breaks, METH_O, nullptr},
    {"use_random", py_use_random, METH_VARARGS, nullptr},
    {"use_script", py_use_script, METH_VARARGS, nullptr},
    {"use_none", py_use_none, METH_NOARGS, nullptr},
    {"set_strict", py_set_strict, METH_O, nullptr},
    {"counts", py_counts, METH_NOARGS, nullptr},
    {"is_installed", py_is_installed, METH_NOARGS, nullptr},
    {"set_foreign_hook", py_set_foreign_hook, METH_O, nullptr},
    {"foreign_frames", py_foreign_frames, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "oxyfuel_frame_testing", nullptr, -1, methods};

}  // namespace
}  // namespace oxy::frame_testing

PyMODINIT_FUNC PyInit_oxyfuel_frame_testing() {
  using namespace oxy::frame_testing;
  PyObject* module = PyModule_Create(&definition);
  if (module == nullptr) return nullptr;
  null_marker = Ref::steal(PyUnicode_FromString("<null>"));
  PyModule_AddObjectRef(module, "null", null_marker.get());
  return module;
}
