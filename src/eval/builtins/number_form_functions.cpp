// What the forms of functions on numbers call (treatment/number_forms.h).
#include "eval/builtins/builtin_families.h"
#include "eval/numbers/number_operands.h"
#include "eval/numbers/varying_number.h"
#include "eval/state/arguments.h"
#include "runtime/values/tensor_object.h"

namespace oxy::eval {
namespace {

Ref element_of_number(Interpreter& interpreter, Arguments& a) {
  if (!trace::is_trace_tensor(arg(a, 1))) return constant_of(interpreter, arg(a, 0));
  if (std::optional<Ref> element = as_element(interpreter, arg(a, 0), runtime::tensor_of(arg(a, 1))))
    return std::move(*element);
  return constant_of(interpreter, arg(a, 0));
}

Ref number_at_hand(Interpreter& interpreter, Arguments& a) {
  return constant_of(interpreter, arg(a, 0));
}

constexpr BuiltinEntry kTable[] = {
    {nullptr, "element", &element_of_number},
    {nullptr, "number", &number_at_hand},
};

}  // namespace

std::span<const BuiltinEntry> number_form_builtins() {
  return kTable;
}

}  // namespace oxy::eval
