// Functions of torch that take a number where the graph has no room for one that varies: Python functions of
// ours that express them by operators on tensors. They are part of the prelude.
#pragma once

#include <Python.h>

#include <cstdint>
#include <string_view>

namespace oxy::eval {

enum class NumberTypes : uint8_t {
  All,       // of tensors: any
  Floating,  // any floating-point type
  Wide,      // float32 and float64: for others the form would round more often than the function does
  Narrow,    // floating-point types of 16 bits
};

struct NumberForm {
  const char* module;    // where the function is; empty: it is a method of tensors
  const char* name;      // its name there
  const char* function;  // of the prelude
  NumberTypes types;     // of the first tensor among the arguments
  // Ints that vary need the form, too. Without it, only floats that vary do, and ints beside a float.
  bool takes_no_symbols = false;
};

// The form of a function or method. `method`: the name of a method of tensors; empty for a function. A method
// that ends with an underscore has the form of the one without, and what that gives is to be written to the
// tensor. Null: there is none.
const NumberForm* number_form(PyObject* callable, std::string_view method);

// The Python text of the forms. In it,
//   element(number, tensor)  is as_element(), or number(number) if that is nothing,
//   number(value)            is the value at hand, guarded (constant_of()).
extern const char* const kNumberForms;

}  // namespace oxy::eval
