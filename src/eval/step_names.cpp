// Globals, builtins, cells, super() and imports.
#include <fmt/format.h>

#include "eval/evaluator.h"
#include "eval/objects.h"
#include "eval/pending_error.h"
#include "eval/stack.h"

namespace oxy::eval {

using bytecode::Instruction;
using bytecode::Op;
using guards::CheckKind;

namespace {

// A NameError knows the name.
void name_error(const char* text, PyObject* name) {
  PyErr_Format(PyExc_NameError, text, name);
  PendingError pending;
  PyObject_SetAttrString(pending.value(), "name", name);
}

// What a write to a cell is known by, whatever the functions that share it call the variable.
constexpr const char* kCellContents = "cell_contents";

}  // namespace

Ref Evaluator::read_cell(PyObject* cell) {
  PyObject* const contents = PyCell_GET(cell);
  const SourceId source = source_of(cell);
  if (source == guards::kNoSource) return Ref::borrow(contents);
  if (auto written = attribute_effect(cell, interned(kCellContents).get())) return *written;
  const SourceId place = guards().derived(guards::SourceKind::CellContents, source);
  if (contents) return admit(contents, place);
  guards().require(place, CheckKind::Unbound, nullptr);
  return {};
}

Ref Evaluator::load_global(Frame& frame, PyObject* name) {
  PyObject* globals = frame.globals.get();
  if (auto written = attribute_effect(globals, name)) {
    if (*written) return *written;
  } else {
    const SourceId source = guards().pinned(globals);
    if (PyObject* value = PyDict_GetItemWithError(globals, name))
      return admit(value, guards().dict_item(source, name));
    guards().require(source, CheckKind::Absent, name);
  }
  PyObject* builtins = frame.builtins.get();
  if (PyObject* value = PyDict_GetItemWithError(builtins, name))
    return admit(value, guards().dict_item(guards().pinned(builtins), name));
  name_error("name '%U' is not defined", name);
  return {};
}

void Evaluator::require_own_import(Frame& frame) {
  PyObject* const builtins = frame.builtins.get();
  const Ref name = interned("__import__");
  PyObject* const import = PyDict_GetItemWithError(builtins, name.get());
  if (!import || !PyCFunction_Check(import)) stop("imports with an __import__ of the program's own");
  admit(import, guards().dict_item(guards().pinned(builtins), name.get()));
}

Flow Evaluator::step_names(Frame& frame, const Instruction& in) {
  auto& stack = frame.stack;
  auto variable = [&]() -> Ref& { return local(frame, in.arg); };
  auto push = [&](Ref value) {
    if (!value) return Flow::Raised;
    stack.push_back(std::move(value));
    return Flow::Next;
  };
  switch (in.op) {
    case Op::LoadGlobal: {
      Ref value = load_global(frame, name_at(frame, in.arg));
      if (!value) return Flow::Raised;
      if (in.arg2)
        push_callable(frame, std::move(value));
      else
        stack.push_back(std::move(value));
      return Flow::Next;
    }
    case Op::StoreGlobal: {
      Ref value = pop(frame);
      record_global_effect(frame.globals.get(), name_at(frame, in.arg), value.get());
      return Flow::Next;
    }
    case Op::DeleteGlobal: {
      PyObject* name = name_at(frame, in.arg);
      sources_.emplace(frame.globals.get(), guards().pinned(frame.globals.get()));
      if (!has_entry(frame.globals.get(), name)) {
        name_error("name '%U' is not defined", name);
        return Flow::Raised;
      }
      record_global_effect(frame.globals.get(), name, nullptr);
      return Flow::Next;
    }
    case Op::MakeCell:
      variable() = Ref::steal(PyCell_New(variable().get()));
      return variable() ? Flow::Next : Flow::Raised;
    case Op::CopyFreeVars: {
      PyObject* closure = PyFunction_GET_CLOSURE(frame.function.get());
      const size_t first = frame.locals.size() - static_cast<size_t>(in.arg);
      for (int32_t i = 0; i < in.arg; ++i)
        frame.locals[first + static_cast<size_t>(i)] = Ref::borrow(PyTuple_GET_ITEM(closure, i));
      return Flow::Next;
    }
    case Op::LoadClosure:
      return push(variable());
    case Op::LoadDeref:
    case Op::LoadClassDeref: {
      if (Ref value = read_cell(variable().get())) return push(std::move(value));
      PyObject* name = PyTuple_GET_ITEM(frame.pycode()->co_localsplusnames, in.arg);
      if (in.arg < frame.pycode()->co_nlocalsplus - frame.pycode()->co_nfreevars) {
        PyErr_Format(PyExc_UnboundLocalError,
                     "cannot access local variable '%U' where it is not associated with a value", name);
        return Flow::Raised;
      }
      name_error(
          "cannot access free variable '%U' where it is not associated with a value in enclosing scope",
          name);
      return Flow::Raised;
    }
    case Op::StoreDeref: {
      Ref value = pop(frame);
      PyObject* cell = variable().get();
      if (is_external(cell))
        record_attribute_effect(cell, interned(kCellContents).get(), value.get());
      else
        PyCell_Set(cell, value.get());
      return Flow::Next;
    }
    case Op::DeleteDeref:
      if (is_external(variable().get())) stop("deletes a variable of an enclosing function");
      if (!PyCell_GET(variable().get())) stop("deletes a variable that is not bound");
      PyCell_Set(variable().get(), nullptr);
      return Flow::Next;
    case Op::LoadSuperAttr:
    case Op::LoadSuperMethod: {
      Ref self = pop(frame), type = pop(frame), global_super = pop(frame);
      if (global_super != reinterpret_cast<PyObject*>(&PySuper_Type)) stop("super was replaced");
      Ref super_object =
          Ref::steal(PyObject_CallFunctionObjArgs(global_super.get(), type.get(), self.get(), nullptr));
      if (!super_object) return Flow::Raised;
      Ref value = get_attribute(super_object.get(), name_at(frame, in.arg));
      if (!value) return Flow::Raised;
      if (in.op == Op::LoadSuperMethod)
        push_callable(frame, std::move(value));
      else
        stack.push_back(std::move(value));
      return Flow::Next;
    }
    case Op::ImportName: {
      Ref from_list = pop(frame), level = pop(frame);
      require_own_import(frame);
      PyObject* name = name_at(frame, in.arg);
      // Only what is loaded already: running a module is a side effect.
      Ref full = Ref::borrow(name);
      const long depth = PyLong_AsLong(level.get());
      if (depth > 0) {
        Ref package = Ref::borrow(PyDict_GetItemString(frame.globals.get(), "__package__"));
        if (!package || !PyUnicode_Check(package.get())) stop("imports relative to an unknown package");
        std::string base = PyUnicode_AsUTF8(package.get());
        for (long i = 1; i < depth; ++i) base = base.substr(0, base.rfind('.'));
        const char* tail = PyUnicode_AsUTF8(name);
        if (tail && *tail) base += fmt::format(".{}", tail);
        full = Ref::steal(PyUnicode_FromString(base.c_str()));
      }
      Ref loaded = Ref::steal(PyImport_GetModule(full.get()));
      if (!loaded) {
        PyErr_Clear();
        stop(fmt::format("imports module {}", PyUnicode_AsUTF8(full.get())),
             "import it before the compiled function runs");
      }
      Ref module = Ref::steal(PyImport_ImportModuleLevelObject(name, frame.globals.get(), nullptr,
                                                               from_list.get(), static_cast<int>(depth)));
      if (!module) {
        PyErr_Clear();
        stop(fmt::format("imports module {}", PyUnicode_AsUTF8(full.get())));
      }
      const guards::SourceId modules = guards().pinned(PyImport_GetModuleDict());
      admit(loaded.get(), guards().dict_item(modules, full.get()));
      if (module != loaded)  // a.b.c without a list of names: what it binds is a
        if (PyObject* own_name = PyDict_GetItemString(PyModule_GetDict(module.get()), "__name__"))
          admit(module.get(), guards().dict_item(modules, own_name));
      return push(pin(module.get()));
    }
    case Op::ImportFrom: {
      Ref value = get_attribute(stack.back().get(), name_at(frame, in.arg));
      if (!value && PyErr_ExceptionMatches(PyExc_AttributeError)) {  // a submodule may be meant
        PyErr_Clear();
        stop(fmt::format("imports {}, which the module lacks", PyUnicode_AsUTF8(name_at(frame, in.arg))));
      }
      return push(std::move(value));
    }
    case Op::LoadAssertionError:
      return push(Ref::borrow(PyExc_AssertionError));
    default:
      stop(fmt::format("instruction {} is not captured", bytecode::name(in.op)));
  }
}

}  // namespace oxy::eval
