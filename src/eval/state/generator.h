// Generators that the interpreter runs: Python objects that only the interpreter can advance.
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
  // Where it goes if it dies suspended inside a try or with block, for the interpreter to close it.
  std::weak_ptr<AbandonedGenerators> abandoned;
  std::shared_ptr<void> life = std::make_shared<char>();
};

// A new generator object over a frame that has run up to its ReturnGenerator.
Ref make_generator(std::unique_ptr<GeneratorData> data);
// What C code calls the class of the objects that stand for generators and coroutines.
inline constexpr char kGeneratorClassName[] = "oxyfuel.generator";

bool is_generator(PyObject* object);
// A coroutine or asynchronous generator of the interpreter's: the same kind of object, which cannot be
// iterated over.
bool is_coroutine(PyObject* object);
PyTypeObject* class_of(const GeneratorData& data);  // that of the object that it stands for
// The same for what the program sees as one: stops at what the interpreter makes of iterators of C.
PyTypeObject* class_of_generator(const Interpreter& interpreter, PyObject* generator);
PyTypeObject* class_of_code(PyCodeObject* code);  // what calling a function of such code gives
GeneratorData& generator_data(PyObject* object);
// The error by which a generator says that it has returned a value.
void set_stop_iteration(const Ref& returned);
// The value of the StopIteration that is raised, which is cleared. Null if another error is raised.
Ref taken_stop_value();
// Whether it is suspended inside a try or with block.
bool has_cleanup(const GeneratorData& data);
// Whether it is suspended in a `yield from`; what it waits for is the topmost entry of its stack.
bool waits_for_another(const GeneratorData& data);

}  // namespace oxy::eval
