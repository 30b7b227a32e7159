#include "eval/state/interpreter.h"

#include <fmt/format.h>

#include "cpy/object_dict.h"
#include "eval/state/generator.h"
#include "eval/state/torch_call_log.h"
#include "eval/treatment/prelude.h"

namespace oxy::eval {

std::string short_line_text(const Frame& innermost) {
  const Frame* user = &innermost;
  while (is_prelude_code(user->pycode()) && user->back != nullptr) user = user->back;
  const Frame& frame = *user;
  const char* file = PyUnicode_AsUTF8(frame.pycode()->co_filename);
  const char* name = PyUnicode_AsUTF8(frame.pycode()->co_name);
  std::string_view path = file ? file : "?";
  if (const size_t slash = path.rfind('/'); slash != std::string_view::npos) path.remove_prefix(slash + 1);
  return fmt::format("{}:{} in {}", path, frame.instruction().line, name ? name : "?");
}

namespace {

// Where the program is, or the operator whose gradient is recorded, as a location of the graph; none:
// nowhere.
graph::LocationId location(Interpreter& interpreter, graph::Graph& graph) {
  const Frame* frame = interpreter.frame;
  std::string text = frame ? short_line_text(*frame) : interpreter.autograd_lines.current();
  if (text.empty()) return graph::kNoLocation;
  const auto [place, inserted] = interpreter.locations.try_emplace(
      {std::move(text), interpreter.calls.checkpoint}, graph.locations.next_id());
  if (inserted) graph.locations.add({place->first.first, interpreter.calls.checkpoint});
  if (frame) interpreter.autograd_lines.note(place->first.first);
  return place->second;
}

Numbers numbers_of(const CaptureOptions& options) {
  Numbers numbers;
  if (options.symbols) numbers.symbols = std::make_shared<torch_api::Symbols>();
  return numbers;
}

}  // namespace

Interpreter::Interpreter(const CaptureOptions& asked)
    : options(asked),
      capture(std::make_unique<Capture>()),
      numbers(numbers_of(asked)),
      recorder({.symbols = numbers.symbols,
                .reads_data = asked.data_symbols,
                .varying_elements = asked.varying_elements.value_or(trace::VaryingElements::Unknown)}) {
  if (numbers.symbols)
    numbers.symbols->where = [this] { return frame ? short_line_text(*frame) : autograd_lines.current(); };
  calls.abandoned = std::make_shared<AbandonedGenerators>();
  if (options.torch_program) torch_calls = std::make_unique<TorchCallLog>(recorder);
  recorder.set_location([this](graph::Graph& graph) {
    if (torch_calls) torch_calls->count_operator();
    return location(*this, graph);
  });
}

// Breaks cycles: a context of an autograd.Function may save a tensor whose node holds the context.
Interpreter::~Interpreter() {
  if (numbers.symbols) numbers.symbols->where = nullptr;  // trace tensors may outlive this
  for (const Ref& context : calls.function_contexts)
    if (PyObject* attributes = cpy::materialized_dict(context.get())) PyDict_Clear(attributes);
}

void Interpreter::stop(std::string reason, std::string hint) const {
  throw Break{std::move(reason), std::move(hint), BreakKind::Instruction, {}};
}

std::string line_text(const Frame& frame) {
  const char* file = PyUnicode_AsUTF8(frame.pycode()->co_filename);
  const char* name = PyUnicode_AsUTF8(frame.pycode()->co_name);
  return fmt::format("{}:{} in {}", file ? file : "?", frame.instruction().line, name ? name : "?");
}

void rely_on_nothing_handled(Interpreter& interpreter) {
  if (interpreter.handled_before && interpreter.handled_before != Py_None)
    interpreter.stop("looks at exceptions while one is being handled");
  interpreter.capture->needs_nothing_handled = true;
}

}  // namespace oxy::eval
