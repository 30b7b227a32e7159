// Comparisons. Constants and tensors are compared for real, objects by their methods in the order in which
// CPython asks them, containers item by item.
#include "eval/objects/comparisons.h"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "eval/externals/admission.h"
#include "eval/externals/c_calls.h"
#include "eval/externals/external_containers.h"
#include "eval/externals/hashing.h"
#include "eval/externals/identity.h"
#include "eval/externals/plain.h"
#include "eval/externals/type_lookup.h"
#include "eval/numbers/numpy_scalars.h"
#include "eval/numbers/varying_number.h"
#include "eval/objects/containers.h"
#include "eval/objects/operators.h"
#include "eval/python/objects.h"
#include "eval/state/evaluation.h"
#include "eval/state/interpreter.h"
#include "eval/torch/torch_call.h"
#include "guards/constants.h"

namespace oxy::eval {
namespace {

constexpr const char* kCompare[] = {"__lt__", "__le__", "__eq__", "__ne__", "__gt__", "__ge__"};
constexpr const char* kCompareSymbol[] = {"<", "<=", "==", "!=", ">", ">="};
constexpr int kReflected[] = {Py_GT, Py_GE, Py_EQ, Py_NE, Py_LT, Py_LE};

// Whether `!=` is answered by the operand's `==`: object.__ne__ inverts the answer of `__eq__`.
bool inverts_equality(Interpreter& interpreter, PyObject* operand, int operation) {
  return operation == Py_NE && !has_python_special(interpreter, operand, "__ne__") &&
         has_python_special(interpreter, operand, "__eq__") &&
         !is_overridden(Py_TYPE(operand), &PyBaseObject_Type, "__ne__");
}

// Whether the operand's class has Python code for the comparison.
bool has_own_comparison(Interpreter& interpreter, PyObject* operand, int operation) {
  return has_python_special(interpreter, operand, kCompare[operation]) ||
         inverts_equality(interpreter, operand, operation);
}

Ref ask(Interpreter& interpreter, PyObject* operand, const char* name, PyObject* other) {
  const Ref method = special_method(interpreter, operand, name);
  return method ? call_positional(interpreter, method.get(), {Ref::borrow(other)}) : Ref();
}

// object.__ne__. Precondition: the operand's class has Python code for `==`.
Ref ask_inverted_equality(Interpreter& interpreter, PyObject* operand, PyObject* other) {
  Ref answer = ask(interpreter, operand, "__eq__", other);
  if (!answer || answer == Py_NotImplemented) return answer;
  bool error = false;
  const bool equal = truth(interpreter, answer.get(), &error);
  return error ? Ref() : Ref::borrow(equal ? Py_False : Py_True);
}

// The answer of that code; NotImplemented if there is none. Null: an exception is set.
Ref ask_own_comparison(Interpreter& interpreter, PyObject* operand, int operation, PyObject* other) {
  if (inverts_equality(interpreter, operand, operation))
    return ask_inverted_equality(interpreter, operand, other);
  if (!has_python_special(interpreter, operand, kCompare[operation])) return Ref::borrow(Py_NotImplemented);
  return ask(interpreter, operand, kCompare[operation], other);
}

// Whether two dicts have equal values for the same keys, asked as CPython does; -1: an exception is set.
int same_entries(Interpreter& interpreter, PyObject* left, PyObject* right) {
  if (PyDict_GET_SIZE(left) != PyDict_GET_SIZE(right)) return 0;
  const Ref entries = Ref::steal(PyDict_Items(left));  // comparing values may change the dict
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(entries.get()); ++i) {
    PyObject* const entry = PyList_GET_ITEM(entries.get(), i);
    const Ref key = key_of(interpreter, PyTuple_GET_ITEM(entry, 0));
    const Ref other = Ref::borrow(PyDict_GetItemWithError(right, key.get()));
    if (!other) return PyErr_Occurred() ? -1 : 0;
    if (const int equal = is_or_equals(interpreter, PyTuple_GET_ITEM(entry, 1), other.get()); equal != 1)
      return equal;
  }
  return 1;
}

// The same for the items of two lists, or of two tuples. Comparing items may change the lists.
int same_items(Interpreter& interpreter, PyObject* left, PyObject* right) {
  const auto same_size = [&] { return PySequence_Fast_GET_SIZE(left) == PySequence_Fast_GET_SIZE(right); };
  if (!same_size()) return 0;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(left) && i < PySequence_Fast_GET_SIZE(right); ++i) {
    const Ref x = Ref::borrow(PySequence_Fast_GET_ITEM(left, i));
    const Ref y = Ref::borrow(PySequence_Fast_GET_ITEM(right, i));
    if (const int equal = is_or_equals(interpreter, x.get(), y.get()); equal != 1) return equal;
  }
  return same_size() ? 1 : 0;
}

