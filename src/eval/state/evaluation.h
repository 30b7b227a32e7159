// The operations that every room of eval needs: calls, attributes, items, operators, iteration. Higher rooms
// implement them. They are declared here, so that lower rooms can use them. Each does what CPython would do,
// with guards on what is read, effects for what is written, and Break for what cannot be captured. Errors and
// ownership are those of interpreter.h.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "eval/state/interpreter.h"

namespace oxy::eval {

using TakeItem = std::function<bool(Ref item)>;  // false: with an exception set, or no more is wanted

// callable(*arguments.positional, **arguments.keywords). Python functions are inlined.
Ref call(Interpreter& interpreter, PyObject* callable, Arguments arguments);
Ref call_positional(Interpreter& interpreter, PyObject* callable, std::vector<Ref> positional);
// Calls method `name` of a C type. `bound` is the method, bound to `self`.
Ref call_c_method(Interpreter& interpreter, PyObject* bound, PyObject* self, std::string_view name,
                  Arguments arguments);
Ref get_attribute(Interpreter& interpreter, PyObject* object, PyObject* name);
// The same as object.__getattribute__ does it, without a `__getattribute__` or `__getattr__` of the class.
Ref generic_get_attribute(Interpreter& interpreter, PyObject* object, PyObject* name);
// A special method, looked up on the type: bound, or null without an exception if there is none.
Ref special_method(Interpreter& interpreter, PyObject* object, const char* name);
Ref get_item(Interpreter& interpreter, PyObject* object, PyObject* key);
bool set_item(Interpreter& interpreter, PyObject* object, PyObject* key, PyObject* value);
// left <kind> right, or left <kind>= right if `in_place`.
Ref binary(Interpreter& interpreter, bytecode::BinaryKind kind, bool in_place, PyObject* left,
           PyObject* right);
// `operation`: Py_LT, Py_LE, Py_EQ, Py_NE, Py_GT or Py_GE.
Ref compare(Interpreter& interpreter, PyObject* left, PyObject* right, int operation);
// Passes each item of the iterable to `take` before it asks for the next one. Items of exact lists and tuples
// are those at the start. `asks_length`: CPython's code asks for a length hint first.
bool take_items(Interpreter& interpreter, PyObject* iterable, const TakeItem& take, bool asks_length = false);
// The next item. Null with `*error` false: the iterator is exhausted. If it ended with a StopIteration,
// `value_of_end` gets its value; the value of a generator is in its generator_data().
Ref iterate(Interpreter& interpreter, PyObject* iterator, bool* error, Ref* value_of_end = nullptr);
// Resumes a generator of the interpreter's with the value `sent`; null: throws the pending Python error into
// it. Gives what it yields. Null with `*error` false: it has returned.
Ref run_generator(Interpreter& interpreter, PyObject* generator, PyObject* sent, bool* error);
// Methods of a generator object (send(), throw(), close() ...), and its other attributes.
Ref call_generator_method(Interpreter& interpreter, PyObject* generator, std::string_view name,
                          const Arguments& arguments);
Ref generator_attribute(Interpreter& interpreter, PyObject* generator, PyObject* name);
// Whether the class's metaclass has Python code for attribute access. C code that asks the class for an
// attribute would run it.
bool finds_attributes_itself(Interpreter& interpreter, PyObject* class_object);
// object.name(*arguments), where the attribute is looked up as the program would.
Ref call_method(Interpreter& interpreter, PyObject* object, const char* name, Arguments arguments);
// Whether the arguments fit the signature of the Python function. Sets no exception.
bool accepts(Interpreter& interpreter, PyObject* function, const Arguments& arguments);
// The method apply() of a torch.autograd.Function. The class is the first argument.
Ref apply_function(Interpreter& interpreter, Arguments& arguments);

}  // namespace oxy::eval
