#include "driver/calls/capture_session.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/config.h"
#include "base/error.h"
#include "base/interruption.h"
#include "base/log.h"
#include "base/timing.h"
#include "cpy/gil.h"
#include "cpy/thread.h"
#include "driver/calls/compiled_callable.h"
#include "driver/state/advice.h"
#include "driver/state/capture_gate.h"
#include "driver/state/regions.h"
#include "driver/state/stance.h"
#include "eval/capture/capturing.h"
#include "hook/hook.h"
#include "torch_api/error_text.h"
#include "trace/tensors/trace_error.h"

namespace oxy::driver {

namespace {

constexpr int kChangesOfUnguarded = 2;
// What a program does in eager may be a loop that compilers are spared.
constexpr size_t kMostNodesOfEager = 20'000;

struct SymbolsOfCapture {
  bool any = false;
  std::vector<std::string> promised;  // ShapeEnvironment::promised_symbols
  std::vector<std::string> lines;     // where a capture that failed was, innermost first
};

// The last capture that a site may make relies on no elements.
bool may_rely_on_elements(const CaptureSite& site, const CallableOptions& options) {
  return site.compiles + 1 < options.recompile_limit;
}

void change(CaptureSite& site, SiteState state, BreakRecord reason) {
  site.state = state;
  site.reason = std::move(reason);
}

SessionResult give_up(CaptureSite& site, BreakRecord reason) {
  count_break(reason.reason, reason.hint, reason.stack);
  change(site, SiteState::Eager, std::move(reason));
  return {};
}

// An error that is neither the user's nor what the compiler does not handle.
SessionResult failed(CaptureSite& site, const std::string& subject, const std::exception& error) {
  const bool is_raised = trace::is_python_error(error);
  if (is_raised && PyErr_Occurred()) return {SessionEnd::Raised};  // a signal handler raised inside of torch
  PyErr_Clear();
  if (is_raised) return give_up(site, {torch_api::error_text(error)});
  if (strict()) {
    site.state = SiteState::Eager;
    PyErr_Format(PyExc_RuntimeError, "oxyfuel internal error: %s", torch_api::error_text(error));
    return {SessionEnd::Raised};
  }
  warn(fmt::format("internal error, {} runs in eager: {}\nPlease report it.", subject,
                   torch_api::error_text(error)));
  return give_up(site, {torch_api::error_text(error)});
}

class Session {
 public:
  Session(CaptureSite& site, const CaptureRequest& request, const CallableOptions& options)
      : site_(site), request_(request), options_(options) {}

  SessionResult run() {
    if (stance() == Stance::EagerOnRecompile || cpy::is_finalizing()) return {};
    if (stance() == Stance::FailOnRecompile) {
      raise_would_compile(request_.subject, is_first() ? "it was not compiled before" : why_again());
      return {SessionEnd::Raised};
    }
    if (site_.compiles >= options_.recompile_limit) return fill();
    if (!is_first()) learn();
    try {
      const hook::HookPause pause;  // capture may run Python code
      const Interruptible interruptible;
      return captured_and_compiled();
    } catch (const eval::Interrupted&) {
      return {SessionEnd::Raised};
    } catch (const Unsupported& unsupported) {
      return give_up(site_, {unsupported.reason(), unsupported.hint()});
    } catch (const std::exception& error) {
      return failed(site_, request_.subject, error);
    }
  }

 private:
  // What cannot be compiled with symbols is captured once more: with those alone that were seen to vary, and
  // then with numbers.
  SessionResult captured_and_compiled() {
    for (;;) {
      try {
        return compiled(captured());
      } catch (const Unsupported& unsupported) {
        if (!take_fewer_symbols(unsupported.reason())) throw;
      } catch (const c10::Error& error) {  // code of PyTorch's that knows numbers alone
        if (!take_fewer_symbols(error.what_without_backtrace())) throw;
      } catch (const std::exception& error) {
        if (!trace::is_cannot_trace(error) || !take_fewer_symbols(torch_api::error_text(error))) throw;
      }
    }
  }

