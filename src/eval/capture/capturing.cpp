// Beginning and ending a capture.
#include "eval/capture/capturing.h"

#include <ATen/core/grad_mode.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "autograd/recording/record_backward.h"
#include "base/log.h"
#include "cpy/generator.h"
#include "cpy/gil.h"
#include "cpy/object_dict.h"
#include "eval/builtins/builtins.h"
#include "eval/capture/effect_builder.h"
#include "eval/capture/template_builder.h"
#include "eval/externals/admission.h"
#include "eval/externals/identity.h"
#include "eval/externals/variables.h"
#include "eval/machine/generators.h"
#include "eval/machine/inlining.h"
#include "eval/machine/run.h"
#include "eval/numbers/symbolic_integer.h"
#include "eval/python/objects.h"
#include "eval/rebuild/capture.h"
#include "eval/rebuild/default_device.h"
#include "eval/rebuild/template_order.h"
#include "eval/state/evaluation.h"
#include "eval/state/generator.h"
#include "eval/state/interpreter.h"
#include "eval/state/stack.h"
#include "eval/state/torch_call_log.h"
#include "graph/sizes.h"
#include "guards/constants.h"
#include "ops/core/registry.h"
#include "runtime/device/current.h"
#include "runtime/device/device.h"
#include "runtime/values/tensor_object.h"
#include "trace/tensors/trace_tensor.h"

namespace oxy::eval {

using guards::SourceKind;

namespace {

// Elements of small integer inputs that vary may be symbols.
void offer_element_symbols(Interpreter& interpreter) {
  interpreter.recorder.set_element_symbols([&interpreter](int32_t input, int64_t place, int64_t value) {
    const cpy::WithGil gil;
    const SourceId source = interpreter.capture->inputs.at(static_cast<size_t>(input));
    return new_symbol(interpreter, {source, guards::IntegerPart::Element, static_cast<int32_t>(place)},
                      sym::SymbolKind::Integer, value);
  });
}

// The state of the thread that interpreted code may change. It is put back when the capture ends.
class ThreadState {
 public:
  ThreadState()
      : grad_mode_(at::GradMode::is_enabled()),
        device_(runtime::current_device_index()),
        autocast_(AutocastState::current()),
        handled_(cpy::handled_here()) {}
  ~ThreadState() {
    runtime::notice_devices_in_use();
    at::GradMode::set_enabled(grad_mode_);
    runtime::set_current_device_index(device_);
    autocast_.apply();
    PyErr_SetHandledException(handled_.get());
  }
  const Ref& handled() const { return handled_; }

  // Notes in `capture` what differs now from the start.
  void note_changes(const AutocastCache& cache, const DefaultDevices& devices, Capture& capture) const {
    capture.default_device_change = devices.change();
    if (at::GradMode::is_enabled() != grad_mode_) capture.final_grad_mode = at::GradMode::is_enabled();
    runtime::notice_devices_in_use();
    if (const auto device = runtime::current_device_index(); device != device_) capture.final_device = device;
    const AutocastState autocast = AutocastState::current();
    if (autocast != autocast_ || cache.enabled != cache.was_enabled || cache.clears)
      capture.autocast_change = {autocast, autocast.nesting - autocast_.nesting, cache.enabled, cache.clears};
  }

 private:
  bool grad_mode_;
  c10::DeviceIndex device_;
  AutocastState autocast_;
  Ref handled_;
  WithoutFunctionModes without_modes_;
};

std::string raised_text() {
  Ref type, value, traceback;
  PyErr_Fetch(type.out(), value.out(), traceback.out());
  Ref text = value ? Ref::steal(PyObject_Str(value.get())) : Ref();
  const char* utf8 = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  std::string result = fmt::format(
      "raises {}: {}", type ? reinterpret_cast<PyTypeObject*>(type.get())->tp_name : "?", utf8 ? utf8 : "");
  PyErr_Clear();
  return result;
}

// Whether call() would inline the callable and run its body at once.
bool runs_its_own_code(PyObject* callable) {
  if (!is_inlined(callable)) return false;
  auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(callable));
  return (code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)) == 0;
}

struct Result {
  Ref value;
  SourceId unread = guards::kNoSource;
};

