#include "driver/calls/segments.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <utility>

#include "cpy/frame.h"
#include "cpy/gil.h"
#include "cpy/thread.h"
#include "driver/calls/capture_session.h"
#include "driver/calls/compiled_callable.h"
#include "driver/calls/segment_table.h"
#include "driver/entries/entry.h"
#include "driver/state/metrics.h"
#include "driver/state/regions.h"
#include "driver/state/stance.h"
#include "eval/capture/capturing.h"
#include "eval/treatment/treatment.h"
#include "hook/hook.h"
#include "hook/segment.h"
#include "runtime/device/device.h"

namespace oxy::driver {
namespace {

using cpy::Ref;

// After so many calls of compiled segments without a tensor operator, a function is left to CPython. Checking
// guards costs more than it gains there.
constexpr int kMostCallsWithoutGraph = 64;
// If one call of such a function has so many segments, as in a long loop, the rest of that call is left to
// CPython.
constexpr int kMostSegmentsWithoutGraph = 4096;

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

// The folder of this library and the package's Python files, with a slash at its end.
const std::string& own_package() {
  static const std::string folder = [] {
    Dl_info info{};
    const bool found = dladdr(reinterpret_cast<const void*>(&own_package), &info) != 0 && info.dli_fname;
    const std::string text = found ? info.dli_fname : "";
    return text.substr(0, text.rfind('/') + 1);
  }();
  return folder;
}

// Whether the code is captured frame by frame. Code of torch's and Python's own machinery is not, as it gains
// nothing.
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

// The options of the compiled call that this thread is in (SegmentRunner::enter()).
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
    // Held, since Python code may call reset().
    const std::shared_ptr<CodeData> known =
        current_options ? current_options->segments->find(state.code) : nullptr;
    if (!known) return {hook::EndKind::HandOver, state.offset};  // forgotten meanwhile
    CodeData& data = *known;
    if (!data.wanted) return {hook::EndKind::HandOver, state.offset};
    if (begins_call(state)) data.segments_of_call = 0;
    if (!data.has_graph && ++data.segments_of_call > kMostSegmentsWithoutGraph)
      return {hook::EndKind::HandOver, state.offset};
    const std::shared_ptr<Segments> segments = data.segments;
    Segment& segment = (*segments)[{state.offset, state.stack.size()}];
    if (segment.site.state == SiteState::Eager || stance() == Stance::ForceEager) {
      watch_uncaptured(segment, state);
      return {hook::EndKind::HandOver, state.offset};
    }
    if (segment.site.state == SiteState::Breaks) {
      watch_uncaptured(segment, state);
      return {hook::EndKind::Break, state.offset};
    }
    const GlobalState global_state = GlobalState::current();
    if (state.names || global_state.why_eager()) return {hook::EndKind::HandOver, state.offset};
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
        const auto dropped = std::exchange(data.segments, std::make_shared<Segments>());
        return {hook::EndKind::HandOver, state.offset};
      }
      return finish(*entry, segment, state);
    }
    if (segment.site.state == SiteState::Full) {
      // Without a tensor operator, failing guards cost more than CPython does.
      if (!data.has_graph) leave_to_interpreter(segment);
      watch_uncaptured(segment, state);
      return {hook::EndKind::HandOver, state.offset};
    }
    runtime::notice_devices_in_use();
    const hook::SegmentEnd end = compile(data, segment, state, roots, GlobalState::current());
    if (segment.site.state != SiteState::Open) watch_uncaptured(segment, state);
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
    segment.site.state = SiteState::Eager;
    const auto dropped = segment.entries.take_all();
  }

  static void watch_uncaptured(const Segment& segment, const hook::FrameState& state) {
    if (RegionWatch* watch = RegionWatch::current())
      watch->visit(&segment, [&] {
        return begun({.function = PyUnicode_AsUTF8(state.code->co_qualname), .end = segment.site.reason},
                     state);
      });
  }

  // The caller holds the entry, as the run may drop it from its list.
  static hook::SegmentEnd finish(Entry& entry, Segment& segment, hook::FrameState& state) {
    const runtime::Readiness readiness = entry.readiness();
    if (readiness == runtime::Readiness::Failed) {
      const std::string subject = std::string("a region of ") + PyUnicode_AsUTF8(state.code->co_qualname);
      const SessionEnd end = end_of_failed(segment.site, subject, entry.failure());
      watch_uncaptured(segment, state);
      return {end == SessionEnd::Raised ? hook::EndKind::Raise : hook::EndKind::HandOver, state.offset};
    }
    if (RegionWatch* watch = RegionWatch::current())
      watch->visit(&entry, [&] { return begun(entry.describe(), state); });
    if (readiness == runtime::Readiness::Pending) return {hook::EndKind::LeaveAll, state.offset};
    auto results = entry.run();
    if (!results) {
      if (current_options) note_unmet(segment.site, entry, *current_options);
      return {hook::EndKind::HandOver, state.offset};
    }
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
    if (!current_options) return {hook::EndKind::HandOver, state.offset};
    const CallableOptions& options = *current_options;
    eval::FrameRoots frame;
    frame.code = state.code;
    frame.function = state.function;
    frame.globals = state.globals;
    frame.builtins = state.builtins;
    frame.locals = std::span(roots).first(state.locals.size());
    frame.stack = std::span(roots).subspan(state.locals.size());
    frame.offset = state.offset;
    const std::string name = PyUnicode_AsUTF8(state.code->co_qualname);
    CaptureRequest request{.subject = "a region of " + name,
                           .name = name,
                           .roots = roots,
                           .state = global_state,
                           .begins_call = begins_call(state),
                           .warns_when_full = data.has_graph,  // without tensors nothing is lost
                           .capture = [&](eval::Interpreter& interpreter, int64_t stop_at) {
                             frame.unguarded =
                                 segment.site.unguarded.empty() ? nullptr : &segment.site.unguarded;
                             auto capture = eval::capture_frame(interpreter, frame, stop_at);
                             data.has_graph |= !capture->recording.graph.nodes.empty();
                             return capture;
                           }};
    for (const auto& known : segment.entries)
      if (known.globals == state.globals) request.comparable.push_back(known.entry);
    if (request.comparable.empty() && !segment.entries.empty())
      request.why_unlike = "called with other globals";
    const SessionResult result = capture_at(segment.site, request, options);
    switch (result.end) {
      case SessionEnd::Compiled:
        segment.entries.add({result.entry, state.globals});
        return finish(*result.entry, segment, state);
      case SessionEnd::Break:
        return {hook::EndKind::Break, state.offset};
      case SessionEnd::Raised:
        return {hook::EndKind::Raise, state.offset};
      case SessionEnd::Eager:
        break;
    }
    return {hook::EndKind::HandOver, state.offset};
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
