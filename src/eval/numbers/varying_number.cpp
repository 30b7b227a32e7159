#include "eval/numbers/varying_number.h"

#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <array>
#include <vector>

#include "eval/python/objects.h"
#include "eval/state/evaluation.h"
#include "eval/state/interpreter.h"
#include "guards/constants.h"
#include "runtime/values/tensor_object.h"
#include "trace/tensors/trace_error.h"

namespace oxy::eval {

namespace {

Ref make_varying(Interpreter& interpreter, PyObject* number, SourceId source);

}  // namespace

using bytecode::BinaryKind;
using guards::CheckKind;
using guards::kNoSource;

namespace {

// Each calculation costs some 50 ns at every call. It costs more for integers of many bits.
constexpr int kMostCalculations = 256;
constexpr size_t kMostBits = 256;

// Sets an error that handlers of the program do not catch.
PyObject* refuse(PyObject*) {
  PyErr_SetString(trace::trace_error(), "the value of an oxyfuel.VaryingNumber is looked at");
  return nullptr;
}

PyObject* refuse_binary(PyObject* self, PyObject*) {
  return refuse(self);
}

// Refuses all attributes but `__class__`, which isinstance() reads.
PyObject* refuse_attribute(PyObject* self, PyObject* name) {
  const bool is_class = PyUnicode_CompareWithASCIIString(name, "__class__") == 0;
  return is_class ? PyObject_GenericGetAttr(self, name) : refuse(self);
}

PyObject* refuse_ternary(PyObject* self, PyObject*, PyObject*) {
  return refuse(self);
}

PyObject* refuse_comparison(PyObject* self, PyObject*, int) {
  return refuse(self);
}

int refuse_truth(PyObject* self) {
  refuse(self);
  return -1;
}

Py_ssize_t refuse_size(PyObject* self) {
  refuse(self);
  return -1;
}

int refuse_item(PyObject* self, PyObject*, PyObject*) {
  refuse(self);
  return -1;
}

PyTypeObject* varying_type() {
  static PyObject* type = nullptr;
  cpy::made_once(type, [] {
    static std::vector<PyType_Slot> slots;
    for (const int slot : {Py_nb_add, Py_nb_subtract, Py_nb_multiply, Py_nb_remainder, Py_nb_divmod,
                           Py_nb_lshift, Py_nb_rshift, Py_nb_and, Py_nb_xor, Py_nb_or, Py_nb_floor_divide,
                           Py_nb_true_divide, Py_nb_matrix_multiply, Py_mp_subscript})
      slots.push_back({slot, reinterpret_cast<void*>(&refuse_binary)});
    for (const int slot : {Py_nb_negative, Py_nb_positive, Py_nb_absolute, Py_nb_invert, Py_nb_int,
                           Py_nb_float, Py_nb_index, Py_tp_iter, Py_tp_repr, Py_tp_str})
      slots.push_back({slot, reinterpret_cast<void*>(&refuse)});
    slots.push_back({Py_tp_getattro, reinterpret_cast<void*>(&refuse_attribute)});
    slots.push_back({Py_nb_power, reinterpret_cast<void*>(&refuse_ternary)});
    slots.push_back({Py_nb_bool, reinterpret_cast<void*>(&refuse_truth)});
    slots.push_back({Py_tp_richcompare, reinterpret_cast<void*>(&refuse_comparison)});
    slots.push_back({Py_tp_hash, reinterpret_cast<void*>(&refuse_size)});
    slots.push_back({Py_mp_length, reinterpret_cast<void*>(&refuse_size)});
    slots.push_back({Py_mp_ass_subscript, reinterpret_cast<void*>(&refuse_item)});
    slots.push_back({0, nullptr});
    static PyType_Spec spec = {"oxyfuel.VaryingNumber", sizeof(PyObject), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots.data()};
    return PyType_FromSpec(&spec);
  });
  return reinterpret_cast<PyTypeObject*>(type);
}

bool is_number(PyObject* object) {
  return PyLong_Check(object) ? PyLong_CheckExact(object) || PyBool_Check(object)
                              : PyFloat_CheckExact(object);
}

bool is_small(PyObject* number) {
  return !PyLong_Check(number) || _PyLong_NumBits(number) <= kMostBits;
}

bool fits_int64(PyObject* integer) {
  int overflow = 0;
  PyLong_AsLongLongAndOverflow(integer, &overflow);
  return overflow == 0;
}

// The functions of `operator`, in the order of BinaryKind. Null: not calculated again (powers may be of any
// size).
constexpr std::array<const char*, 13> kBinary = {"add", "and_", "floordiv", nullptr, nullptr,   "mul", "mod",
                                                 "or_", "pow",  "rshift",   "sub",   "truediv", "xor"};
constexpr std::array<const char*, 6> kCompare = {"lt", "le", "eq", "ne", "gt", "ge"};

// Functions of numbers whose results are numbers.
bool is_function_of_numbers(PyObject* callable) {
  for (PyTypeObject* type : {&PyLong_Type, &PyFloat_Type, &PyBool_Type})
    if (callable == reinterpret_cast<PyObject*>(type)) return true;
  if (!PyCFunction_Check(callable)) return false;
  for (const char* name : {"abs", "round", "min", "max"})
    if (callable == well_known("builtins", name)) return true;
  PyObject* const math = well_known("math", "");
  return math != nullptr && PyCFunction_GET_SELF(callable) == math;
}

// Methods of tensors that take a tensor without dimensions in place of a number.
constexpr std::array<std::string_view, 20> kTakesTensors = {
    "add",     "add_",     "sub",     "sub_",     "mul", "mul_", "div", "div_", "lerp", "lerp_",
    "addcdiv", "addcdiv_", "addcmul", "addcmul_", "eq",  "ne",   "lt",  "le",   "gt",   "ge"};

}  // namespace

bool is_varying_number(PyObject* object) {
  return object != nullptr && Py_TYPE(object) == varying_type();
}

Ref admit_varying(Interpreter& interpreter, PyObject* number, SourceId source) {
  interpreter.guards().mark_varying(source);
  return make_varying(interpreter, number, source);
}

namespace {

Ref make_varying(Interpreter& interpreter, PyObject* number, SourceId source) {
  interpreter.guards().require(source, CheckKind::Type, reinterpret_cast<PyObject*>(Py_TYPE(number)));
  Ref object = Ref::steal(PyObject_New(PyObject, varying_type()));
  interpreter.externals.keep_alive.push_back(object);
  interpreter.numbers.varying.emplace(object.get(), Numbers::Varying{Ref::borrow(number), source});
  return object;
}

}  // namespace

SourceId varying_source(Interpreter& interpreter, PyObject* object) {
  return interpreter.numbers.varying.at(object).source;
}

PyTypeObject* varying_class(Interpreter& interpreter, PyObject* object) {
  return Py_TYPE(interpreter.numbers.varying.at(object).value.get());
}

Ref constant_of(Interpreter& interpreter, PyObject* object) {
  if (!is_varying_number(object)) return Ref::borrow(object);
  const Numbers::Varying& number = interpreter.numbers.varying.at(object);
  if (interpreter.externals.unguarded &&
      interpreter.externals.unguarded->contains(interpreter.guards().describe(number.source)))
    interpreter.stop("uses a number or text that was another one at each call");
  interpreter.guards().require(number.source, CheckKind::Equal, number.value.get());
  return number.value;
}

std::optional<Ref> calculated(Interpreter& interpreter, PyObject* function,
                              std::span<PyObject* const> operands) {
  if (!function || operands.empty() || operands.size() > 2 ||
      interpreter.numbers.calculations >= kMostCalculations)
    return std::nullopt;
  std::array<PyObject*, 2> values = {};
  std::array<SourceId, 2> sources = {kNoSource, kNoSource};
  for (size_t i = 0; i < operands.size(); ++i) {
    if (is_varying_number(operands[i])) {
      const Numbers::Varying& number = interpreter.numbers.varying.at(operands[i]);
      values[i] = number.value.get();
      sources[i] = number.source;
    } else if (is_number(operands[i])) {
      values[i] = operands[i];
      sources[i] = interpreter.guards().pinned(operands[i]);
    } else {
      return std::nullopt;
    }
  }
  Ref result = Ref::steal(PyObject_Vectorcall(function, values.data(), operands.size(), nullptr));
  if (!result) PyErr_Clear();  // the caller goes on with constants, which raises it again
  if (!result || !is_number(result.get()) || !is_small(result.get())) return std::nullopt;
  ++interpreter.numbers.calculations;
  const SourceId source = interpreter.guards().calculated(function, sources[0], sources[1]);
  if (!PyBool_Check(result.get())) return make_varying(interpreter, result.get(), source);
  interpreter.guards().require(source, CheckKind::Equal, result.get());
  return result;
}

namespace {

bool can_calculate(Interpreter& interpreter, const at::Tensor& tensor, PyObject* varying) {
  PyObject* const value = interpreter.numbers.varying.at(varying).value.get();
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return PyFloat_CheckExact(value) ? guards::fits_float(value) : fits_int64(value);
    case at::kDouble:
      return PyFloat_CheckExact(value) || fits_int64(value);
    case at::kLong:
      return PyLong_CheckExact(value) && fits_int64(value);
    default:
      return false;
  }
}

Ref as_tensor(Interpreter& interpreter, PyObject* varying, at::ScalarType type) {
  const Numbers::Varying& number = interpreter.numbers.varying.at(varying);
  Ref& input = interpreter.numbers.inputs[number.source];
  PyObject* const value = number.value.get();
  if (type == at::kFloat && PyFloat_CheckExact(value))
    interpreter.guards().require(number.source, CheckKind::FitsFloat, nullptr);
  if (!input) {
    Ref real;
    {
      const trace::Recorder::Pause pause;
      real = Ref::steal(runtime::wrap_tensor(PyFloat_CheckExact(value)
                                                 ? at::scalar_tensor(PyFloat_AS_DOUBLE(value), at::kDouble)
                                                 : at::scalar_tensor(PyLong_AsLongLong(value), at::kLong)));
    }
    if (PyLong_CheckExact(value)) interpreter.guards().require(number.source, CheckKind::FitsInt64, nullptr);
    input = Ref::steal(interpreter.recorder.add_input(real.get()));
    if (!input) interpreter.stop("a number that cannot be traced");
    interpreter.externals.keep_alive.push_back(real);
    interpreter.capture->inputs.push_back(number.source);
  }
  return Ref::steal(runtime::wrap_tensor(runtime::tensor_of(input.get()).to(type)));
}

// The operands, a trace tensor and a varying number in either order, as two trace tensors. Nothing: they are
// others.
std::optional<std::pair<Ref, Ref>> as_tensors(Interpreter& interpreter, PyObject* left, PyObject* right) {
  PyObject* const other = trace::is_trace_tensor(left) ? left : right;
  PyObject* const varying = other == left ? right : left;
  if (!trace::is_trace_tensor(other) || !is_varying_number(varying)) return std::nullopt;
  const at::Tensor& tensor = runtime::tensor_of(other);
  if (!can_calculate(interpreter, tensor, varying)) return std::nullopt;
  Ref number = as_tensor(interpreter, varying, tensor.scalar_type());
  return other == left ? std::pair(Ref::borrow(left), std::move(number))
                       : std::pair(std::move(number), Ref::borrow(right));
}

}  // namespace