void finish(Interpreter& interpreter, const std::vector<Result>& results, EndKind end, int32_t offset);

}  // namespace

std::unique_ptr<Capture> capture_call(Interpreter& interpreter, std::span<PyObject* const> roots,
                                      PyObject* kwnames) {
  ThreadState state;
  offer_element_symbols(interpreter);
  interpreter.handled_before = Ref::steal(PyErr_GetHandledException());
  PyObject* callable = roots[0];
  const size_t keyword_count = kwnames ? static_cast<size_t>(PyTuple_GET_SIZE(kwnames)) : 0;
  const size_t positional = roots.size() - 1 - keyword_count;
  const SourceId callable_source = interpreter.guards().root(0, "the compiled callable");
  interpreter.guards().mark_stable(callable_source);
  Ref function = admit(interpreter, callable, callable_source);
  Arguments arguments;
  PyObject* named = PyMethod_Check(callable) ? PyMethod_GET_FUNCTION(callable) : callable;
  const size_t skip = PyMethod_Check(callable) ? 1 : 0;
  auto label = [&](size_t i) -> std::string {
    if (PyFunction_Check(named)) {
      auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(named));
      if (i + skip < static_cast<size_t>(code->co_argcount))
        return PyUnicode_AsUTF8(
            PyTuple_GET_ITEM(code->co_localsplusnames, static_cast<Py_ssize_t>(i + skip)));
    }
    return fmt::format("args[{}]", i);
  };
  std::vector<SourceId> sources;
  for (size_t i = 0; i < positional; ++i)
    sources.push_back(interpreter.guards().root(static_cast<int32_t>(i + 1), label(i)));
  for (size_t i = 0; i < keyword_count; ++i)
    sources.push_back(
        interpreter.guards().root(static_cast<int32_t>(1 + positional + i),
                                  PyUnicode_AsUTF8(PyTuple_GET_ITEM(kwnames, static_cast<Py_ssize_t>(i)))));
  const std::span<PyObject* const> values = roots.subspan(1);
  Ref result;
  if (runs_its_own_code(named)) {
    Ref self;
    if (skip) {
      admit(interpreter, named, interpreter.guards().derived(SourceKind::MethodFunction, callable_source));
      self = admit(interpreter, PyMethod_GET_SELF(callable),
                   interpreter.guards().derived(SourceKind::MethodSelf, callable_source));
    }
    result = call_with_unread(interpreter, named, std::move(self), values, sources, kwnames);
  } else {
    for (size_t i = 0; i < positional; ++i)
      arguments.positional.push_back(admit(interpreter, values[i], sources[i]));
    for (size_t i = positional; i < values.size(); ++i)
      arguments.keywords.emplace_back(
          Ref::borrow(PyTuple_GET_ITEM(kwnames, static_cast<Py_ssize_t>(i - positional))),
          admit(interpreter, values[i], sources[i]));
    result = call(interpreter, function.get(), std::move(arguments));
  }
  if (!result) throw Break{raised_text(), "", BreakKind::Raised, {}};
  state.note_changes(interpreter.autocast_cache, interpreter.default_devices, *interpreter.capture);
  finish(interpreter, {{std::move(result)}}, EndKind::Return, -1);
  return std::move(interpreter.capture);
}

