#include "driver/calls/compiled_callable.h"

#include <algorithm>
#include <set>

#include "base/log.h"
#include "cpy/gil.h"
#include "cpy/thread.h"
#include "driver/calls/segments.h"
#include "driver/calls/specified_call.h"
#include "driver/state/capture_gate.h"
#include "driver/state/metrics.h"
#include "driver/state/stance.h"
#include "eval/capture/capturing.h"
#include "runtime/device/device.h"

namespace oxy::driver {

using cpy::Ref;

namespace {

std::set<CompiledCallable*>& live_callables() {
  static std::set<CompiledCallable*> callables;
  return callables;
}

std::string callable_name(PyObject* target) {
  Ref name = Ref::steal(PyObject_GetAttrString(target, "__qualname__"));
  if (!name) {
    PyErr_Clear();
    name = Ref::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(target)), "__name__"));
  }
  const char* text = name && PyUnicode_Check(name.get()) ? PyUnicode_AsUTF8(name.get()) : nullptr;
  if (!text) PyErr_Clear();
  return text ? text : "callable";
}

}  // namespace

eval::CaptureOptions capture_options(const CallableOptions& options, const VaryingPlaces& varying,
                                     const CaptureWay& way, eval::PendingWarnings& warnings,
                                     CaptureGate& gate) {
  const bool is_custom = static_cast<bool>(options.custom_backend);
  const bool all_vary = options.dynamic == Dynamic::Always && !varying.given_up();
  const auto* const sizes = options.dynamic == Dynamic::Never ? nullptr : varying.sizes();
  const bool guesses = options.dynamic == Dynamic::Changed && way.guesses_sizes && varying.all_sizes();
  PyObject* const specification = varying.given_up() ? nullptr : options.dynamic_shapes.get();
  return {.torch_program = is_custom,
          .knows_elements = !is_custom && !*options.elements_vary,
          .varying_elements = is_custom ? std::nullopt : std::optional(way.elements),
          .varying_numbers = varying.numbers(),
          .tells_that_it_compiles = way.tells_that_it_compiles,
          .symbols = (options.dynamic != Dynamic::Never || specification != nullptr) && !varying.given_up(),
          .data_symbols = options.dynamic != Dynamic::Never && !is_custom,
          .varying_sizes = sizes,
          .all_sizes_vary = all_vary || guesses,
          .all_numbers_vary = all_vary,
          .specified_sizes = specification != nullptr ? SpecifiedCall::sizes(specification) : nullptr,
          .warnings = &warnings,
          .gate = gate.for_interpreter()};
}

CompiledCallable::CompiledCallable(PyObject* target, const CallableOptions& options)
    : target_(Ref::borrow(target)),
      options_(std::make_shared<const CallableOptions>(options)),
      name_(callable_name(target)) {
  live_callables().insert(this);
}

CompiledCallable::~CompiledCallable() {
  live_callables().erase(this);
}

void CompiledCallable::reset() {
  const auto forgotten = entries_.take_all();
  site_ = {};
  *options_->elements_vary = false;
}

void reset_all() {
  // Dropped entries may hold the last reference to a callable.
  const std::set<CompiledCallable*> callables = live_callables();
  for (CompiledCallable* callable : callables)
    if (live_callables().contains(callable)) callable->reset();
  reset_segment_tables();
}

int CompiledCallable::traverse(visitproc visit, void* arg) const {
  Py_VISIT(target_.get());
  Py_VISIT(options_->custom_backend.callable.get());
  Py_VISIT(options_->dynamic_shapes.get());
  // Generators that calls returned may share the options. Then this object does not own them alone.
  if (options_.use_count() == 1 && options_->segments.use_count() == 1)
    if (const int stopped = options_->segments->traverse(visit, arg)) return stopped;
  for (const WholeEntry& whole : entries_) {
    Py_VISIT(whole.kwnames.get());
    // A call that is running shares its entry.
    if (whole.entry.use_count() > 1) continue;
    if (const int stopped = whole.entry->capture().traverse(visit, arg)) return stopped;
  }
  return 0;
}

PyObject* CompiledCallable::call_eager(PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  ++metrics().calls_eager;
  watch_eager();
  return PyObject_Vectorcall(target_.get(), args, nargsf, kwnames);
}

PyObject* CompiledCallable::call_entry(Entry& entry, PyObject* const* args, size_t nargsf,
                                       PyObject* kwnames) {
  const runtime::Readiness readiness = entry.readiness();
  if (readiness == runtime::Readiness::Failed) return call_failed(entry, args, nargsf, kwnames);
  if (RegionWatch* watch = RegionWatch::current()) watch->visit(&entry, [&] { return entry.describe(); });
  if (readiness == runtime::Readiness::Pending) {
    ++metrics().calls_eager;
    return PyObject_Vectorcall(target_.get(), args, nargsf, kwnames);
  }
  auto results = entry.run();
  if (!results) {
    note_unmet(site_, entry, *options_);
    return call_eager(args, nargsf, kwnames);
  }
  ++metrics().calls_compiled;
  if (PyErr_Occurred()) return nullptr;
  return run_in_segments(results->front().release(), options_);
}