  // Whether sizes are symbols that were never seen to vary.
  bool guesses_sizes(const CaptureWay& way) const {
    return options_.dynamic == Dynamic::Changed && way.guesses_sizes && way.has_numbers_that_vary &&
           site_.varying.all_sizes();
  }

  // For what the last capture had. False: it had none, or none that can be left out.
  bool take_fewer_symbols(const std::string& reason) {
    if (!symbols_.any || site_.varying.given_up()) return false;
    if (guesses_sizes(site_.way)) {
      log(Channel::Dynamic, "{}: sizes that were not seen to change are numbers: {}", request_.name, reason);
      site_.way.guesses_sizes = false;
    } else {
      give_up_symbols(reason, symbols_);
    }
    return true;
  }

  // The site is captured with numbers alone from now on. `symbols`: of the capture that had some.
  void give_up_symbols(const std::string& reason, const SymbolsOfCapture& symbols) {
    for (const Channel channel : {Channel::Recompiles, Channel::Dynamic})
      log(channel, "{}: sizes and numbers are constants: {}", request_.name, reason);
    site_.varying.give_up();
    site_.why_numbers = reason;
    if (!symbols.lines.empty()) site_.why_numbers += fmt::format(", at {}", symbols.lines.front());
    if (symbols.promised.empty()) return;
    std::string text = fmt::format("{}, but {} is compiled for each size anew: {}",
                                   fmt::join(symbols.promised, ", "), request_.name, reason);
    if (!symbols.lines.empty())
      text += fmt::format("\n  at {}", fmt::join(symbols.lines, "\n  called from "));
    warn(text);
  }

  bool is_first() const { return request_.comparable.empty() && request_.why_unlike.empty(); }

  // The most recent entry that the call fits but for numbers, or else the most recent one. Null: none can be
  // compared. A program may take turns between two kinds of calls, as generate() does.
  Entry* nearest() const {
    for (const std::shared_ptr<Entry>& entry : request_.comparable)
      if (entry->changes(request_.roots, request_.state).only_numbers) return entry.get();
    return request_.comparable.empty() ? nullptr : request_.comparable.front().get();
  }

  std::string why_again() const {
    Entry* const entry = nearest();
    return entry ? entry->explain_failure(request_.roots, request_.state) : request_.why_unlike;
  }

  SessionResult fill() {
    const std::string reason = is_first() ? "a weight changed" : why_again();
    if (request_.warns_when_full)
      warn(fmt::format("{} was compiled {} times, other calls run in eager from now on; the last reason: {}",
                       request_.subject, site_.compiles, reason));
    change(site_, SiteState::Full,
           BreakRecord{fmt::format("compiled {} times; the last reason: {}", site_.compiles, reason)});
    return {};
  }

  // What may avoid such a compilation, or why nothing does. Empty: that is not known, as where more than
  // numbers has changed.
  std::string advice(const guards::Changes& changes) const {
    if (!changes.only_numbers) return "";
    if (site_.varying.given_up())
      return site_.why_numbers.empty()
                 ? ""
                 : fmt::format(" (each one is compiled, as symbols were given up: {})", site_.why_numbers);
    if (changes.sizes.empty() && changes.constants.empty())
      return " (what is asked of symbols is compiled once for each answer)";
    if (changes.sizes.empty() &&
        std::ranges::all_of(changes.constants, &guards::ChangedConstant::is_calculated))
      return " (only a number can be used there: each one is compiled)";
    if (options_.dynamic == Dynamic::Always) return "";
    if (options_.dynamic == Dynamic::Never) return " (dynamic=False: each one is compiled)";
    const bool is_one_size = changes.constants.empty() && changes.sizes.size() == 1 &&
                             changes.sizes.front().part == guards::IntegerPart::Size;
    return is_one_size ? fmt::format(" (dynamic=True or a mark of dimension {} may avoid this)",
                                     changes.sizes.front().dimension)
                       : " (dynamic=True may avoid this)";
  }

