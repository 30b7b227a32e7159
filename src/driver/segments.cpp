#include "driver/segments.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/config.h"
#include "base/error.h"
#include "base/log.h"
#include "base/timing.h"
#include "cpy/frame.h"
#include "cpy/gil.h"
#include "cpy/thread.h"
#include "driver/capture_gate.h"
#include "driver/compiled_callable.h"
#include "driver/entry.h"
#include "driver/metrics.h"
#include "driver/regions.h"
#include "driver/segment_table.h"
#include "driver/stance.h"
#include "eval/capture/capturing.h"
#include "eval/python/treatment.h"
#include "hook/hook.h"
#include "hook/segment.h"
#include "trace/trace_error.h"

namespace oxy::driver {
namespace {

using cpy::Ref;

constexpr int kChangesOfVarying = 2;

// After so many calls of what was compiled without finding a tensor operator, a function is left to the
// interpreter: to check guards would cost more than what they are for.
constexpr int kMostCallsWithoutGraph = 64;

// The folder of the standard library, with a slash at its end; empty if it has none.
const std::string& standard_library() {
  static const std::string folder = [] {
    Ref os = Ref::steal(PyImport_ImportModule("os"));
    Ref file = Ref::steal(os ? PyObject_GetAttrString(os.get(), "__file__") : nullptr);
    const char* path = file && PyUnicode_Check(file.get()) ? PyUnicode_AsUTF8(file.get()) : nullptr;
    if (!path) PyErr_Clear();
    const std::string text = path ? path : "";
    return text.substr(0, text.rfind('/') + 1);
  }();
  return folder;
}

// The folder that this library lies in, beside the package's Python files, with a slash at its end.
const std::string& own_package() {
  static const std::string folder = [] {
    Dl_info info{};
    const bool found = dladdr(reinterpret_cast<const void*>(&own_package), &info) != 0 && info.dli_fname;
    const std::string text = found ? info.dli_fname : "";
    return text.substr(0, text.rfind('/') + 1);
  }();
  return folder;
}

// Code of torch's and Python's own machinery gains nothing from being captured frame by frame.
bool is_user_code(PyCodeObject* code) {
  const char* file = PyUnicode_AsUTF8(code->co_filename);
  if (!file) {
    PyErr_Clear();
    return false;
  }
  const std::string_view path = file;
  if (path.starts_with("<frozen") || path.starts_with("<oxyfuel")) return false;
  if (path.find("/site-packages/torch/") != std::string_view::npos)
    return path.find("/torch/nn/modules/") != std::string_view::npos;
  const std::string& library = standard_library();
  if (!library.empty() && path.starts_with(library) && path.find("-packages/") == std::string_view::npos)
    return false;
  return own_package().empty() || !path.starts_with(own_package());
}

// Those of the compiled call that this thread is in.
thread_local const CallableOptions* current_options = nullptr;

class Runner : public hook::SegmentRunner {
 public:
  bool wants(PyCodeObject* code, PyObject*) override {
    if (!current_options || cpy::is_finalizing()) return false;
    SegmentTable& table = *current_options->segments;
    const CodeData* data = table.find(code).get();
    if (!data) {
      CodeData& added = table.add(code);
      added.wanted = is_user_code(code);
      data = &added;
    }
    return data->wanted &&
           !eval::is_treated_as(reinterpret_cast<PyObject*>(code), eval::TreatmentKind::Skipped);
  }

  const void* enter(const void* context) override {
    return std::exchange(current_options, static_cast<const CallableOptions*>(context));
  }

  hook::SegmentEnd run(hook::FrameState& state) override {
    // A reset may come while Python code runs.
    const std::shared_ptr<CodeData> known =
        current_options ? current_options->segments->find(state.code) : nullptr;
    if (!known) return {hook::EndKind::HandOver, state.offset};  // forgotten meanwhile
    CodeData& data = *known;
    if (!data.wanted) return {hook::EndKind::HandOver, state.offset};
    Segment& segment = data.segments[{state.offset, state.stack.size()}];
    if (segment.hand_over || stance() == Stance::ForceEager) {
      watch_uncaptured(segment, state);
      return {hook::EndKind::HandOver, state.offset};
    }
    if (segment.breaks_at_once) {
      watch_uncaptured(segment, state);
      return {hook::EndKind::Break, state.offset};
    }
    const GlobalState global_state = GlobalState::current();
    if (state.names || global_state.needs_eager()) return {hook::EndKind::HandOver, state.offset};
    std::vector<PyObject*> roots;
    roots.reserve(state.locals.size() + state.stack.size());
    for (const Ref& local : state.locals) roots.push_back(local.get());
    for (const Ref& entry : state.stack) roots.push_back(entry.get());
    const auto fits = [&](const SegmentEntry& item) {
      return item.globals == state.globals && item.entry->matches(roots, global_state);
    };
    if (const std::shared_ptr<Entry> entry = segment.entries.find(fits)) {
      if (begins_call(state) && !data.has_graph && ++data.calls_without_graph > kMostCallsWithoutGraph) {
        data.wanted = false;
        // Dropping entries may run Python code, which may come back here.
        const auto dropped = std::exchange(data.segments, {});
        return {hook::EndKind::HandOver, state.offset};
      }
      return finish(*entry, state);
    }
    if (segment.is_full) {
      // Guards that fail cost more than the interpreter does where there is nothing to compile.
      if (!data.has_graph) leave_to_interpreter(segment);
      watch_uncaptured(segment, state);
      return {hook::EndKind::HandOver, state.offset};
    }
    const hook::SegmentEnd end = compile(data, segment, state, roots, global_state);
    if (segment.breaks_at_once || segment.hand_over || segment.is_full) watch_uncaptured(segment, state);
    return end;
  }

