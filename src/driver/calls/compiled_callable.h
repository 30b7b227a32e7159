// The object behind oxyfuel.compile(f). A call runs a compiled entry whose guards hold. If there is none, it
// is captured and compiled. A function with graph breaks runs in segments.
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

// Which sizes and ints are symbols, one graph for all their values.
enum class Dynamic : uint8_t {
  Changed,  // those that were others at a later call
  Always,   // all of the arguments, from the first call on
  Never,    // none: each new size is compiled anew
};

// The options of oxyfuel.compile().
struct CallableOptions {
  CompileOptions compile;
  CustomBackend custom_backend;
  bool fullgraph = false;
  Dynamic dynamic = Dynamic::Changed;
  // What the user says of the sizes of the arguments (eval/sizes/specified_sizes.h); null: nothing.
  cpy::Ref dynamic_shapes;
  int recompile_limit = 8;
  // A call that cannot be captured only because the cache of a functools.lru_cache lacks an answer runs in
  // eager.
  bool fill_caches_in_eager = true;
  // Known elements of a small integer tensor (trace/session/known_values.h) were others at a later call.
  // From then on a capture under this callable relies on elements only as CaptureSite::way says.
  std::shared_ptr<std::atomic<bool>> elements_vary = std::make_shared<std::atomic<bool>>(false);
  std::shared_ptr<SegmentTable> segments = std::make_shared<SegmentTable>();
};

// The options of a capture under this callable. The result points to `varying`, `warnings` and `gate`. Throws
// eval::Interrupted with a Python error if dynamic_shapes= does not fit the call that is under way.
eval::CaptureOptions capture_options(const CallableOptions& options, const VaryingPlaces& varying,
                                     const CaptureWay& way, eval::PendingWarnings& warnings,
                                     CaptureGate& gate);

class CompiledCallable {
 public:
  // `target`: any callable. Holds a reference to it.
  CompiledCallable(PyObject* target, const CallableOptions& options);
  ~CompiledCallable();

  // The same arguments, result, exceptions and effects as PyObject_Vectorcall() on the target. The GIL is
  // held.
  PyObject* call(PyObject* const* args, size_t nargsf, PyObject* kwnames);

  PyObject* target() const { return target_.get(); }
  const CallableOptions& options() const { return *options_; }
  void reset();  // forgets what was compiled and learnt of whole calls
  // For tp_traverse: visits the references that this object alone owns.
  int traverse(visitproc visit, void* arg) const;

 private:
  struct WholeEntry {
    std::shared_ptr<Entry> entry;
    cpy::Ref kwnames;
    size_t positional = 0;

    // Whether a call has as many positional arguments and the same keywords. Only then guards can be checked.
    bool takes(size_t given, PyObject* names) const;
  };
  PyObject* call_eager(PyObject* const* args, size_t nargsf, PyObject* kwnames);
  // The guards of the entry hold. The caller holds a reference to it, as the call may drop it from the list.
  PyObject* call_entry(Entry& entry, PyObject* const* args, size_t nargsf, PyObject* kwnames);
  // The entry, whose guards hold, could not be compiled.
  PyObject* call_failed(const Entry& entry, PyObject* const* args, size_t nargsf, PyObject* kwnames);
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

// Forgets everything that is compiled in this process. Callables compile anew at their next call.
void reset_all();

}  // namespace oxy::driver
