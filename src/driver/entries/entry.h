// A compiled segment: its guards, its graph, and what happens around a run.
#pragma once

#include <Python.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cpy/ref.h"
#include "driver/compilation/custom_backend.h"
#include "driver/compilation/pipeline.h"
#include "driver/state/global_state.h"
#include "driver/state/regions.h"
#include "eval/rebuild/capture.h"

namespace oxy::driver {

class Entry {
 public:
  // Compiles what was captured under `state`. Throws Unsupported, and eval::Interrupted for a backend of the
  // user's.
  Entry(std::unique_ptr<eval::Capture> capture, const GlobalState& state, const CompileOptions& options,
        const CustomBackend& backend, const std::string& name);

  // True if the guards hold for these roots; then run() may be called before any other Python code runs.
  bool matches(std::span<PyObject* const> roots, const GlobalState& state);
  // After matches(): false once the graph has to be compiled again because a frozen weight changed.
  bool valid();
  // Runs the segment on the values that matches() found. Nothing if it could not be run (an index out of
  // range, an operator that raises): nothing has changed then, and the segment is to be run in eager. A
  // Python error may be set by what replays effects, or by a backend of the user's: the results mean nothing
  // then.
  std::optional<std::vector<cpy::Ref>> run();

  const eval::Capture& capture() const { return *capture_; }
  eval::Capture& capture() { return *capture_; }
  std::string explain_failure(std::span<PyObject* const> roots, const GlobalState& state);
  // Why matches() fails; nothing if it fails for something else.
  guards::Changes changes(std::span<PyObject* const> roots, const GlobalState& state);
  int64_t runs = 0;
  // Why the segment ends where it does, if it does not end with a return.
  std::optional<BreakRecord> end;

  // What explain() says of it; the place where it begins is the caller's to add.
  Region describe() const;

 private:
  // The graph inputs that matches() found.
  std::vector<at::Tensor> inputs() const;
  // True if an input that the graph writes to shares memory with another input.
  bool writes_shared_memory() const;

  std::unique_ptr<eval::Capture> capture_;
  GlobalState state_;
  std::string name_;
  int64_t operators_ = 0, kernels_ = 0, extern_calls_ = 0;
  std::vector<bool> owned_;               // graph inputs that a run without the GIL reads; empty: none
  std::vector<int32_t> written_;          // graph inputs that the graph writes to
  std::unique_ptr<CompiledGraph> graph_;  // null if no operator was recorded
};

}  // namespace oxy::driver