 private:
  static bool begins_call(const hook::FrameState& state) {
    return state.offset <= state.code->_co_firsttraceable;
  }

  static Region begun(Region region, const hook::FrameState& state) {
    const char* file = PyUnicode_AsUTF8(state.code->co_filename);
    if (!file) PyErr_Clear();
    region.file = file ? file : "?";
    region.line = PyCode_Addr2Line(state.code, state.offset * cpy::kCodeUnitBytes);
    return region;
  }

  static void leave_to_interpreter(Segment& segment) {
    segment.hand_over = true;
    const auto dropped = segment.entries.take_all();
  }

  static void watch_uncaptured(const Segment& segment, const hook::FrameState& state) {
    if (RegionWatch* watch = RegionWatch::current())
      watch->visit(&segment, [&] {
        return begun({.function = PyUnicode_AsUTF8(state.code->co_qualname), .end = segment.reason}, state);
      });
  }

  // The caller shares the entry: what runs may drop it.
  static hook::SegmentEnd finish(Entry& entry, hook::FrameState& state) {
    if (RegionWatch* watch = RegionWatch::current())
      watch->visit(&entry, [&] { return begun(entry.describe(), state); });
    auto results = entry.run();
    if (!results) return {hook::EndKind::HandOver, state.offset};
    const eval::Capture& capture = entry.capture();
    if (PyErr_Occurred()) return {hook::EndKind::Raise, capture.offset};
    if (capture.end == eval::EndKind::Return) {
      state.stack.clear();
      state.stack.push_back(std::move(results->front()));
      return {hook::EndKind::Return, capture.offset};
    }
    const size_t locals = state.locals.size();
    for (size_t i = 0; i < locals; ++i) state.locals[i] = std::move((*results)[i]);
    state.stack.clear();
    for (size_t i = locals; i < results->size(); ++i) state.stack.push_back(std::move((*results)[i]));
    return {hook::EndKind::Break, capture.offset};
  }