std::optional<Ref> varying_arithmetic(Interpreter& interpreter, BinaryKind kind, bool in_place,
                                      PyObject* left, PyObject* right) {
  const bool is_simple = kind == BinaryKind::Add || kind == BinaryKind::Subtract ||
                         kind == BinaryKind::Multiply || kind == BinaryKind::TrueDivide;
  if (trace::is_trace_tensor(left) || trace::is_trace_tensor(right)) {
    const auto tensors = is_simple ? as_tensors(interpreter, left, right) : std::nullopt;
    if (!tensors) return std::nullopt;
    return binary(interpreter, kind, in_place && tensors->first == left, tensors->first.get(),
                  tensors->second.get());
  }
  const char* name = kBinary[static_cast<size_t>(kind)];
  const std::array<PyObject*, 2> operands = {left, right};
  return name ? calculated(interpreter, well_known("operator", name), operands) : std::nullopt;
}

std::optional<Ref> varying_comparison(Interpreter& interpreter, PyObject* left, PyObject* right,
                                      int operation) {
  if (trace::is_trace_tensor(left) || trace::is_trace_tensor(right)) {
    const auto tensors = as_tensors(interpreter, left, right);
    if (!tensors) return std::nullopt;
    return compare(interpreter, tensors->first.get(), tensors->second.get(), operation);
  }
  const std::array<PyObject*, 2> operands = {left, right};
  return calculated(interpreter, well_known("operator", kCompare[static_cast<size_t>(operation)]), operands);
}