PyObject* CompiledCallable::call_failed(const Entry& entry, PyObject* const* args, size_t nargsf,
                                        PyObject* kwnames) {
  if (end_of_failed(site_, name_, entry.failure()) == SessionEnd::Raised) return nullptr;
  if (options_->fullgraph) {
    site_.state = SiteState::Open;  // the entry stays: the next call raises this again
    raise_unsupported(*site_.reason);
    return nullptr;
  }
  return call_eager(args, nargsf, kwnames);
}

bool CompiledCallable::WholeEntry::takes(size_t given, PyObject* names) const {
  return positional == given &&
         (kwnames == names ||
          (kwnames && names && PyObject_RichCompareBool(kwnames.get(), names, Py_EQ) == 1));
}

PyObject* CompiledCallable::call(PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  if (site_.state == SiteState::Eager || compiling_ || cpy::is_traced(PyThreadState_Get()) ||
      stance() == Stance::ForceEager)
    return call_eager(args, nargsf, kwnames);
  if (site_.state == SiteState::Breaks) {
    const SpecifiedCall specified(options_->dynamic_shapes.get(), target_.get(), args, nargsf, kwnames);
    return call_in_segments(target_.get(), args, nargsf, kwnames, options_);
  }
  const auto positional = static_cast<size_t>(PyVectorcall_NARGS(nargsf));
  const size_t count = positional + (kwnames ? static_cast<size_t>(PyTuple_GET_SIZE(kwnames)) : 0);
  constexpr size_t kInline = 16;
  PyObject* inline_roots[kInline];
  std::vector<PyObject*> many;
  PyObject** roots = inline_roots;
  if (count + 1 > kInline) {
    many.resize(count + 1);
    roots = many.data();
  }
  roots[0] = target_.get();
  std::copy(args, args + count, roots + 1);
  const std::span<PyObject* const> span(roots, count + 1);
  const GlobalState state = GlobalState::current();
  if (const char* reason = state.why_eager()) {
    log(Channel::Breaks, "{} runs in eager: {}", name_, reason);
    if (RegionWatch* watch = RegionWatch::current())
      watch->visit(this, [&] { return Region{.function = name_, .end = BreakRecord{.reason = reason}}; });
    return call_eager(args, nargsf, kwnames);
  }
  const auto fits = [&](const WholeEntry& whole) {
    return whole.takes(positional, kwnames) && whole.entry->matches(span, state);
  };
  if (const std::shared_ptr<Entry> entry = entries_.find(fits))
    return call_entry(*entry, args, nargsf, kwnames);
  if (site_.state == SiteState::Full) return call_eager(args, nargsf, kwnames);
  return compile_and_call(span, args, nargsf, kwnames);
}

PyObject* CompiledCallable::compile_and_call(std::span<PyObject* const> roots, PyObject* const* args,
                                             size_t nargsf, PyObject* kwnames) {
  const SpecifiedCall specified(options_->dynamic_shapes.get(), target_.get(), args, nargsf, kwnames);
  const auto positional = static_cast<size_t>(PyVectorcall_NARGS(nargsf));
  runtime::notice_devices_in_use();
  CaptureRequest request{.subject = name_,
                         .name = name_,
                         .roots = roots,
                         .state = GlobalState::current(),
                         .is_whole = true,
                         .capture = [&](eval::Interpreter& interpreter, int64_t) {
                           return eval::capture_call(interpreter, roots, kwnames);
                         }};
  for (const WholeEntry& whole : entries_)
    if (whole.takes(positional, kwnames)) request.comparable.push_back(whole.entry);
  if (request.comparable.empty() && !entries_.empty()) request.why_unlike = "called with other arguments";
  compiling_ = true;
  SessionResult result;
  {
    struct Done {
      bool& flag;
      ~Done() { flag = false; }
    } done{compiling_};
    result = capture_at(site_, request, *options_);
  }
  if (result.end == SessionEnd::Raised) return nullptr;
  if (result.end == SessionEnd::Compiled) {
    entries_.add({result.entry, Ref::borrow(kwnames), positional});
    return call_entry(*result.entry, args, nargsf, kwnames);
  }
  const bool is_refused = site_.state == SiteState::Breaks || site_.state == SiteState::Eager;
  if (options_->fullgraph && is_refused) {
    site_.state = SiteState::Open;
    const BreakRecord reason = *site_.reason;  // eager may run Python code that comes back here
    // The exception is the program's own, and says more than the reason does. If it does not come again, the
    // program has run.
    if (result.program_raises) return call_eager(args, nargsf, kwnames);
    raise_unsupported(reason);
    return nullptr;
  }
  if (result.end == SessionEnd::Break)
    return call_in_segments(target_.get(), args, nargsf, kwnames, options_);
  return call_eager(args, nargsf, kwnames);
}

void CompiledCallable::watch_eager() const {
  if (RegionWatch* watch = RegionWatch::current())
    watch->visit(this, [&] { return Region{.function = name_, .end = site_.reason}; });
}

}  // namespace oxy::driver
