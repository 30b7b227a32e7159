#include "driver/compilation/graph_module.h"

#include <fmt/format.h>

#include <vector>

#include "base/error.h"

namespace oxy::driver {
namespace {

using cpy::Ref;
using eval::TorchArgument;
using eval::TorchArgumentKind;

// Throws Unsupported with the text of the Python error that is set as the reason.
[[noreturn]] void refuse() {
  Ref type, value, traceback;
  PyErr_Fetch(type.out(), value.out(), traceback.out());
  Ref text = value ? Ref::steal(PyObject_Str(value.get())) : Ref();
  const char* utf8 = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  PyErr_Clear();
  throw Unsupported(fmt::format("torch.fx cannot express a captured region: {}", utf8 ? utf8 : "?"));
}

Ref expect(PyObject* object) {
  if (!object) refuse();
  return Ref::steal(object);
}

// Whether a keyword can be written as `name=value` in a call.
bool can_be_written(PyObject* name) {
  if (PyUnicode_IsIdentifier(name) != 1) return false;
  const Ref keyword = expect(PyImport_ImportModule("keyword"));
  return expect(PyObject_CallMethod(keyword.get(), "iskeyword", "O", name)) == Py_False;
}

class GraphWriter {
 public:
  GraphWriter(const eval::TorchProgram& program, std::span<const std::string> names) : program_(program) {
    fx_ = expect(PyImport_ImportModule("torch.fx"));
    graph_ = expect(PyObject_CallMethod(fx_.get(), "Graph", nullptr));
    elements_ = expect(PyDict_New());
    for (const sym::Expr& symbol : program.symbols)
      integers_.emplace_back(symbol, placeholder(symbol.variable_name()));
    for (const std::string& name : names) inputs_.push_back(placeholder(name));
  }

  Ref write() {
    for (const eval::TorchCall& call : program_.calls) {
      Ref positional = sequence(call.positional, true);
      Ref keywords = expect(PyDict_New());
      for (const auto& [name, value] : call.keywords)
        if (!can_be_written(name.get()))
          throw Unsupported("a captured region gives a keyword argument whose name no Python code can write");
      for (const auto& [name, value] : call.keywords)
        if (PyDict_SetItem(keywords.get(), name.get(), argument(value).get()) < 0) refuse();
      calls_.push_back(
          expect(PyObject_CallMethod(graph_.get(), call.is_method ? "call_method" : "call_function", "OOO",
                                     call.target.get(), positional.get(), keywords.get())));
    }
    Ref outputs = expect(PyTuple_New(static_cast<Py_ssize_t>(program_.outputs.size())));
    for (size_t i = 0; i < program_.outputs.size(); ++i)
      PyTuple_SET_ITEM(outputs.get(), static_cast<Py_ssize_t>(i), node(program_.outputs[i]).release());
    expect(PyObject_CallMethod(graph_.get(), "output", "(O)", outputs.get()));
    expect(PyObject_CallMethod(graph_.get(), "lint", nullptr));
    Ref nn = expect(PyImport_ImportModule("torch.nn"));
    Ref root = expect(PyObject_CallMethod(nn.get(), "Module", nullptr));
    return expect(PyObject_CallMethod(fx_.get(), "GraphModule", "OO", root.get(), graph_.get()));
  }

 private:
  // torch.fx makes the node's name a valid one of its own. The parameter of the generated function has the
  // target for its name, as it was asked for.
  Ref placeholder(const std::string& name) {
    const char* wanted = name == "self" ? "self_" : name.c_str();  // `self` is the module itself
    Ref made = expect(PyObject_CallMethod(graph_.get(), "placeholder", "s", wanted));
    const Ref unique = expect(PyObject_GetAttrString(made.get(), "name"));
    if (PyObject_SetAttrString(made.get(), "target", unique.get()) < 0) refuse();
    return made;
  }

