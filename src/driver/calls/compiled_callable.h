// What oxyfuel.compile(f) calls: entries of compiled captures, or the hook for functions with breaks.
#pragma once

#include <Python.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "cpy/ref.h"
#include "driver/calls/capture_session.h"
#include "driver/calls/segment_table.h"
#include "driver/entries/entry_list.h"
#include "driver/state/capture_gate.h"
#include "driver/state/varying_places.h"
#include "eval/state/options.h"

namespace oxy::driver {

struct CallableOptions {
  CompileOptions compile;
  CustomBackend custom_backend;
  bool fullgraph = false;
  int recompile_limit = 8;
  bool fill_caches_in_eager = true;  // a call that lacks the answer of a cached function alone runs in eager
  // Elements of tensors that something under this callable looked at were others at a later call: nothing
  // relies on such elements from then on (trace/known_values.h).
  std::shared_ptr<std::atomic<bool>> elements_vary = std::make_shared<std::atomic<bool>>(false);
  std::shared_ptr<SegmentTable> segments = std::make_shared<SegmentTable>();
};

// How one call or frame under these options is captured. Points to what it is given.
eval::CaptureOptions capture_options(const CallableOptions& options, const VaryingPlaces& varying,
                                     eval::PendingWarnings& warnings, CaptureGate& gate);

class CompiledCallable {
 public:
  // `target`: any callable; held for life.
  CompiledCallable(PyObject* target, const CallableOptions& options);
  ~CompiledCallable();

  // As PyObject_Vectorcall on the target: same result, exceptions and effects.
  PyObject* call(PyObject* const* args, size_t nargsf, PyObject* kwnames);

  PyObject* target() const { return target_.get(); }
  const CallableOptions& options() const { return *options_; }
  void reset();
  // The target is being deleted by the garbage collector.
  int traverse(visitproc visit, void* arg) const;

 private:
  struct WholeEntry {
    std::shared_ptr<Entry> entry;
    cpy::Ref kwnames;
    size_t positional = 0;

    // Whether a call gives its arguments as this one was given them. Only then guards can be checked.
    bool takes(size_t given, PyObject* names) const;
  };
  PyObject* call_eager(PyObject* const* args, size_t nargsf, PyObject* kwnames);
  // The caller shares the entry, whose guards hold: what runs may drop it.
  PyObject* call_entry(Entry& entry, PyObject* const* args, size_t nargsf, PyObject* kwnames);
  void watch_eager() const;
  PyObject* compile_and_call(std::span<PyObject* const> roots, PyObject* const* args, size_t nargsf,
                             PyObject* kwnames);

  cpy::Ref target_;
  std::shared_ptr<const CallableOptions> options_;  // shared with the generators that calls gave
  std::string name_;
  EntryList<WholeEntry> entries_;
  CaptureSite site_;
  bool compiling_ = false;
};

// Forgets what is compiled in this process; callables compile anew at their next call.
void reset_all();

}  // namespace oxy::driver
