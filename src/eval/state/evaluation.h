// Where interpreting comes back to itself: what lower rooms ask of higher ones. A null Ref, false or -1 has
// set a Python exception, unless it says otherwise.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "eval/state/interpreter.h"

namespace oxy::eval {

using TakeItem = std::function<bool(Ref item)>;  // false: with an exception set, or no more is wanted

Ref call(Interpreter& interpreter, PyObject* callable, Arguments arguments);
Ref call_positional(Interpreter& interpreter, PyObject* callable, std::vector<Ref> positional);
Ref call_c_method(Interpreter& interpreter, PyObject* bound, PyObject* self, std::string_view name,
                  Arguments arguments);
Ref get_attribute(Interpreter& interpreter, PyObject* object, PyObject* name);
// object.__getattribute__
Ref generic_get_attribute(Interpreter& interpreter, PyObject* object, PyObject* name);
// A special method, looked up on the type: bound, or null without an exception if there is none.
Ref special_method(Interpreter& interpreter, PyObject* object, const char* name);
Ref get_item(Interpreter& interpreter, PyObject* object, PyObject* key);
bool set_item(Interpreter& interpreter, PyObject* object, PyObject* key, PyObject* value);
Ref binary(Interpreter& interpreter, bytecode::BinaryKind kind, bool in_place, PyObject* left,
           PyObject* right);
Ref compare(Interpreter& interpreter, PyObject* left, PyObject* right, int operation);
// Gives `take` each item before the next is asked for; those of exact lists and tuples as they are at the
// start. `asks_length`: for C code that asks ask_length_hint() first.
bool take_items(Interpreter& interpreter, PyObject* iterable, const TakeItem& take, bool asks_length = false);
// Null without error: exhausted; `value_of_end` gets the value of a StopIteration then, if it raised one.
// Generators do not: generator_data() has theirs.
Ref iterate(Interpreter& interpreter, PyObject* iterator, bool* error, Ref* value_of_end = nullptr);
// Null, no error: finished. `sent` null: the pending error is thrown.
Ref run_generator(Interpreter& interpreter, PyObject* generator, PyObject* sent, bool* error);
Ref call_generator_method(Interpreter& interpreter, PyObject* generator, std::string_view name,
                          const Arguments& arguments);
Ref generator_attribute(Interpreter& interpreter, PyObject* generator, PyObject* name);
// C code that asks the class for an attribute may run code of its metaclass.
bool finds_attributes_itself(Interpreter& interpreter, PyObject* class_object);
Ref call_method(Interpreter& interpreter, PyObject* object, const char* name, Arguments arguments);
// Whether the Python function can be called with the arguments.
bool accepts(Interpreter& interpreter, PyObject* function, const Arguments& arguments);
// What apply() of a torch.autograd.Function does; the class is the first argument.
Ref apply_function(Interpreter& interpreter, Arguments& arguments);

}  // namespace oxy::eval
