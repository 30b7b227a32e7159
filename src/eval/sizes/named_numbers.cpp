#include "eval/sizes/named_numbers.h"

#include <fmt/format.h>

#include "eval/sizes/specification_error.h"

namespace oxy::eval {

void relate(Interpreter& interpreter, const Dimension& said, const sym::Expr& size, int64_t value) {
  sym::ShapeEnvironment& environment = interpreter.numbers.symbols->environment;
  const std::string by =
      said.mark.said.empty() ? fmt::format("the shape id '{}'", said.name) : said.mark.said;
  const sym::Expr distance = size - said.offset;
  if (said.factor != 1) environment.promise(sym::equal(sym::mod(distance, said.factor), 0), by);
  const Numbers::Named number{sym::floordiv(distance, said.factor), (value - said.offset) / said.factor};
  const auto [first, is_new] = interpreter.numbers.named.emplace(said.name, number);
  if (is_new) return;
  if (first->second.value != number.value)
    raise_specification(PyExc_RuntimeError,
                        fmt::format("{} is {}, and as {} it has to be {}", environment.text(size), value, by,
                                    said.factor * first->second.value + said.offset));
  environment.promise(sym::equal(size, said.factor * first->second.expression + said.offset), by);
}

}  // namespace oxy::eval