  hook::SegmentEnd compile(CodeData& data, Segment& segment, hook::FrameState& state,
                           const std::vector<PyObject*>& roots, const GlobalState& global_state) {
    const hook::SegmentEnd hand_over = {hook::EndKind::HandOver, state.offset};
    if (!current_options || stance() == Stance::EagerOnRecompile) return hand_over;
    const CallableOptions& options = *current_options;
    const auto why_not = [&] {
      const SegmentEntry& recent = segment.entries.most_recent();
      return recent.globals == state.globals ? recent.entry->explain_failure(roots, global_state)
                                             : "called with other globals";
    };
    if (stance() == Stance::FailOnRecompile) {
      raise_would_compile(fmt::format("a region of {}", PyUnicode_AsUTF8(state.code->co_qualname)),
                          segment.entries.empty() ? "it was not compiled before" : why_not());
      return {hook::EndKind::Raise, state.offset};
    }
    if (segment.compiles >= options.recompile_limit) {
      segment.is_full = true;
      const std::string reason = segment.entries.empty() ? "a weight changed" : why_not();
      segment.reason =
          BreakRecord{fmt::format("compiled {} times; the last reason: {}", segment.compiles, reason)};
      // Where there are no tensors nothing is lost.
      if (!data.has_graph) return hand_over;
      warn(fmt::format(
          "a region of {} was compiled {} times, other calls run in eager from now on; the last reason: {}",
          PyUnicode_AsUTF8(state.code->co_qualname), segment.compiles, reason));
      return hand_over;
    }
    if (!segment.entries.empty()) {
      ++metrics().recompiles;
      const std::string reason = why_not();
      metrics().recompile_reasons.push_back(
          fmt::format("{}: {}", PyUnicode_AsUTF8(state.code->co_qualname), reason));
      log(Channel::Recompiles, "{}: {}", PyUnicode_AsUTF8(state.code->co_qualname), reason);
      const guards::Changes changes = segment.entries.most_recent().entry->changes(roots, global_state);
      segment.varying_numbers.learn(changes.constants);
      if (changes.elements) *options.elements_vary = true;
      for (const guards::ChangedConstant& changed : changes.constants)
        if (++segment.changes[changed.place] >= kChangesOfVarying) segment.varying.insert(changed.place);
    }
    eval::FrameRoots frame;
    frame.code = state.code;
    frame.function = state.function;
    frame.globals = state.globals;
    frame.builtins = state.builtins;
    frame.locals = std::span(roots).first(state.locals.size());
    frame.stack = std::span(roots).subspan(state.locals.size());
    frame.offset = state.offset;
    if (!segment.varying.empty()) frame.varying = &segment.varying;
    try {
      std::unique_ptr<eval::Capture> capture;
      int64_t stop_at = -1;
      std::optional<BreakRecord> ended_by;
      eval::MissingAnswer missing;
      eval::PendingWarnings warnings;
      bool told_that_it_compiles = false;
      for (int attempt = 0; attempt < 2 && !capture; ++attempt) {
        Span span("capture");
        CaptureGate gate;
        eval::Interpreter interpreter(capture_options(options, segment.varying_numbers, warnings, gate));
        try {
          capture = eval::capture_frame(interpreter, frame, stop_at);
          told_that_it_compiles = interpreter.calls.told_that_it_compiles;
          if (warnings.captures_again()) {
            capture.reset();
            --attempt;
          }
        } catch (const eval::Break& stop) {
          PyErr_Clear();
          if (warnings.captures_again() ||
              (stop.is_of_varying_number() && segment.varying_numbers.give_up())) {
            --attempt;
            continue;
          }
          count_break(stop.reason, stop.hint, interpreter.break_lines);
          segment.reason = ended_by = BreakRecord{stop.reason, stop.hint, interpreter.break_lines};
          if (attempt == 1 || (stop.is_too_long && interpreter.break_lines.size() == 1)) break;
          missing = stop.missing;
          stop_at = interpreter.executed - 1;
          if (stop_at > 0) continue;
          if (!warnings.show()) throw eval::Interrupted{};
          segment.breaks_at_once = !missing.cache || std::exchange(segment.missed_answer, true);
          return {hook::EndKind::Break, state.offset};
        }
      }
      if (!warnings.show()) throw eval::Interrupted{};
      // A function that only asks answers for its caller, whose frame was not captured at this call.
      const bool only_asks = capture && told_that_it_compiles && begins_call(state) &&
                             capture->end == eval::EndKind::Return && capture->recording.graph.nodes.empty();
      if (!capture || only_asks) {
        segment.hand_over = true;
        return hand_over;
      }
      // Once the answer is there the capture goes on past its call. Where others are missing then, it ends
      // here.
      if (missing.cache && !std::exchange(segment.missed_answer, true))
        capture->guards.require(capture->guards.pinned(missing.cache.get()), guards::CheckKind::Absent,
                                missing.key.get());
      capture->guards.freeze(roots);
      data.has_graph = data.has_graph || !capture->recording.graph.nodes.empty();
      const auto entry =
          std::make_shared<Entry>(std::move(capture), global_state, options.compile, options.custom_backend,
                                  PyUnicode_AsUTF8(state.code->co_qualname));
      ++segment.compiles;
      entry->end = std::move(ended_by);
      if (!entry->matches(roots, global_state)) {
        if (cpy::has_other_threads()) return hand_over;  // which may have written meanwhile
        throw InternalError("the guards of a new capture fail: " +
                            entry->explain_failure(roots, global_state));
      }
      segment.entries.add({entry, state.globals});
      return finish(*entry, state);
    } catch (const eval::Interrupted&) {
      return {hook::EndKind::Raise, state.offset};
    } catch (const Unsupported& unsupported) {
      count_break(unsupported.reason(), unsupported.hint(), {});
      segment.reason = BreakRecord{unsupported.reason(), unsupported.hint()};
    } catch (const std::exception& error) {
      if (trace::is_python_error(error)) {
        if (PyErr_Occurred()) return {hook::EndKind::Raise, state.offset};
        count_break(error.what(), "", {});
        segment.reason = BreakRecord{error.what()};
      } else {
        warn(fmt::format("internal error, a region of {} runs in eager: {}\nPlease report it.",
                         PyUnicode_AsUTF8(state.code->co_qualname), error.what()));
        if (strict()) {
          segment.hand_over = true;
          PyErr_Format(PyExc_RuntimeError, "oxyfuel internal error: %s", error.what());
          return {hook::EndKind::Raise, state.offset};
        }
      }
    }
    PyErr_Clear();
    segment.hand_over = true;
    return hand_over;
  }
};

// Never destroyed: it holds Python objects, and the interpreter is gone when statics die.
Runner& runner() {
  static Runner& instance = *new Runner;
  return instance;
}

}  // namespace

PyObject* call_in_segments(PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* kwnames,
                           const std::shared_ptr<const CallableOptions>& options) {
  struct Scope {
    const void* outer;
    explicit Scope(const CallableOptions* inner) : outer(runner().enter(inner)) {}
    ~Scope() { runner().enter(outer); }
  } scope(options.get());
  hook::set_runner(&runner());
  return run_in_segments(hook::call_with_hook(callable, args, nargsf, kwnames), options);
}

PyObject* run_in_segments(PyObject* result, const std::shared_ptr<const CallableOptions>& options) {
  if (!result || !hook::can_adopt(result)) return result;
  hook::set_runner(&runner());
  hook::adopt(result, options);
  return result;
}

}  // namespace oxy::driver