std::unique_ptr<Capture> capture_frame(Interpreter& interpreter, const FrameRoots& roots, int64_t stop_at) {
  ThreadState state;
  offer_element_symbols(interpreter);
  interpreter.handled_before = Ref::steal(PyErr_GetHandledException());
  interpreter.stop_at = stop_at;
  interpreter.externals.unguarded = roots.unguarded;
  Frame frame;
  frame.code_object = Ref::borrow(reinterpret_cast<PyObject*>(roots.code));
  frame.code = bytecode::decode(roots.code);
  frame.function = Ref::borrow(roots.function);
  frame.globals = Ref::borrow(roots.globals);
  frame.builtins = Ref::borrow(roots.builtins);
  interpreter.outermost = &frame;
  frame.next = static_cast<size_t>(frame.code->index_of_offset[static_cast<size_t>(roots.offset)]);
  // At the entry of a function only the arguments are bound. That is the same at every call.
  const bool is_at_entry = frame.next == static_cast<size_t>(frame.code->entry);
  int32_t index = 0;
  for (PyObject* local : roots.locals) {
    const std::string name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(roots.code->co_localsplusnames, index));
    const SourceId source = interpreter.guards().root(index++, name);
    frame.unread.push_back(local || !is_at_entry ? source : guards::kNoSource);
    frame.locals.push_back(Ref::borrow(local));
  }
  for (PyObject* entry : roots.stack) {
    const SourceId source = interpreter.guards().root(
        index, fmt::format("stack[{}]", index - static_cast<int32_t>(roots.locals.size())));
    ++index;
    if (!entry) interpreter.guards().require(source, guards::CheckKind::Unbound, nullptr);
    frame.unread_stack.push_back(entry ? source : guards::kNoSource);
    frame.stack.push_back(Ref::borrow(entry));
  }
  const Flow flow = run(interpreter, frame);
  if (flow == Flow::Raised) throw Break{raised_text(), "", BreakKind::Raised, {}};
  state.note_changes(interpreter.autocast_cache, interpreter.default_devices, *interpreter.capture);
  std::vector<Result> results;
  if (flow == Flow::Returned) {
    results.push_back({pop(frame)});
    frame.locals.clear();
    frame.stack.clear();
  } else {
    for (size_t i = 0; i < frame.locals.size(); ++i) results.push_back({frame.locals[i], frame.unread[i]});
    for (size_t i = 0; i < frame.stack.size(); ++i)
      results.push_back({std::move(frame.stack[i]), unread_on_stack(frame, i)});
  }
  Ref handled = cpy::handled_here();
  if (handled != state.handled()) {
    // At the end of a handler the exception before it is handled again. It lies on the stack, so it is
    // external.
    if (handled && !interpreter.externals.is_external(handled.get()))
      interpreter.stop("ends inside an exception handler");
    interpreter.capture->changes_handled = true;
    interpreter.handled_after = std::move(handled);
  }
  finish(interpreter, results, flow == Flow::Returned ? EndKind::Return : EndKind::Break,
         frame.instruction().offset);
  interpreter.outermost = nullptr;
  return std::move(interpreter.capture);
}