  // Learns what has changed since the last capture, so that it is no constant of this one.
  void learn() {
    ++metrics().recompiles;
    Entry* const entry = nearest();
    const guards::Changes changes =
        entry ? entry->changes(request_.roots, request_.state) : guards::Changes();
    metrics().recompile_reasons.push_back(
        fmt::format("{}: {}{}", request_.name, why_again(), advice(changes)));
    log(Channel::Recompiles, "{}", metrics().recompile_reasons.back());
    if (!entry) return;
    site_.varying.learn(changes);
    if (changes.elements) *options_.elements_vary = true;
    for (const guards::ChangedConstant& changed : changes.constants)
      if (++site_.changes[changed.place] >= kChangesOfUnguarded) site_.unguarded.insert(changed.place);
  }

  struct Captured {
    std::unique_ptr<eval::Capture> capture;  // null: `otherwise`
    SessionEnd otherwise = SessionEnd::Eager;
    bool program_raises = false;
    std::optional<BreakRecord> ended_by;  // why the capture ends before its frame does
    eval::MissingAnswer missing;          // the answer that was missing, if it ended for that
  };

  // The end of a try that gave no capture.
  struct Stopped {
    eval::Break stop;
    std::vector<std::string> lines;
    int64_t executed = 0;
    bool had_varying_numbers = false;
    bool wants_elements = false;
    bool was_told_that_it_compiles = false;
    SymbolsOfCapture symbols;
  };

  bool may_rely_on_elements() const { return driver::may_rely_on_elements(site_, options_); }

  // What may be the reason why tries ended in breaks.
  struct Suspects {
    bool elements = false;  // that are not known
    bool answer = false;    // to torch.compiler.is_compiling()
    bool numbers = false;   // that vary
  };

  void suspect(const Stopped& stopped, Suspects& suspects) const {
    const bool is_missing = stopped.stop.kind == eval::BreakKind::MissingAnswer;
    const bool raised = stopped.stop.kind == eval::BreakKind::Raised;
    suspects.elements |= stopped.wants_elements && may_rely_on_elements();
    // What a program does only for compilers may also be what cannot be captured.
    suspects.answer |= stopped.was_told_that_it_compiles && !is_missing && (raised || request_.is_whole);
    suspects.numbers |= stopped.had_varying_numbers;
  }

  // The ways to capture, the best one first.
  std::vector<CaptureWay> ways(CaptureWay base, const Suspects& suspects) const {
    using trace::VaryingElements;
    std::vector<CaptureWay> result = {base};
    const auto add = [&](bool has_numbers, VaryingElements elements, bool tells) {
      result.push_back({has_numbers, elements, tells, base.guesses_sizes});
    };
    const bool has_numbers = base.has_numbers_that_vary, tells = base.tells_that_it_compiles;
    VaryingElements last = base.elements;
    if (suspects.elements || base.elements == VaryingElements::Symbols) {
      if (base.elements == VaryingElements::Unknown && has_numbers)
        add(true, VaryingElements::Symbols, tells);
      last = VaryingElements::Numbers;
      add(has_numbers, last, tells);
    }
    if (suspects.answer) add(has_numbers, base.elements, false);
    if (has_numbers && suspects.numbers) {
      if (guesses_sizes(base)) result.push_back({true, base.elements, tells, false});
      add(false, last, tells);
      if (suspects.answer) add(false, last, false);
    }
    return result;
  }

  // Notes at the end of a try, however it ends, which symbols there were.
  struct NotesSymbols {
    const eval::Interpreter& interpreter;
    SymbolsOfCapture& symbols;
    ~NotesSymbols() {
      symbols = {};
      if (!interpreter.numbers.has_symbols()) return;
      symbols.any = true;
      symbols.promised = interpreter.numbers.symbols->environment.promised_symbols();
      symbols.lines = interpreter.break_lines;
    }
  };

