// Globals, builtins, cells, super() and imports.
#include "eval/machine/step_names.h"

#include <fmt/format.h>

#include "eval/externals/admission.h"
#include "eval/externals/effects.h"
#include "eval/externals/variables.h"
#include "eval/objects/attribute_writes.h"
#include "eval/python/objects.h"
#include "eval/python/pending_error.h"
#include "eval/state/evaluation.h"
#include "eval/state/interpreter.h"
#include "eval/state/stack.h"

namespace oxy::eval {

using bytecode::Instruction;
using bytecode::Op;
using guards::CheckKind;

namespace {

// Sets a NameError with its attribute `name`.
void name_error(const char* text, PyObject* name) {
  PyErr_Format(PyExc_NameError, text, name);
  PendingError pending;
  PyObject_SetAttrString(pending.value(), "name", name);
}

Ref load_global(Interpreter& interpreter, Frame& frame, PyObject* name) {
  PyObject* globals = frame.globals.get();
  if (auto written = attribute_effect(interpreter, globals, name)) {
    if (*written) return *written;
  } else {
    const SourceId source = interpreter.guards().pinned(globals);
    if (PyObject* value = PyDict_GetItemWithError(globals, name))
      return admit(interpreter, value, interpreter.guards().dict_item(source, name));
    interpreter.guards().require(source, CheckKind::Absent, name);
  }
  PyObject* builtins = frame.builtins.get();
  if (PyObject* value = PyDict_GetItemWithError(builtins, name))
    return admit(interpreter, value,
                 interpreter.guards().dict_item(interpreter.guards().pinned(builtins), name));
  name_error("name '%U' is not defined", name);
  return {};
}

// Stops if the program has replaced CPython's `__import__`.
void require_own_import(Interpreter& interpreter, Frame& frame) {
  PyObject* const builtins = frame.builtins.get();
  const Ref name = interned("__import__");
  PyObject* const import = PyDict_GetItemWithError(builtins, name.get());
  if (!import || !PyCFunction_Check(import))
    interpreter.stop("imports with an __import__ of the program's own");
  admit(interpreter, import,
        interpreter.guards().dict_item(interpreter.guards().pinned(builtins), name.get()));
}

}  // namespace

Flow step_names(Interpreter& interpreter, Frame& frame, const Instruction& in) {
  auto& stack = frame.stack;
  auto variable = [&]() -> Ref& { return local(interpreter, frame, in.arg); };
  auto push = [&](Ref value) {
    if (!value) return Flow::Raised;
    stack.push_back(std::move(value));
    return Flow::Next;
  };
  switch (in.op) {
    case Op::LoadGlobal: {
      Ref value = load_global(interpreter, frame, name_at(frame, in.arg));
      if (!value) return Flow::Raised;
      if (in.arg2)
        push_callable(frame, std::move(value));
      else
        stack.push_back(std::move(value));
      return Flow::Next;
    }
    case Op::StoreGlobal: {
      Ref value = pop(frame);
      record_global_effect(interpreter, frame.globals.get(), name_at(frame, in.arg), value.get());
      return Flow::Next;
    }
    case Op::DeleteGlobal: {
      PyObject* name = name_at(frame, in.arg);
      interpreter.externals.sources.emplace(frame.globals.get(),
                                            interpreter.guards().pinned(frame.globals.get()));
      if (!has_entry(interpreter, frame.globals.get(), name)) {
        name_error("name '%U' is not defined", name);
        return Flow::Raised;
      }
      record_global_effect(interpreter, frame.globals.get(), name, nullptr);
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
      if (Ref value = read_cell(interpreter, variable().get())) return push(std::move(value));
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
      if (interpreter.externals.is_external(cell))
        record_attribute_effect(interpreter, cell, interned(kCellContents).get(), value.get());
      else
        PyCell_Set(cell, value.get());
      return Flow::Next;
    }
    case Op::DeleteDeref:
      if (interpreter.externals.is_external(variable().get()))
        interpreter.stop("deletes a variable of an enclosing function");
      if (!PyCell_GET(variable().get())) interpreter.stop("deletes a variable that is not bound");
      PyCell_Set(variable().get(), nullptr);
      return Flow::Next;
    case Op::LoadSuperAttr:
    case Op::LoadSuperMethod: {
      Ref self = pop(frame), type = pop(frame), global_super = pop(frame);
      if (global_super != reinterpret_cast<PyObject*>(&PySuper_Type)) interpreter.stop("super was replaced");
      Ref super_object =
          Ref::steal(PyObject_CallFunctionObjArgs(global_super.get(), type.get(), self.get(), nullptr));
      if (!super_object) return Flow::Raised;
      Ref value = get_attribute(interpreter, super_object.get(), name_at(frame, in.arg));
      if (!value) return Flow::Raised;
      if (in.op == Op::LoadSuperMethod)
        push_callable(frame, std::move(value));
      else
        stack.push_back(std::move(value));
      return Flow::Next;
    }
    case Op::ImportName: {
      Ref from_list = pop(frame), level = pop(frame);
      require_own_import(interpreter, frame);
      PyObject* name = name_at(frame, in.arg);
      // Only modules that are loaded already: running a module has effects.
      Ref full = Ref::borrow(name);
      const long depth = PyLong_AsLong(level.get());
      if (depth > 0) {
        Ref package = Ref::borrow(PyDict_GetItemString(frame.globals.get(), "__package__"));
        if (!package || !PyUnicode_Check(package.get()))
          interpreter.stop("imports relative to an unknown package");
        std::string base = PyUnicode_AsUTF8(package.get());
        for (long i = 1; i < depth; ++i) base = base.substr(0, base.rfind('.'));
        const char* tail = PyUnicode_AsUTF8(name);
        if (tail && *tail) base += fmt::format(".{}", tail);
        full = Ref::steal(PyUnicode_FromString(base.c_str()));
      }
      Ref loaded = Ref::steal(PyImport_GetModule(full.get()));
      if (!loaded) {
        PyErr_Clear();
        interpreter.stop(fmt::format("imports module {}", PyUnicode_AsUTF8(full.get())),
                         "import it before the compiled function runs");
      }
      Ref module = Ref::steal(PyImport_ImportModuleLevelObject(name, frame.globals.get(), nullptr,
                                                               from_list.get(), static_cast<int>(depth)));
      if (!module) {
        PyErr_Clear();
        interpreter.stop(fmt::format("imports module {}", PyUnicode_AsUTF8(full.get())));
      }
      const guards::SourceId modules = interpreter.guards().pinned(PyImport_GetModuleDict());
      admit(interpreter, loaded.get(), interpreter.guards().dict_item(modules, full.get()));
      if (module != loaded)  // `import a.b.c` binds a
        if (PyObject* own_name = PyDict_GetItemString(PyModule_GetDict(module.get()), "__name__"))
          admit(interpreter, module.get(), interpreter.guards().dict_item(modules, own_name));
      return push(pin(interpreter, module.get()));
    }
    case Op::ImportFrom: {
      Ref value = get_attribute(interpreter, stack.back().get(), name_at(frame, in.arg));
      if (!value && PyErr_ExceptionMatches(PyExc_AttributeError)) {  // a submodule may be meant
        PyErr_Clear();
        interpreter.stop(
            fmt::format("imports {}, which the module lacks", PyUnicode_AsUTF8(name_at(frame, in.arg))));
      }
      return push(std::move(value));
    }
    case Op::LoadAssertionError:
      return push(Ref::borrow(PyExc_AssertionError));
    default:
      interpreter.stop(fmt::format("instruction {} is not captured", bytecode::name(in.op)));
  }
}

}  // namespace oxy::eval
