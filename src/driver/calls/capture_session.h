// A capture session: how a site comes to have one more compiled entry. It is the one loop of "capture, try
// again, warn, give up" for whole calls (compiled_callable.h) and for segments (segments.h), where the guards
// of no entry hold.
//
// A site is what is captured again and again: a compiled callable, or a segment. It is in one of these
// states:
//
//   Open     at the start. A call that fits no entry is captured and compiled, and the site stays Open.
//   Full     it was compiled as often as it may be. Entries stay in use, other calls run in eager.
//   Breaks   a graph break came before anything was captured. A whole call goes on in segments. Of a segment
//            the first instruction is performed natively, and the next segment begins behind it.
//   Eager    it cannot be compiled, or an internal error came. Nothing is tried again.
//
// Every change begins at Open. reset() makes a site Open again.
#pragma once

#include <Python.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

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

// How much a capture relies on. A site finds out how much its captures need to come as far as possible.
struct CaptureWay {
  bool has_numbers_that_vary = true;  // CaptureSite::varying; false: they are constants
  trace::VaryingElements elements =
      trace::VaryingElements::Unknown;  // of small integer tensors, if they vary
  bool tells_that_it_compiles = true;   // the program's code that asks
  bool guesses_sizes = true;            // VaryingPlaces::all_sizes(); false: those vary that were seen to
  friend bool operator==(const CaptureWay&, const CaptureWay&) = default;
};

// What is known of a site. The GIL guards it.
struct CaptureSite {
  SiteState state = SiteState::Open;
  std::optional<BreakRecord> reason;  // why the state is not Open, or why the last capture ended early
  int compiles = 0;                   // how often it was compiled
  // How often a capture ended because a cached function had no answer yet (eval::MissingAnswer).
  int waits = 0;
  VaryingPlaces varying;
  std::string why_numbers;  // why varying.given_up(), with the line; empty: it is not, or nothing is to say
  CaptureWay way;
  // By place: how often it recompiled the site because it held another constant.
  std::map<std::string, int> changes;
  // Places that did so too often: reading them is a break from now on.
  std::set<std::string> unguarded;
};

// One thing to capture. Everything in it is borrowed for the time of the session.
struct CaptureRequest {
  std::string subject;  // for messages: "f" or "a region of f"
  std::string name;     // of the function, for dumps and metrics
  std::span<PyObject* const> roots;
  GlobalState state;
  // Those entries whose guards can be checked on the roots, the most recently used one first. They are held,
  // as Python code may call reset(). If there are none but others, `why_unlike` says why they cannot be
  // checked.
  std::vector<std::shared_ptr<Entry>> comparable;
  std::string why_unlike;
  bool is_whole = false;        // a whole call, which is captured to its end or not at all
  bool begins_call = false;     // a segment at the start of its frame
  bool warns_when_full = true;  // warn the user when the site becomes Full
  // Calls eval::capture_call(), or eval::capture_frame() with this `stop_at`.
  std::function<std::unique_ptr<eval::Capture>(eval::Interpreter&, int64_t stop_at)> capture;
};

enum class SessionEnd : uint8_t {
  Compiled,  // `entry` fits the roots, and may be pending
  Eager,     // eager runs the call or the rest of the frame, this time or for ever: see the site's state
  Break,     // a graph break came before anything was captured
  Raised,    // a Python error is set
};

struct SessionResult {
  SessionEnd end = SessionEnd::Eager;
  std::shared_ptr<Entry> entry;
  bool program_raises = false;  // of a whole call: no graph, since the program raises an exception
};

// Runs one session for the site and updates its state. `options`: those of the compiled callable under which
// the call runs. The caller has to add the entry to its list. May run Python code. After an internal error
// the site is Eager and the user is warned; in strict mode it is a Python error instead.
SessionResult capture_at(CaptureSite& site, const CaptureRequest& request, const CallableOptions& options);

// To be called after each run of an entry that gave nothing. If what was likely of sizes that depend on data
// has not been so for three runs in a row, that is the reason of a break, and the next capture may rely on
// elements instead.
void note_unmet(CaptureSite& site, Entry& entry, const CallableOptions& options);

// What was compiled behind a session has failed (Entry::failure()): the site's state becomes what a session
// that waits would have made it. Eager or Raised.
SessionEnd end_of_failed(CaptureSite& site, const std::string& subject, const std::exception_ptr& failure);

// The exception class of fullgraph=True (borrowed); set once by the Python package.
void set_unsupported_class(PyObject* unsupported);
// Sets that exception (RuntimeError before it is set), with reason, hint and the user's lines as its text.
void raise_unsupported(const BreakRecord& reason);

}  // namespace oxy::driver