  // Where layouts depend on strides of dimensions of size 1: sizes that have become numbers are such from the
  // beginning of the next try. Whether there are any.
  bool fix_sizes(const eval::Interpreter& interpreter, const guards::GuardSet& guards) {
    const eval::Numbers& numbers = interpreter.numbers;
    if (!numbers.symbols || !numbers.symbols->needs_exact_ones) return false;
    const sym::ShapeEnvironment& environment = numbers.symbols->environment;
    bool any = false;
    for (const sym::Symbol& symbol : environment.symbols()) {
      const auto id = static_cast<size_t>(symbol.variable.variable_id());
      if (id >= numbers.symbol_sources.size() || !environment.simplify(symbol.variable).is_constant())
        continue;
      const guards::SymbolSource& from = numbers.symbol_sources[id];
      if (from.part != guards::IntegerPart::Size || from.source == guards::kNoSource) continue;
      any |= fixed_sizes_.insert({guards.describe(from.source), from.part, from.dimension}).second;
    }
    return any;
  }

  // One try. Null: `stopped`.
  std::unique_ptr<eval::Capture> attempt(eval::PendingWarnings& warnings, CaptureWay way, int64_t stop_at,
                                         Stopped& stopped) {
    VaryingPlaces no_numbers;
    no_numbers.give_up();
    const VaryingPlaces& numbers = way.has_numbers_that_vary ? site_.varying : no_numbers;
    Span span("capture");
    CaptureGate gate;
    try {
      auto capture = attempt_within(gate, warnings, numbers, way, stop_at, stopped);
      gate.raise_interruption();
      return capture;
    } catch (...) {
      gate.raise_interruption();
      throw;
    }
  }

  // attempt(), but for what a signal's handler raises meanwhile.
  std::unique_ptr<eval::Capture> attempt_within(CaptureGate& gate, eval::PendingWarnings& warnings,
                                                const VaryingPlaces& numbers, CaptureWay way, int64_t stop_at,
                                                Stopped& stopped) {
    eval::CaptureOptions options = capture_options(options_, numbers, way, warnings, gate);
    // Behind a break stand tensors whose sizes follow from those that the user has named.
    if (options.specified_sizes && !request_.is_whole && options_.dynamic != Dynamic::Never)
      options.all_sizes_vary = true;
    options.fixed_sizes = &fixed_sizes_;
    if (!way.tells_that_it_compiles) options.max_nodes = std::min(options.max_nodes, kMostNodesOfEager);
    eval::Interpreter interpreter(options);
    const NotesSymbols notes{interpreter, symbols_};
    try {
      auto capture = request_.capture(interpreter, stop_at);
      only_asks_ = only_asks(interpreter, *capture);
      fixes_sizes_ = fix_sizes(interpreter, capture->guards);
      return capture;
    } catch (eval::Break& stop) {
      PyErr_Clear();
      eval::raise_unbacked(interpreter);
      stopped = {std::move(stop),
                 interpreter.break_lines,
                 interpreter.executed,
                 !interpreter.numbers.varying.empty() || interpreter.numbers.has_symbols(),
                 interpreter.recorder.wants_elements(),
                 interpreter.calls.told_that_it_compiles};
      return nullptr;
    } catch (const std::exception&) {
      eval::raise_unbacked(interpreter);
      throw;
    }
  }

  // The same. A way that is tried because another one ended in a break may fail as it likes.
  std::unique_ptr<eval::Capture> attempt_otherwise(eval::PendingWarnings& warnings, CaptureWay way,
                                                   int64_t stop_at, Stopped& stopped) {
    try {
      return attempt(warnings, way, stop_at, stopped);
    } catch (const eval::Interrupted&) {
      throw;
    } catch (const InternalError&) {
      throw;
    } catch (const std::exception& error) {
      if (PyErr_Occurred()) throw;
      stopped = {.stop = {.reason = torch_api::error_text(error)},
                 .executed = -1,
                 .had_varying_numbers = symbols_.any};
      return nullptr;
    }
  }