namespace {

// Raises RuntimeError in the program for what contradicts the user's marks.
template <class Counts>
void raise_violations(const sym::ShapeEnvironment& environment, const Counts& counts) {
  std::string text;
  std::vector<std::string> advices;
  for (const sym::MarkViolation& violation : environment.violations()) {
    if (!counts(environment.symbol(violation.symbol))) continue;
    if (!text.empty()) text += '\n';
    text += violation.text;
    if (!violation.asked_at.empty()) text += fmt::format("\n  at {}", violation.asked_at);
    if (std::ranges::find(advices, violation.advice) == advices.end()) advices.push_back(violation.advice);
  }
  if (text.empty()) return;
  for (const std::string& advice : advices) text += fmt::format("\n  {}", advice);
  PyErr_SetString(PyExc_RuntimeError, text.c_str());
  throw Interrupted{};
}

// Has each assertion checked behind the node that computes the last of its symbols, or before the graph runs.
void place_checks(const sym::ShapeEnvironment& environment, Capture& capture) {
  graph::Graph& graph = capture.recording.graph;
  std::unordered_map<int64_t, graph::NodeId> computed_by;
  for (const graph::NodeId n : graph.nodes.ids())
    for (const graph::ComputedSymbol& symbol : graph.nodes[n].computed)
      computed_by.emplace(symbol.variable.variable_id(), n);
  for (const sym::Assertion& assertion : environment.assertions()) {
    if (assertion.is_likely) {
      std::string text = environment.text(assertion.condition);
      if (!assertion.asked_at.empty()) text += fmt::format(" ({})", assertion.asked_at);
      capture.likely.push_back({assertion.condition, std::move(text)});
    }
    if (!environment.depends_on_graph(assertion.condition)) {
      capture.checks.push_back(assertion.condition);
      continue;
    }
    graph::NodeId last = graph::kNoNode;
    for (const Expr& variable : sym::variables(assertion.condition))
      if (const auto it = computed_by.find(variable.variable_id()); it != computed_by.end())
        last = std::max(last, it->second);
    if (last == graph::kNoNode) throw Unsupported("a check of a size that no operator computes");
    graph.nodes[last].checks.push_back(assertion.condition);
  }
}

// The caller reads the symbols once the graph has run: all of them, or those of templates.
void want_symbols(Capture& capture, bool all) {
  std::unordered_set<int64_t> wanted;
  for (const auto& computed : capture.computed)
    std::visit(
        [&](const auto& value) {
          for (const Expr& variable : sym::variables(value)) wanted.insert(variable.variable_id());
        },
        computed);
  for (graph::Node& node : capture.recording.graph.nodes)
    for (graph::ComputedSymbol& symbol : node.computed)
      symbol.is_wanted = all || wanted.contains(symbol.variable.variable_id());
}

template <class Visit>
void for_each_integer(TorchArgument& argument, const Visit& visit) {
  if (argument.kind == TorchArgumentKind::Integer) visit(argument);
  for (TorchArgument& item : argument.items) for_each_integer(item, visit);
}

// Integers of the program are written as the graph's sizes are, and their symbols become inputs.
void settle_program(TorchProgram& program, const sym::Facts& facts) {
  const auto settle = [&](TorchArgument& argument) {
    argument.integer = facts.simplify(argument.integer);
    for (const sym::Expr& variable : sym::variables(argument.integer))
      if (std::ranges::find(program.symbols, variable) == program.symbols.end())
        program.symbols.push_back(variable);
  };
  for (TorchCall& call : program.calls) {
    for (TorchArgument& argument : call.positional) for_each_integer(argument, settle);
    for (auto& [name, argument] : call.keywords) for_each_integer(argument, settle);
  }
}

// Guards the relations between symbols that the capture relies on. The graph's sizes get the form in which
// equal symbols are one, and ranges are as narrow as they are known to be.
void settle_symbols(Interpreter& interpreter) {
  if (!interpreter.numbers.has_symbols()) return;
  interpreter.numbers.symbols->environment.specialise_small_expressions();
  const sym::ShapeEnvironment& environment = interpreter.numbers.symbols->environment;
  raise_violations(environment, [](const sym::Symbol&) { return true; });
  const sym::Facts facts = environment.facts_of_guards();
  graph::Graph& graph = interpreter.capture->recording.graph;
  graph::map_expressions(graph, [&](const Expr& e) { return facts.simplify(e); });
  if (interpreter.capture->torch_program) settle_program(*interpreter.capture->torch_program, facts);
  interpreter.capture->multiples = facts.multiples();
  place_checks(environment, *interpreter.capture);
  // Backward passes are given the symbols of the forward pass.
  want_symbols(*interpreter.capture, interpreter.capture->joint.has_value());
  interpreter.numbers.symbol_sources.resize(environment.symbols().size());
  guards::SymbolGuards symbols(interpreter.numbers.symbol_sources, environment);
  for (const std::string& relation : symbols.texts()) log(Channel::Dynamic, "guard {}", relation);
  interpreter.guards().require_symbols(std::move(symbols));
}

void finish(Interpreter& interpreter, const std::vector<Result>& results, EndKind end, int32_t offset) {
  close_abandoned(interpreter);
  guard_identities(interpreter);
  TemplateBuilder builder(interpreter, *interpreter.capture);
  interpreter.capture->end = end;
  interpreter.capture->offset = offset;
  interpreter.capture->instructions = interpreter.total_executed;
  for (const Result& result : results)
    interpreter.capture->results.push_back(result.unread != guards::kNoSource
                                               ? builder.external(result.unread)
                                               : builder.build(result.value.get()));
  if (interpreter.handled_after)
    interpreter.capture->handled = builder.build(interpreter.handled_after.get());
  build_effects(interpreter, builder);
  for (PyObject* dict : interpreter.shadows.fresh_dicts)
    if (builder.makes(dict))
      interpreter.stop("the __dict__ of an object made in the captured region outlives it");
  for (const auto& [life, generator] : interpreter.calls.generators)
    if (!life.expired() && !builder.makes(generator) && has_cleanup(generator_data(generator)))
      interpreter.stop(
          "a generator with something left to do is held by what the captured region lets go of");
  if (const auto problem = problem_of_order(interpreter.capture->objects)) interpreter.stop(*problem);
  interpreter.shadows.closed_by = "a backward pass";
  for (const Ref& context : interpreter.calls.function_contexts)
    if (builder.shares_objects(cpy::materialized_dict(context.get())))
      interpreter.stop(
          "an object that a torch.autograd.Function keeps for its backward pass outlives the captured "
          "region");
  const std::vector<PyObject*>& outputs = builder.outputs();
  for (const Ref& tensor : interpreter.calls.hooked)
    if (std::ranges::find(outputs, tensor.get()) != outputs.end())
      interpreter.stop("a tensor with a hook outlives the captured region");
  for (const auto& [input, elements] : interpreter.recorder.looked_at())
    interpreter.guards().require(interpreter.capture->inputs.at(static_cast<size_t>(input)),
                                 guards::CheckKind::Elements,
                                 Ref::steal(runtime::wrap_tensor(elements)).get());
  const bool requires_grad = std::any_of(outputs.begin(), outputs.end(), [](PyObject* output) {
    return runtime::tensor_of(output).requires_grad();
  });
  if (interpreter.torch_calls) {
    interpreter.capture->torch_program = interpreter.torch_calls->finish(outputs);
    interpreter.capture->torch_problem = interpreter.torch_calls->problem();
  }
  if (end == EndKind::Break) interpreter.recorder.guard_formats(outputs);
  interpreter.capture->wants_elements = interpreter.recorder.wants_elements();
  const bool needs_backward = requires_grad && !interpreter.capture->torch_program;
  if (needs_backward) {
    autograd::DifferentiableRecording recorded =
        autograd::finish_with_backward(interpreter.recorder, outputs);
    interpreter.capture->recording = std::move(recorded.recording);
    interpreter.capture->joint = std::move(recorded.joint);
  } else {
    interpreter.capture->recording = interpreter.recorder.finish(outputs);
  }
  // An offset of as_strided counts from the start of the storage, but is recorded from the start of the
  // tensor. That of a view, if none is given, is the view's.
  const graph::Graph& recorded = interpreter.capture->recording.graph;
  const bool addresses_storage = std::ranges::any_of(recorded.nodes, [&](const graph::Node& node) {
    const ops::Traits& traits = ops::traits_of(*node.op);
    if (!traits.addresses_storage()) return false;
    const graph::NodeId maker = recorded.values[std::get<graph::ValueRef>(node.args.at(0)).id].node;
    const bool is_of_view = maker != graph::kNoNode && recorded.nodes[maker].op->is_view();
    return is_of_view ||
           !std::holds_alternative<graph::None>(node.args.at(static_cast<size_t>(traits.storage_offset)));
  });
  if (addresses_storage)
    for (const auto& [trace, real] : interpreter.externals.external_of)
      interpreter.guards().require_storage_offset(interpreter.externals.sources.at(trace),
                                                  runtime::tensor_of(real));
  settle_symbols(interpreter);
  if (!interpreter.capture->recording.foreign_constants.empty())
    interpreter.stop("uses a tensor that is reached past the captured code",
                     "pass it as an argument or keep it in an attribute");
}

}  // namespace

void raise_unbacked(const Interpreter& interpreter) {
  if (!interpreter.numbers.has_symbols()) return;
  raise_violations(interpreter.numbers.symbols->environment,
                   [](const sym::Symbol& symbol) { return symbol.mark.kind == sym::MarkKind::Unbacked; });
}

int Capture::traverse(visitproc visit, void* arg) const {
  int stopped = guards.traverse(visit, arg);
  const auto see = [&](const Template& made) { stopped = stopped ? stopped : made.traverse(visit, arg); };
  for (const Template& result : results) see(result);
  for (const ObjectTemplate& object : objects) {
    Py_VISIT(object.type.get());
    for (const Template& item : object.items) see(item);
    see(object.contents);
  }
  for (const Effect& effect : effects) {
    for (const Template* part : {&effect.object, &effect.key, &effect.value}) see(*part);
    for (const Template& item : effect.items) see(item);
    for (const Template& item : effect.front) see(item);
  }
  see(handled);
  return stopped;
}

}  // namespace oxy::eval
