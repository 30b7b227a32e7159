// How a call or a region of a frame comes to be compiled: the one loop of "look, capture, try again, warn,
// give up" that whole calls (compiled_callable.h) and segments (segments.h) go through where no entry's
// guards hold.
//
// A site is what is captured again and again: a compiled callable, or a place in the code of a function. Its
// states:
//
//          .--- guards of all entries fail: captured again, an entry more ---.
//          |                                                                 |
//          v                                                                 |
//   .---> Open ------------------------- captured -------------------------> Open
//   |      |------ compiled as often as it may be -------------------------> Full    entries stay in use;
//   what |      |                                                                         fits none runs in
//   eager |      |------ a break before anything was captured -------------------> Breaks  a whole call goes
//   on in |      |                                                                         segments; a
//   segment leaves |      |                                                                         its first
//   instruction to |      |                                                                         CPython
//   |      '------ what cannot be compiled, or an internal error ----------> Eager   nothing is tried again
//   '---- reset() ---- from all of them
#pragma once

#include <Python.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "driver/entries/entry.h"
#include "driver/state/metrics.h"
#include "driver/state/varying_places.h"
#include "eval/rebuild/capture.h"

namespace oxy::eval {
struct Interpreter;
}

namespace oxy::driver {

struct CallableOptions;

enum class SiteState : uint8_t { Open, Full, Breaks, Eager };

// What is known of a site. With the GIL held.
struct CaptureSite {
  SiteState state = SiteState::Open;
  std::optional<BreakRecord> reason;  // why it is in another state than Open
  int compiles = 0;
  // Ends where the answer of a cached function was missing: calls left to eager, or captures that ended
  // there.
  int waits = 0;
  VaryingPlaces varying_numbers;
  std::map<std::string, int> changes;  // places that recompiled it because they held another constant
  std::set<std::string> unguarded;     // those that did so often enough to be left to CPython
};

// What is to be captured now.
struct CaptureRequest {
  std::string subject;  // for texts: "f" or "a region of f"
  std::string name;     // of the function
  std::span<PyObject* const> roots;
  GlobalState state;
  // The most recently used entry, if its guards can be checked on the roots; null: `why_unlike` says why not.
  Entry* recent = nullptr;
  std::string why_unlike;
  bool is_whole = false;  // a whole call: not captured up to a break
  bool begins_call = false;
  bool warns_when_full = true;
  // `stop_at`: as capture_frame() has it.
  std::function<std::unique_ptr<eval::Capture>(eval::Interpreter&, int64_t stop_at)> capture;
};

enum class SessionEnd : uint8_t {
  Compiled,  // `entry` fits the roots
  Eager,     // eager runs the call or the rest of the frame, this time or for ever: the site's state says
  Break,     // nothing was captured before the first break
  Raised,    // a Python error is set
};

struct SessionResult {
  SessionEnd end = SessionEnd::Eager;
  std::shared_ptr<Entry> entry;
};

// Captures and compiles once. `options` are those of the callable that is called. The caller adds the entry
// to the site's. Runs Python code.
SessionResult capture_at(CaptureSite& site, const CaptureRequest& request, const CallableOptions& options);

// The exception class of fullgraph=True (borrowed); set once by the Python package.
void set_unsupported_class(PyObject* unsupported);
void raise_unsupported(const BreakRecord& reason);

}  // namespace oxy::driver