// Whether C code that compares the container would come to an object with Python code for comparisons.
bool holds_own_comparison(Interpreter& interpreter, PyObject* container, int depth) {
  constexpr int kDeepest = 100;  // a container that contains itself reaches any depth
  if (depth == kDeepest) return true;
  const Ref shown = materialize(interpreter, container);
  const Ref items = PyDict_Check(shown.get()) ? Ref::steal(PyDict_Values(shown.get()))
                    : PyList_Check(shown.get()) || PyTuple_Check(shown.get()) ? shown
                                                                              : Ref::steal(PyTuple_New(0));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    PyObject* const item = PySequence_Fast_GET_ITEM(items.get(), i);
    if (guards::is_constant(item) || is_varying_number(item) || trace::is_trace_tensor(item)) continue;
    for (const char* name : kCompare)
      if (has_python_special(interpreter, item, name)) return true;
    if (is_builtin_container(item) && holds_own_comparison(interpreter, item, depth + 1)) return true;
  }
  return false;
}

// Whether the C code of the class of the first operand may have an answer.
bool may_compare_in_c(PyObject* first, PyObject* second) {
  const PyTypeObject* const own = native_base(Py_TYPE(first));
  if (own->tp_richcompare == PyBaseObject_Type.tp_richcompare || guards::is_constant(first)) return false;
  const PyTypeObject* const other = native_base(Py_TYPE(second));
  return other != &PyBaseObject_Type || !is_container(first);
}

Ref compare_deques(Interpreter& interpreter, PyObject* left, PyObject* right, int operation) {
  for (PyObject* operand : {left, right})
    if (has_python_special(interpreter, operand, "__iter__"))
      interpreter.stop("compares a deque that iterates in its own way");
  const Ref a = Ref::steal(PySequence_List(materialize(interpreter, left).get()));
  const Ref b = Ref::steal(PySequence_List(materialize(interpreter, right).get()));
  return compare(interpreter, a.get(), b.get(), operation);
}

Ref compare_containers(Interpreter& interpreter, PyObject* left, PyObject* right, int operation) {
  const Ref a = materialize(interpreter, left), b = materialize(interpreter, right);
  if (operation == Py_EQ || operation == Py_NE) {
    const bool sequences = (PyList_Check(a.get()) && PyList_Check(b.get())) ||
                           (PyTuple_Check(a.get()) && PyTuple_Check(b.get()));
    const bool dicts =
        PyDict_Check(a.get()) && PyDict_Check(b.get()) && !(PyODict_Check(left) && PyODict_Check(right));
    if (sequences || dicts) {
      const int equal =
          dicts ? same_entries(interpreter, a.get(), b.get()) : same_items(interpreter, a.get(), b.get());
      return equal < 0 ? Ref() : Ref::borrow((equal == 1) == (operation == Py_EQ) ? Py_True : Py_False);
    }
  }
  for (const Ref& operand : {a, b})
    if (holds_own_comparison(interpreter, operand.get(), 0))
      interpreter.stop("compares containers of objects that compare in their own way");
  const Ref x = plain(interpreter, a.get(), "a comparison"), y = plain(interpreter, b.get(), "a comparison");
  return torch_result(interpreter,
                      [&] { return Ref::steal(PyObject_RichCompare(x.get(), y.get(), operation)); });
}

// Whether two bound methods of C code are equal: the same method of the same object.
bool are_same_method(Interpreter& interpreter, PyObject* left, PyObject* right) {
  const auto self_of = [&](PyObject* method) {
    PyObject* const self = PyCFunction_GET_SELF(method);
    const SourceId source = interpreter.externals.source_of(method);
    return source == guards::kNoSource
               ? Ref::borrow(self)
               : admit(interpreter, self,
                       interpreter.guards().derived(guards::SourceKind::MethodSelf, source));
  };
  const auto definition_of = [](PyObject* method) {
    return reinterpret_cast<PyCFunctionObject*>(method)->m_ml;
  };
  if (definition_of(left) != definition_of(right)) return false;
  const Ref a = self_of(left), b = self_of(right);
  compare_identity(interpreter, a.get(), b.get());
  return a == b;
}

}  // namespace

