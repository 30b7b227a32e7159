// Calls of torch that want numbers, where the numbers are tensors of the graph, and calls on lists of
// tensors. Both are expressed by methods of single tensors.
#include "eval/torch/number_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "eval/externals/external_containers.h"
#include "eval/numbers/number_operands.h"
#include "eval/numbers/varying_number.h"
#include "eval/python/objects.h"
#include "eval/state/evaluation.h"
#include "eval/state/interpreter.h"
#include "eval/treatment/number_forms.h"
#include "eval/treatment/prelude.h"
#include "guards/constants.h"
#include "runtime/device/autocast.h"
#include "runtime/values/tensor_object.h"

namespace oxy::eval {

namespace {

// A method with a factor that must be a number, and the name of the factor.
struct Factor {
  std::string_view method;
  const char* keyword;
};

constexpr std::array<Factor, 8> kFactors = {{{"add", "alpha"},
                                             {"add_", "alpha"},
                                             {"sub", "alpha"},
                                             {"sub_", "alpha"},
                                             {"addcdiv", "value"},
                                             {"addcdiv_", "value"},
                                             {"addcmul", "value"},
                                             {"addcmul_", "value"}}};

bool is_floating_tensor(PyObject* object) {
  return trace::is_trace_tensor(object) && at::isFloatingType(runtime::tensor_of(object).scalar_type());
}

bool named(PyObject* name, const char* text) {
  return PyUnicode_CompareWithASCIIString(name, text) == 0;
}

bool is_list(PyObject* object) {
  return PyList_Check(object) || PyTuple_Check(object);
}

}  // namespace

Ref call_method(Interpreter& interpreter, PyObject* object, const char* name, Arguments arguments) {
  Ref method = get_attribute(interpreter, object, interned(name).get());
  return method ? call(interpreter, method.get(), std::move(arguments)) : Ref();
}

namespace {

struct NumbersAmong {
  bool has_varying = false;
  bool has_floats = false;  // that vary or not
};

NumbersAmong numbers_among(Interpreter& interpreter, const Arguments& arguments) {
  NumbersAmong found;
  const auto look = [&](PyObject* object) {
    found.has_varying |= is_varying_number(object);
    found.has_floats |= is_float(interpreter, object);
  };
  for (const Ref& value : arguments.positional) look(value.get());
  for (const auto& [name, value] : arguments.keywords) look(value.get());
  return found;
}

// Borrowed; null if there is none.
PyObject* first_tensor(const Arguments& arguments) {
  const auto is_tensor = [](const Ref& value) { return trace::is_trace_tensor(value.get()); };
  if (const auto it = std::ranges::find_if(arguments.positional, is_tensor); it != arguments.positional.end())
    return it->get();
  for (const auto& [name, value] : arguments.keywords)
    if (is_tensor(value)) return value.get();
  return nullptr;
}

// Whether the floats among the arguments are finite and in the range of the tensor's type: others have
// answers of their own, or are refused. Under autocast operators give other types than their forms.
bool are_usual(Interpreter& interpreter, const Arguments& arguments, PyObject* tensor) {
  const auto* const traced = tensor == nullptr ? nullptr : &runtime::tensor_of(tensor);
  if (runtime::autocast_type(traced == nullptr ? runtime::kHost : traced->device().type())) return false;
  const bool has_type = traced != nullptr && at::isFloatingType(traced->scalar_type());
  const at::ScalarType type = has_type ? traced->scalar_type() : at::kDouble;
  const auto is_usual = [&](const Ref& value) {
    return !is_float(interpreter, value.get()) || fits_finite(interpreter, value.get(), type);
  };
  return std::ranges::all_of(arguments.positional, is_usual) &&
         std::ranges::all_of(arguments.keywords,
                             [&](const auto& keyword) { return is_usual(keyword.second); });
}

// `types`: those of a form. `tensor`: the first one among the arguments; null if there is none.
bool takes(NumberTypes types, PyObject* tensor) {
  if (types == NumberTypes::All) return true;
  if (tensor == nullptr || !is_floating_tensor(tensor)) return false;
  const at::ScalarType type = runtime::tensor_of(tensor).scalar_type();
  const bool is_wide = type == at::kFloat || type == at::kDouble;
  return types == NumberTypes::Floating || is_wide == (types == NumberTypes::Wide);
}

}  // namespace

std::optional<Ref> call_number_form(Interpreter& interpreter, PyObject* callable, std::string_view method,
                                    const Arguments& arguments) {
  const NumbersAmong numbers = numbers_among(interpreter, arguments);
  if (interpreter.torch_calls || !numbers.has_varying) return std::nullopt;
  const NumberForm* const form = number_form(callable, method);
  if (form == nullptr || (!numbers.has_floats && !form->takes_no_symbols)) return std::nullopt;
  Arguments given = arguments;
  const bool is_bound = PyCFunction_Check(callable) && !method.empty();
  if (is_bound)
    given.positional.insert(given.positional.begin(), Ref::borrow(PyCFunction_GET_SELF(callable)));
  PyObject* const tensor = first_tensor(given);
  if (!takes(form->types, tensor) || !are_usual(interpreter, given, tensor)) return std::nullopt;
  const Ref function = prelude_function(form->function);
  if (!accepts(interpreter, function.get(), given)) return std::nullopt;
  const bool in_place = method.ends_with('_');
  if (in_place && given.positional.empty()) return std::nullopt;
  const Ref self = in_place ? given.positional[0] : Ref();
  Ref result = call(interpreter, function.get(), std::move(given));
  return in_place && result ? call_method(interpreter, self.get(), "copy_", {{result}, {}}) : result;
}

std::optional<Ref> call_with_factor(Interpreter& interpreter, PyObject* self, std::string_view name,
                                    const Arguments& arguments) {
  const auto entry = std::find_if(kFactors.begin(), kFactors.end(),
                                  [&](const Factor& factor) { return factor.method == name; });
  if (entry == kFactors.end() || arguments.keywords.size() != 1 ||
      !named(arguments.keywords[0].first.get(), entry->keyword))
    return std::nullopt;
  PyObject* factor = arguments.keywords[0].second.get();
  const bool division = name.starts_with("addcdiv"), product = name.starts_with("addcmul");
  const auto& given = arguments.positional;
  if (given.size() != (division || product ? 2 : 1) || !is_floating_tensor(self) ||
      !is_floating_tensor(factor) || !std::all_of(given.begin(), given.end(), [](const Ref& value) {
        return is_floating_tensor(value.get());
      }))
    return std::nullopt;
  if (runtime::tensor_of(factor).dim() != 0) return std::nullopt;
  // A number takes no part in autograd, and a tensor without dimensions none in type promotion.
  Ref number = call_method(interpreter, factor, "detach", {});
  Ref term = number ? call_method(interpreter, given[0].get(), "mul", {{number}, {}}) : Ref();
  if (term && (division || product))
    term = call_method(interpreter, term.get(), division ? "div" : "mul", {{given[1]}, {}});
  if (!term) return Ref();
  std::string method = name.starts_with("sub") ? "sub" : "add";
  if (name.ends_with('_')) method += '_';
  return call_method(interpreter, self, method.c_str(), {{term}, {}});
}

// torch._foreach_name(...), which is the method on each tensor.
Ref call_foreach(Interpreter& interpreter, std::string_view name, const Arguments& arguments) {
  const auto unusual = [&]() {
    interpreter.stop(fmt::format("calls torch._foreach_{}() with unusual arguments", name));
  };
  const bool in_place = name.ends_with('_');
  const std::string_view base = in_place ? name.substr(0, name.size() - 1) : name;
  std::vector<Ref> given;
  for (const Ref& value : arguments.positional)
    given.push_back(is_list(value.get()) ? materialize(interpreter, value.get()) : value);
  if (given.empty()) unusual();
  const bool of_number = base == "pow" && !is_list(given[0].get()) && given.size() == 2;
  PyObject* tensors = given[of_number ? 1 : 0].get();
  if (!is_list(tensors) || PySequence_Fast_GET_SIZE(tensors) == 0) unusual();
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(tensors);
  for (const Ref& value : given)
    if (is_list(value.get()) && PySequence_Fast_GET_SIZE(value.get()) != count) unusual();
  const bool three = base == "addcdiv" || base == "addcmul";
  const auto part = [&](PyObject* value, Py_ssize_t i) -> Ref {
    if (is_list(value)) return Ref::borrow(PySequence_Fast_GET_ITEM(value, i));
    const bool stacked = three && trace::is_trace_tensor(value) && runtime::tensor_of(value).dim() == 1;
    return stacked ? get_item(interpreter, value, Ref::steal(PyLong_FromSsize_t(i)).get())
                   : Ref::borrow(value);
  };
  std::string method(name);
  if (base == "maximum") method = in_place ? "clamp_min_" : "clamp_min";
  if (base == "minimum") method = in_place ? "clamp_max_" : "clamp_max";
  Ref results = Ref::steal(PyList_New(0));
  for (Py_ssize_t i = 0; i < count; ++i) {
    Arguments one;
    for (size_t k = 1; k < given.size(); ++k) one.positional.push_back(part(given[k].get(), i));
    for (const auto& [key, value] : arguments.keywords) {
      const bool factor = three && (named(key.get(), "value") || named(key.get(), "scalars"));
      if (!factor && !named(key.get(), "alpha") && !named(key.get(), "non_blocking") && base != "norm")
        unusual();
      Ref name_of_factor = interned("value");
      one.keywords.emplace_back(factor ? name_of_factor : key, part(value.get(), i));
    }
    if (three && one.positional.size() == 3) {
      one.keywords.emplace_back(interned("value"), one.positional.back());
      one.positional.pop_back();
    }
    Ref tensor = Ref::borrow(PySequence_Fast_GET_ITEM(tensors, i)), result;
    if (!trace::is_trace_tensor(tensor.get())) unusual();
    if (base == "norm") {
      one.positional.insert(one.positional.begin(), tensor);
      result = call(interpreter, well_known("torch.linalg", "vector_norm"), std::move(one));
    } else if (of_number) {
      result = call(interpreter, well_known("torch", "pow"), {{given[0], tensor}, {}});
    } else {
      Ref key = interned(method.c_str());
      if (!_PyType_Lookup(Py_TYPE(tensor.get()), key.get())) unusual();
      result = call_method(interpreter, tensor.get(), method.c_str(), std::move(one));
    }
    if (!result) return {};
    PyList_Append(results.get(), result.get());
  }
  return in_place ? arguments.positional[0] : Ref::steal(PyList_AsTuple(results.get()));
}

}  // namespace oxy::eval