std::optional<Ref> call_on_varying(Interpreter& interpreter, PyObject* callable, const Arguments& arguments) {
  if (!std::ranges::any_of(arguments.positional,
                           [](const Ref& value) { return is_varying_number(value.get()); }) ||
      !arguments.keywords.empty() || !is_function_of_numbers(callable))
    return std::nullopt;
  std::vector<PyObject*> operands;
  for (const Ref& value : arguments.positional) operands.push_back(value.get());
  return calculated(interpreter, callable, operands);
}

std::optional<Arguments> tensors_for_varying(Interpreter& interpreter, PyObject* callable,
                                             std::string_view method, const Arguments& arguments) {
  PyObject* self = PyCFunction_Check(callable)    ? PyCFunction_GET_SELF(callable)
                   : arguments.positional.empty() ? nullptr
                                                  : arguments.positional[0].get();
  if (!self || !trace::is_trace_tensor(self)) return std::nullopt;
  const at::Tensor& tensor = runtime::tensor_of(self);
  bool has_some = false, has_others = false;
  const auto look = [&](const Ref& value) {
    if (is_varying_number(value.get()))
      (can_calculate(interpreter, tensor, value.get()) ? has_some : has_others) = true;
  };
  for (const Ref& value : arguments.positional) look(value);
  for (const auto& [name, value] : arguments.keywords) look(value);
  // A keyword factor of tensors that are not floating-point has to stay a number.
  const bool has_factor = !arguments.keywords.empty() && !at::isFloatingType(tensor.scalar_type());
  if (!has_some || has_others || has_factor ||
      std::ranges::find(kTakesTensors, method) == kTakesTensors.end())
    return std::nullopt;
  Arguments tensors = arguments;
  const auto replace = [&](Ref& value) {
    if (is_varying_number(value.get())) value = as_tensor(interpreter, value.get(), tensor.scalar_type());
  };
  for (Ref& value : tensors.positional) replace(value);
  for (auto& [name, value] : tensors.keywords) replace(value);
  return tensors;
}

}  // namespace oxy::eval