Ref compare(Interpreter& interpreter, PyObject* left, PyObject* right, int operation) {
  if (is_varying_number(left) || is_varying_number(right)) {
    if (std::optional<Ref> result = varying_comparison(interpreter, left, right, operation)) return *result;
    const Ref a = constant_of(interpreter, left), b = constant_of(interpreter, right);
    return compare(interpreter, a.get(), b.get(), operation);
  }
  if (guards::is_constant(left) && guards::is_constant(right))
    return Ref::steal(PyObject_RichCompare(left, right, operation));
  const std::array<PyObject*, 2> operands = {left, right};
  if (auto result = with_scalars(interpreter, operands,
                                 [&] { return Ref::steal(PyObject_RichCompare(left, right, operation)); }))
    return *result;
  if (trace::is_trace_tensor(left) || trace::is_trace_tensor(right)) {
    guard_tensor_special(interpreter, left, kCompare[operation]);
    Ref a = plain(interpreter, left, "a comparison"), b = plain(interpreter, right, "a comparison");
    return torch_result(interpreter, "operator", kCompare[operation], {a.get(), b.get()},
                        [&] { return Ref::steal(PyObject_RichCompare(a.get(), b.get(), operation)); });
  }
  // The right operand goes first if its class is derived from the left one's.
  const bool right_first = Py_TYPE(left) != Py_TYPE(right) && PyType_IsSubtype(Py_TYPE(right), Py_TYPE(left));
  const int reflected = kReflected[operation];
  const bool is_left_own = has_own_comparison(interpreter, left, operation);
  const bool is_right_own = has_own_comparison(interpreter, right, reflected);
  const bool is_first_in_c = right_first ? is_left_own && !is_right_own && may_compare_in_c(right, left)
                                         : is_right_own && !is_left_own && may_compare_in_c(left, right);
  if (is_first_in_c) {
    const bool sequences =
        (PyList_Check(left) && PyList_Check(right)) || (PyTuple_Check(left) && PyTuple_Check(right));
    if (!sequences) interpreter.stop("a comparison that C code may leave to the other operand");
    return compare_containers(interpreter, left, right, operation);
  }
  Ref result = Ref::borrow(Py_NotImplemented);
  if (right_first) result = ask_own_comparison(interpreter, right, reflected, left);
  if (result == Py_NotImplemented) result = ask_own_comparison(interpreter, left, operation, right);
  if (result == Py_NotImplemented && !right_first)
    result = ask_own_comparison(interpreter, right, reflected, left);
  if (result != Py_NotImplemented) return result;
  if (is_left_own || is_right_own) {
    // CPython would ask the C code of the other operand next.
    if (is_container(left) && is_container(right))
      interpreter.stop("a comparison that the class of an operand leaves to C");
    if (operation != Py_EQ && operation != Py_NE) {
      PyErr_Format(PyExc_TypeError, "'%s' not supported between instances of '%.100s' and '%.100s'",
                   kCompareSymbol[operation], Py_TYPE(left)->tp_name, Py_TYPE(right)->tp_name);
      return {};
    }
    compare_identity(interpreter, left, right);
    return Ref::borrow((left == right) == (operation == Py_EQ) ? Py_True : Py_False);
  }
  for (PyObject* operand : {left, right})
    if (interpreter.externals.is_external(operand) && PyODict_Check(operand))
      interpreter.stop("compares an ordered dict");
  if (left == right && interpreter.externals.is_code_constant(left))
    compare_identity(interpreter, left, right);
  if (is_bound_c_method(left) && is_bound_c_method(right) && (operation == Py_EQ || operation == Py_NE))
    return Ref::borrow(are_same_method(interpreter, left, right) == (operation == Py_EQ) ? Py_True
                                                                                         : Py_False);
  if (is_deque_type(Py_TYPE(left)) && is_deque_type(Py_TYPE(right)))
    return compare_deques(interpreter, left, right, operation);
  if (is_container(left) && is_container(right))
    return compare_containers(interpreter, left, right, operation);
  for (PyObject* operand : {left, right}) {
    if (!interpreter.externals.is_external(operand) || is_identity_object(operand)) continue;
    if (compares_identity(operand))
      compare_identity(interpreter, left, right);
    else
      interpreter.stop(fmt::format("compares an object of type {}", Py_TYPE(operand)->tp_name));
  }
  return Ref::steal(PyObject_RichCompare(left, right, operation));
}

Ref call_equality(Interpreter& interpreter, PyObject* bound, PyObject* self, bool inverted, PyObject* other) {
  if (inverted && has_python_special(interpreter, self, "__eq__"))
    return ask_inverted_equality(interpreter, self, other);
  if (!compares_identity(self))
    interpreter.stop(fmt::format("compares an object of type {} by a method", Py_TYPE(self)->tp_name));
  compare_identity(interpreter, self, other);
  return call_real(interpreter, bound, Arguments{{Ref::borrow(other)}, {}});
}

int is_or_equals(Interpreter& interpreter, PyObject* left, PyObject* right) {
  if (left == right) {
    if (!guards::is_constant(left)) compare_identity(interpreter, left, right);
    return 1;
  }
  const auto may_be_nan = [&](PyObject* object) {
    return is_varying_number(object) ? varying_class(interpreter, object) == &PyFloat_Type
                                     : guards::is_nan(object);
  };
  // A NaN is not equal to itself, so its identity decides.
  if (may_be_nan(left) && may_be_nan(right)) {
    const Ref a = constant_of(interpreter, left), b = constant_of(interpreter, right);
    if (a == b) return 1;
  }
  const Ref equal = compare(interpreter, left, right, Py_EQ);
  bool error = false;
  const bool same = equal && truth(interpreter, equal.get(), &error);
  return !equal || error ? -1 : static_cast<int>(same);
}

}  // namespace oxy::eval
