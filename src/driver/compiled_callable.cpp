#include "driver/compiled_callable.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/config.h"
#include "base/error.h"
#include "base/log.h"
#include "base/timing.h"
#include "cpy/gil.h"
#include "cpy/thread.h"
#include "driver/capture_gate.h"
#include "driver/metrics.h"
#include "driver/segments.h"
#include "driver/stance.h"
#include "eval/capture/capturing.h"
#include "hook/hook.h"
#include "trace/trace_error.h"

namespace oxy::driver {

using cpy::Ref;

namespace {

std::set<CompiledCallable*>& live_callables() {
  static std::set<CompiledCallable*> callables;
  return callables;
}

PyObject*& unsupported_class() {
  static PyObject* unsupported = nullptr;
  return unsupported;
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

void raise_unsupported(const std::string& reason, const std::string& hint,
                       const std::vector<std::string>& stack) {
  std::string text = reason;
  if (!stack.empty()) text += fmt::format("\n  at {}", fmt::join(stack, "\n  called from "));
  if (!hint.empty()) text += fmt::format("\n  {}", hint);
  PyErr_SetString(unsupported_class() ? unsupported_class() : PyExc_RuntimeError, text.c_str());
}

}  // namespace

eval::CaptureOptions capture_options(const CallableOptions& options, const VaryingPlaces& varying,
                                     eval::PendingWarnings& warnings, CaptureGate& gate) {
  return {.torch_program = static_cast<bool>(options.custom_backend),
          .knows_elements = !options.custom_backend && !*options.elements_vary,
          .varying_numbers = options.custom_backend ? nullptr : varying.get(),
          .warnings = &warnings,
          .gate = gate.for_interpreter()};
}

void set_unsupported_class(PyObject* unsupported) {
  unsupported_class() = Py_NewRef(unsupported);
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
  has_breaks_ = gave_up_ = is_full_ = false;
  compiles_ = waits_ = 0;
  varying_ = {};
  *options_->elements_vary = false;
}

void reset_all() {
  // What is forgotten may hold the last reference to a callable.
  const std::set<CompiledCallable*> callables = live_callables();
  for (CompiledCallable* callable : callables)
    if (live_callables().contains(callable)) callable->reset();
  reset_segment_tables();
}

int CompiledCallable::traverse(visitproc visit, void* arg) const {
  Py_VISIT(target_.get());
  Py_VISIT(options_->custom_backend.callable.get());
  // Not if generators that calls gave hold it as well.
  if (options_.use_count() == 1 && options_->segments.use_count() == 1)
    if (const int stopped = options_->segments->traverse(visit, arg)) return stopped;
  for (const WholeEntry& whole : entries_) {
    Py_VISIT(whole.kwnames.get());
    // What a call is inside of is not this object's alone.
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
  if (RegionWatch* watch = RegionWatch::current()) watch->visit(&entry, [&] { return entry.describe(); });
  auto results = entry.run();
  if (!results) return call_eager(args, nargsf, kwnames);
  ++metrics().calls_compiled;
  if (PyErr_Occurred()) return nullptr;
  return run_in_segments(results->front().release(), options_);
}

bool CompiledCallable::WholeEntry::takes(size_t given, PyObject* names) const {
  return positional == given &&
         (kwnames == names ||
          (kwnames && names && PyObject_RichCompareBool(kwnames.get(), names, Py_EQ) == 1));
}

PyObject* CompiledCallable::call(PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  if (gave_up_ || compiling_ || cpy::is_traced(PyThreadState_Get()) || stance() == Stance::ForceEager)
    return call_eager(args, nargsf, kwnames);
  if (has_breaks_) return call_in_segments(target_.get(), args, nargsf, kwnames, options_);
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
  if (state.needs_eager()) return call_eager(args, nargsf, kwnames);
  const auto fits = [&](const WholeEntry& whole) {
    return whole.takes(positional, kwnames) && whole.entry->matches(span, state);
  };
  if (const std::shared_ptr<Entry> entry = entries_.find(fits))
    return call_entry(*entry, args, nargsf, kwnames);
  if (is_full_) return call_eager(args, nargsf, kwnames);
  return compile_and_call(span, args, nargsf, kwnames);
}

// A call that fills a cache is left to eager: the next one is captured whole. Who asks for an explanation is
// shown the break.
bool CompiledCallable::leaves_to_eager(const eval::Break& stop) {
  return options_->wait_for_caches && stop.missing.cache && !RegionWatch::current() &&
         waits_++ < options_->recompile_limit;
}

void CompiledCallable::learn(const guards::Changes& changes) {
  varying_.learn(changes.constants);
  if (changes.elements) *options_->elements_vary = true;
}

PyObject* CompiledCallable::compile_and_call(std::span<PyObject* const> roots, PyObject* const* args,
                                             size_t nargsf, PyObject* kwnames) {
  const auto positional = static_cast<size_t>(PyVectorcall_NARGS(nargsf));
  const GlobalState state = GlobalState::current();
  if (stance() == Stance::EagerOnRecompile || cpy::is_finalizing()) return call_eager(args, nargsf, kwnames);
  std::string reason = "it was not compiled before";
  if (!entries_.empty())
    reason = entries_.most_recent().takes(positional, kwnames)
                 ? entries_.most_recent().entry->explain_failure(roots, state)
                 : "called with other arguments";
  if (stance() == Stance::FailOnRecompile) {
    raise_would_compile(name_, reason);
    return nullptr;
  }
  if (!entries_.empty()) {
    log(Channel::Recompiles, "{}: {}", name_, reason);
    ++metrics().recompiles;
    metrics().recompile_reasons.push_back(fmt::format("{}: {}", name_, reason));
    const WholeEntry& recent = entries_.most_recent();
    if (recent.takes(positional, kwnames)) learn(recent.entry->changes(roots, state));
    if (compiles_ >= options_->recompile_limit) {
      is_full_ = true;
      reason_ = BreakRecord{fmt::format("compiled {} times; the last reason: {}", compiles_, reason)};
      warn(fmt::format("{} was compiled {} times, other calls run in eager from now on; the last reason: {}",
                       name_, compiles_, reason));
      return call_eager(args, nargsf, kwnames);
    }
  }
  compiling_ = true;
  struct Done {
    bool& flag;
    ~Done() { flag = false; }
  } done{compiling_};
  std::shared_ptr<Entry> entry;
  std::string hint;
  reason.clear();
  std::vector<std::string> stack;
  bool is_break = false, waits = false;
  try {
    const hook::HookPause pause;  // capture may run Python code
    std::unique_ptr<eval::Capture> capture;
    eval::PendingWarnings warnings;
    for (bool again = true; std::exchange(again, false);) {
      Span span("capture");
      CaptureGate gate;
      eval::Interpreter interpreter(capture_options(*options_, varying_, warnings, gate));
      try {
        capture = eval::capture_call(interpreter, roots, kwnames);
        again = warnings.captures_again();
        if (again)
          capture.reset();
        else
          capture->guards.freeze(roots);
      } catch (const eval::Break& stop) {
        again = warnings.captures_again() || (stop.is_of_varying_number() && varying_.give_up());
        if (again) continue;
        if (leaves_to_eager(stop)) {
          waits = true;
          break;
        }
        is_break = true;
        reason = stop.reason;
        hint = stop.hint;
        stack = interpreter.break_lines;
      }
    }
    if (!warnings.show()) throw eval::Interrupted{};
    if (capture) {
      entry = std::make_shared<Entry>(std::move(capture), state, options_->compile, options_->custom_backend,
                                      name_);
      ++compiles_;
    }
  } catch (const eval::Interrupted&) {
    return nullptr;
  } catch (const Unsupported& unsupported) {
    reason = unsupported.reason();
    hint = unsupported.hint();
  } catch (const std::exception& error) {
    const bool is_raised = trace::is_python_error(error);
    if (is_raised && PyErr_Occurred()) return nullptr;  // a signal handler's, raised inside a torch function
    PyErr_Clear();
    if (!is_raised && strict()) {
      PyErr_Format(PyExc_RuntimeError, "oxyfuel internal error: %s", error.what());
      return nullptr;
    }
    if (!is_raised)
      warn(fmt::format("internal error, {} runs in eager: {}\nPlease report it.", name_, error.what()));
    reason = error.what();
  }
  PyErr_Clear();
  if (waits) {
    compiling_ = false;
    return call_eager(args, nargsf, kwnames);
  }
  if (entry) {
    if (!entry->matches(roots, state)) {
      if (cpy::has_other_threads())
        return call_eager(args, nargsf, kwnames);  // which may have written meanwhile
      if (strict()) {
        PyErr_Format(PyExc_RuntimeError, "oxyfuel internal error: the guards of a new capture fail: %s",
                     entry->explain_failure(roots, state).c_str());
        return nullptr;
      }
      gave_up_ = true;
      return call_eager(args, nargsf, kwnames);
    }
    entries_.add({entry, Ref::borrow(kwnames), positional});
    return call_entry(*entry, args, nargsf, kwnames);
  }
  count_break(reason, hint, stack);
  if (options_->fullgraph) {
    raise_unsupported(reason, hint, stack);
    return nullptr;
  }
  if (!is_break) {
    gave_up_ = true;
    reason_ = BreakRecord{reason, hint, stack};
    return call_eager(args, nargsf, kwnames);
  }
  has_breaks_ = true;
  compiling_ = false;
  return call_in_segments(target_.get(), args, nargsf, kwnames, options_);
}

void CompiledCallable::watch_eager() const {
  if (RegionWatch* watch = RegionWatch::current())
    watch->visit(this, [&] { return Region{.function = name_, .end = reason_}; });
}

}  // namespace oxy::driver