  Ref node(const eval::TorchValue& value) {
    const auto index = static_cast<size_t>(value.index);
    Ref current = value.is_input ? inputs_[index] : calls_[index];
    for (const Ref& key : value.path) {
      Ref place = expect(PyTuple_Pack(2, current.get(), key.get()));
      if (PyObject* known = PyDict_GetItemWithError(elements_.get(), place.get())) {
        current = Ref::borrow(known);
        continue;
      }
      if (PyErr_Occurred()) refuse();
      Ref module = expect(PyImport_ImportModule("operator"));
      Ref getitem = expect(PyObject_GetAttrString(module.get(), "getitem"));
      current = expect(PyObject_CallMethod(graph_.get(), "call_function", "OO", getitem.get(), place.get()));
      if (PyDict_SetItem(elements_.get(), place.get(), current.get()) < 0) refuse();
    }
    return current;
  }

  Ref sequence(const std::vector<TorchArgument>& items, bool is_tuple) {
    const auto size = static_cast<Py_ssize_t>(items.size());
    Ref result = expect(is_tuple ? PyTuple_New(size) : PyList_New(size));
    for (Py_ssize_t i = 0; i < size; ++i) {
      PyObject* item = argument(items[static_cast<size_t>(i)]).release();
      if (is_tuple)
        PyTuple_SET_ITEM(result.get(), i, item);
      else
        PyList_SET_ITEM(result.get(), i, item);
    }
    return result;
  }

  Ref call_function(const char* module, const char* name, const Ref& left, const Ref& right) {
    const Ref imported = expect(PyImport_ImportModule(module));
    const Ref function = expect(PyObject_GetAttrString(imported.get(), name));
    const Ref operands = expect(PyTuple_Pack(2, left.get(), right.get()));
    return expect(PyObject_CallMethod(graph_.get(), "call_function", "OO", function.get(), operands.get()));
  }

  // A Python int, or the node that calculates it.
  Ref integer(const sym::Expr& e) {
    if (e.is_constant()) return expect(PyLong_FromLongLong(e.constant()));
    for (const auto& [known, made] : integers_)
      if (known == e) return made;
    const auto [module, function] = function_of(e.kind());
    Ref result = integer(e.operands()[0]);
    for (const sym::Expr& operand : e.operands().subspan(1))
      result = call_function(module, function, result, integer(operand));
    integers_.emplace_back(e, result);
    return result;
  }

  static std::pair<const char*, const char*> function_of(sym::Kind kind) {
    switch (kind) {
      case sym::Kind::Sum:
        return {"operator", "add"};
      case sym::Kind::Product:
        return {"operator", "mul"};
      case sym::Kind::FloorDiv:
        return {"operator", "floordiv"};
      case sym::Kind::Mod:
        return {"operator", "mod"};
      case sym::Kind::Min:
        return {"builtins", "min"};
      case sym::Kind::Max:
        return {"builtins", "max"};
      case sym::Kind::Constant:
      case sym::Kind::Variable:
        break;
    }
    throw InternalError("an integer of a torch program is no input");
  }

  Ref argument(const TorchArgument& value) {
    switch (value.kind) {
      case TorchArgumentKind::Constant:
        return value.constant;
      case TorchArgumentKind::Integer:
        return integer(value.integer);
      case TorchArgumentKind::Tensor:
        return node(value.tensor);
      case TorchArgumentKind::Tuple:
        return sequence(value.items, true);
      case TorchArgumentKind::List:
        return sequence(value.items, false);
      case TorchArgumentKind::Dict: {
        Ref dict = expect(PyDict_New());
        for (size_t i = 0; i < value.keys.size(); ++i)
          if (PyDict_SetItem(dict.get(), value.keys[i].get(), argument(value.items[i]).get()) < 0) refuse();
        return dict;
      }
      case TorchArgumentKind::Slice: {
        Ref start = argument(value.items[0]), stop = argument(value.items[1]),
            step = argument(value.items[2]);
        return expect(PySlice_New(start.get(), stop.get(), step.get()));
      }
    }
    throw InternalError("an argument of no kind");
  }

  const eval::TorchProgram& program_;
  Ref fx_, graph_;
  std::vector<std::pair<sym::Expr, Ref>> integers_;  // symbols, and what is calculated of them
  Ref elements_;                                     // (node, key) → the node that takes the element
  std::vector<Ref> inputs_, calls_;
};

}  // namespace

Ref make_graph_module(const eval::TorchProgram& program, std::span<const std::string> names) {
  return GraphWriter(program, names).write();
}

}  // namespace oxy::driver