  // A whole call is captured once. A segment with a break is captured once more, up to the breaking
  // instruction. If an operator has warned, the try is repeated. If varying numbers or elements may have
  // caused the break, it is repeated in other ways, and the one counts that comes furthest.
  Captured captured() {
    Captured result;
    eval::PendingWarnings warnings;
    int64_t stop_at = -1;
    CaptureWay way = site_.way;
    if (!may_rely_on_elements()) way.elements = trace::VaryingElements::Unknown;
    std::vector<CaptureWay> tried;
    Suspects suspects;
    std::optional<Stopped> first, best;  // of the ways that were tried
    CaptureWay best_way;
    for (;;) {
      Stopped stopped;
      result.capture = first ? attempt_otherwise(warnings, way, stop_at, stopped)
                             : attempt(warnings, way, stop_at, stopped);
      stopped.symbols = symbols_;
      if (warnings.captures_again() || (result.capture && fixes_sizes_)) continue;
      if (result.capture) {
        take_way(way, first);
        if (only_asks_) {
          site_.state = SiteState::Eager;
          result.capture.reset();
        }
        break;
      }
      if (first) log(Channel::Dynamic, "{}: another way ends: {}", request_.name, stopped.stop.reason);
      tried.push_back(way);
      suspect(stopped, suspects);
      const std::vector<CaptureWay> possible = ways(tried.front(), suspects);
      const auto next = std::ranges::find_if(
          possible, [&](const CaptureWay& other) { return std::ranges::find(tried, other) == tried.end(); });
      if (next != possible.end() && !first) first = stopped;
      // What the program does if it is told otherwise is no part of the same run.
      const bool is_same_run = best_way.tells_that_it_compiles == way.tells_that_it_compiles;
      const bool is_better = best && !request_.is_whole &&
                             (is_same_run ? stopped.executed > best->executed : !way.tells_that_it_compiles);
      if (!best || is_better) {
        best = std::move(stopped);
        best_way = way;
      }
      if (next != possible.end()) {
        way = *next;
        continue;
      }
      way = best_way;
      take_way(way, first);
      const Stopped furthest = *std::exchange(best, std::nullopt);
      first.reset();
      tried.clear();
      suspects = {};
      if (leaves_to_eager(furthest.stop) || !take_break(furthest, stop_at, result)) break;
    }
    if (!warnings.show()) throw eval::Interrupted{};
    return result;
  }

  // `first`: where the first way ended that was tried.
  void take_way(CaptureWay way, const std::optional<Stopped>& first) {
    site_.way = way;
    if (!way.has_numbers_that_vary && first) give_up_symbols(first->stop.reason, first->symbols);
  }

  // Whether to capture once more, up to `stop_at`.
  bool take_break(const Stopped& stopped, int64_t& stop_at, Captured& result) {
    const eval::Break& stop = stopped.stop;
    BreakRecord record{stop.reason, stop.hint, stopped.lines};
    count_break(record.reason, record.hint, record.stack);
    if (request_.is_whole) {
      change(site_, SiteState::Breaks, std::move(record));
      result.otherwise = SessionEnd::Break;
      result.program_raises = stop.kind == eval::BreakKind::Raised;
      return false;
    }
    const bool is_second = stop_at >= 0;
    if (is_second || (stop.kind == eval::BreakKind::TooLong && stopped.lines.size() == 1)) {
      change(site_, SiteState::Eager, std::move(record));
      return false;
    }
    stop_at = stopped.executed - 1;
    result.missing = stop.missing;
    site_.reason = record;
    result.ended_by = std::move(record);
    if (stop_at > 0) return true;
    // If only the answer of a cached function is missing, the next call may come further.
    if (stop.kind != eval::BreakKind::MissingAnswer || site_.waits++ > 0) site_.state = SiteState::Breaks;
    result.otherwise = SessionEnd::Break;
    return false;
  }

