// An entry: a capture that is compiled. It has the guards, the compiled graph, and the templates and effects
// that follow a run.
#pragma once

#include <Python.h>

#include <exception>
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
  // Compiles a capture that was made under `state`, or begins to (CompileOptions::wait). Throws Unsupported
  // with a reason for the user, and eval::Interrupted with the Python error of a backend of the user's.
  Entry(std::unique_ptr<eval::Capture> capture, const GlobalState& state, const CompileOptions& options,
        const CustomBackend& backend, const std::string& name);

  // Whether the guards hold for these roots. If so, run() may be called as long as no Python code has run.
  // `roots`: borrowed; the callable and its arguments, or a frame's locals and stack.
  bool matches(std::span<PyObject* const> roots, const GlobalState& state);
  // To be asked after matches(). False: a frozen weight was written to, and the entry has to be dropped.
  bool valid();
  // To be asked after valid(). Pending: eager runs the segment. Failed: what compiling it threw is failure().
  runtime::Readiness readiness();
  std::exception_ptr failure() const { return graph_ ? graph_->failure() : nullptr; }
  // The entry is ready. Runs the segment on the values that matches() found, and gives the values of
  // Capture::results. Nothing: the run failed (an index out of range, an operator that raises), nothing has
  // changed, and the caller runs the segment in eager. If a Python error is set after the call, it is to be
  // raised and the results do not count: an effect or a backend of the user's has failed, or a warning became
  // an error.
  std::optional<std::vector<cpy::Ref>> run();

  const eval::Capture& capture() const { return *capture_; }
  eval::Capture& capture() { return *capture_; }
  // Why matches() fails, for the user.
  std::string explain_failure(std::span<PyObject* const> roots, const GlobalState& state);
  // Which constants changed, if matches() fails because of them.
  guards::Changes changes(std::span<PyObject* const> roots, const GlobalState& state);
  int64_t runs = 0;  // how often run() was called
  // How many calls of run() in a row failed because an answer was not so that an operator took for likely of
  // sizes that depend on data (eval::Capture::likely), and that answer. After some of them most calls of run()
  // fail at once.
  int unmet_in_row() const { return unmet_in_row_; }
  const std::string& unmet() const { return unmet_; }
  // From now on matches() is false: another capture is to take the place of this one.
  void give_up() { given_up_ = true; }
  // Why the segment ends before its frame does; nothing: it ends with a return.
  std::optional<BreakRecord> end;

  // The entry as a region for explain(). The caller adds the place where it begins.
  Region describe();

 private:
  // The graph inputs that matches() found.
  std::vector<at::Tensor> inputs() const;
  // Whether an input that the graph writes to shares memory with another input.
  bool writes_shared_memory() const;

  std::unique_ptr<eval::Capture> capture_;
  GlobalState state_;
  std::string name_;
  int64_t operators_ = 0, kernels_ = 0, extern_calls_ = 0;
  std::vector<bool> owned_;  // by graph input: held by a run, which reads it without the GIL; empty: none
  std::vector<int32_t> written_;          // graph inputs that the graph writes to
  std::unique_ptr<CompiledGraph> graph_;  // null if no operator was recorded
  void note_unmet(const sym::Condition& condition);

  int unmet_in_row_ = 0;
  int64_t calls_unmet_ = 0;
  std::string unmet_;
  bool given_up_ = false;
  bool is_ready_ = false;                 // it was found to be
  bool holds_weights_ = false;            // CompiledGraph::holds_weights(), once it is ready
};

}  // namespace oxy::driver
