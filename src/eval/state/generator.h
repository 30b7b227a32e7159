// Generators of the interpreter's: Python objects that stand for generators and coroutines while a region is
// captured. Only the interpreter can advance them. Generators of the prelude stand for iterators of C code
// (python/prelude.h).
#pragma once

#include <Python.h>

#include <memory>

#include "eval/state/interpreter.h"

namespace oxy::eval {

enum class GeneratorState : uint8_t { Created, Suspended, Running, Finished };

struct GeneratorData {
  Frame frame;
  GeneratorState state = GeneratorState::Created;
  Ref returned;  // the value of its return statement, once finished
  Ref handled;   // the exception that it is handling while it is suspended, or null
  // If it dies while it is suspended inside a try or with block, it is moved here. The interpreter closes it.
  std::weak_ptr<AbandonedGenerators> abandoned;
  std::shared_ptr<void> life = std::make_shared<char>();  // the token in Calls::generators
};

// A new generator object over a frame that has run up to its ReturnGenerator instruction.
Ref make_generator(std::unique_ptr<GeneratorData> data);
// The name of the class of these objects. It can turn up in texts of errors that C code raises.
inline constexpr char kGeneratorClassName[] = "oxyfuel.generator";

// A generator of the interpreter's that can be iterated over.
bool is_generator(PyObject* object);
// A coroutine or asynchronous generator of the interpreter's. It cannot be iterated over.
bool is_coroutine(PyObject* object);
// The class that the program sees: that of CPython's generators, coroutines or asynchronous generators.
PyTypeObject* class_of(const GeneratorData& data);
// The same. Throws Break for a generator of the prelude, as the program would see an iterator of C code.
PyTypeObject* class_of_generator(const Interpreter& interpreter, PyObject* generator);
// The class of the object that a call of a function with such code gives.
PyTypeObject* class_of_code(PyCodeObject* code);
// Precondition: is_generator() or is_coroutine().
GeneratorData& generator_data(PyObject* object);
// Sets StopIteration with the value `returned`, which a generator raises when it returns.
void set_stop_iteration(const Ref& returned);
// Clears the StopIteration that is set and gives its value. Null if another error is set, which stays.
Ref taken_stop_value();
// Whether closing it would run code of the program's: it is suspended inside a try or with block.
bool has_cleanup(const GeneratorData& data);
// Whether it is suspended in a `yield from` or `await`. The object that it waits for is on top of its stack.
bool waits_for_another(const GeneratorData& data);

}  // namespace oxy::eval