  // Whether eager is to run the call, which fills a cache, so that the next call can be captured whole. Not
  // during explain(), which shows the break instead.
  bool leaves_to_eager(const eval::Break& stop) {
    return request_.is_whole && options_.fill_caches_in_eager &&
           stop.kind == eval::BreakKind::MissingAnswer && !RegionWatch::current() &&
           site_.waits++ < options_.recompile_limit;
  }

  // Whether the captured function does nothing but ask whether it is being compiled. Its answer is for its
  // caller, whose frame is not captured.
  bool only_asks(const eval::Interpreter& interpreter, const eval::Capture& capture) const {
    return !request_.is_whole && request_.begins_call && interpreter.calls.told_that_it_compiles &&
           capture.end == eval::EndKind::Return && capture.recording.graph.nodes.empty();
  }

  SessionResult compiled(Captured captured) {
    if (!captured.capture) return {captured.otherwise, nullptr, captured.program_raises};
    // The first capture that ends for a missing answer is guarded by its lack, so that later calls are
    // captured past it. If another answer is missing then, that capture stays.
    const eval::MissingAnswer& missing = captured.missing;
    guards::GuardSet& guards = captured.capture->guards;
    if (missing.cache && site_.waits++ == 0)
      guards.require(guards.pinned(missing.cache.get()), guards::CheckKind::Absent, missing.key.get());
    guards.freeze(request_.roots);
    auto entry = std::make_shared<Entry>(std::move(captured.capture), request_.state, options_.compile,
                                         options_.custom_backend, request_.name);
    ++site_.compiles;
    entry->end = std::move(captured.ended_by);
    if (!entry->matches(request_.roots, request_.state)) {
      if (cpy::has_other_threads()) return {};  // another thread may have written meanwhile
      throw InternalError("the guards of a new capture fail: " +
                          entry->explain_failure(request_.roots, request_.state));
    }
    return {SessionEnd::Compiled, std::move(entry)};
  }

  CaptureSite& site_;
  const CaptureRequest& request_;
  const CallableOptions& options_;
  bool only_asks_ = false;    // only_asks() of the last capture
  SymbolsOfCapture symbols_;  // of the last capture
  std::set<guards::ChangedSize> fixed_sizes_;
  bool fixes_sizes_ = false;  // fix_sizes() of the last capture
};

PyObject*& unsupported_class() {
  static PyObject* unsupported = nullptr;
  return unsupported;
}

}  // namespace

SessionResult capture_at(CaptureSite& site, const CaptureRequest& request, const CallableOptions& options) {
  SessionResult result = Session(site, request, options).run();
  if (result.end != SessionEnd::Raised) PyErr_Clear();
  return result;
}

void note_unmet(CaptureSite& site, Entry& entry, const CallableOptions& options) {
  constexpr int kFewUnmet = 3;  // fewer come by chance
  if (entry.unmet_in_row() < kFewUnmet) return;
  count_break(fmt::format("what is likely of sizes that depend on data is not so: {}", entry.unmet()),
              "torch._check() with what is so, if it always is", {});
  const bool may_look = entry.capture().wants_elements && may_rely_on_elements(site, options);
  if (!may_look || site.way.elements != trace::VaryingElements::Unknown) return;
  site.way.elements = trace::VaryingElements::Symbols;
  entry.give_up();
}

SessionEnd end_of_failed(CaptureSite& site, const std::string& subject, const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const Unsupported& unsupported) {
    return give_up(site, {unsupported.reason(), unsupported.hint()}).end;
  } catch (const std::exception& error) {
    return failed(site, subject, error).end;
  }
}

void set_unsupported_class(PyObject* unsupported) {
  unsupported_class() = Py_NewRef(unsupported);
}

void raise_unsupported(const BreakRecord& reason) {
  std::string text = reason.reason;
  if (!reason.stack.empty()) text += fmt::format("\n  at {}", fmt::join(reason.stack, "\n  called from "));
  if (const std::string advice = advice_on(reason); !advice.empty()) text += "\n  " + advice;
  PyErr_SetString(unsupported_class() ? unsupported_class() : PyExc_RuntimeError, text.c_str());
}

}  // namespace oxy::driver
