// oxyfuel._core: everything that Python may call.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "backend/registry/backends.h"
#include "base/background.h"
#include "base/config.h"
#include "base/error.h"
#include "base/interruption.h"
#include "base/log.h"
#include "base/timing.h"
#include "cpy/interruption.h"
#include "driver/compilation/pending_graph.h"
#include "driver/state/advice.h"
#include "driver/state/metrics.h"
#include "driver/state/regions.h"
#include "driver/state/stance.h"
#include "eval/treatment/treatment.h"
#include "hook/hook.h"
#include "pybind/callable_type.h"
#include "runtime/variants/static_variants.h"
#include "trace/recorder/recorder.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

nb::object compile(nb::handle target, const std::string& backend, nb::handle custom_backend, bool fullgraph,
                   std::optional<bool> dynamic, nb::handle dynamic_shapes, bool freezing, bool fusion,
                   int recompile_limit, bool fill_caches_in_eager, double weight_copy_budget,
                   double activation_memory_budget, const std::string&, bool graphs,
                   nb::handle static_variants, bool wait, const std::string& mode) {
  using oxy::driver::Backend;
  oxy::driver::CallableOptions options;
  options.compile.backend = backend == "eager" ? Backend::Eager : Backend::Native;
  if (!custom_backend.is_none())
    options.custom_backend = {oxy::cpy::Ref::borrow(custom_backend.ptr()), backend};
  options.compile.freezing = freezing;
  options.compile.fusion = fusion;
  options.compile.copy_budget = weight_copy_budget;
  options.compile.activation_memory_budget = activation_memory_budget;
  options.compile.device_graphs = oxy::driver::device_graph_policy(graphs, mode);
  options.compile.tune = oxy::driver::is_tuned(mode);
  options.compile.static_variants.is_wanted = !static_variants.is(nb::handle(Py_False));
  if (!nb::isinstance<nb::bool_>(static_variants))
    options.compile.static_variants.calls = nb::cast<int64_t>(static_variants);
  options.compile.wait = wait;
  options.fullgraph = fullgraph;
  if (dynamic) options.dynamic = *dynamic ? oxy::driver::Dynamic::Always : oxy::driver::Dynamic::Never;
  if (!dynamic_shapes.is_none()) options.dynamic_shapes = oxy::cpy::Ref::borrow(dynamic_shapes.ptr());
  options.recompile_limit = recompile_limit;
  options.fill_caches_in_eager = fill_caches_in_eager;
  PyObject* callable = oxy::pybind::make_callable(target.ptr(), options);
  if (!callable) throw nb::python_error();
  return nb::steal(callable);
}

nb::dict as_dict(const oxy::driver::BreakRecord& record) {
  nb::dict item;
  item["reason"] = record.reason;
  item["hint"] = oxy::driver::advice_on(record);
  item["stack"] = record.stack;
  item["count"] = record.count;
  return item;
}

nb::list watch(nb::handle function) {
  const oxy::driver::RegionWatch watching;
  function();
  nb::list regions;
  for (const oxy::driver::Region& region : watching.regions()) {
    nb::dict item;
    item["function"] = region.function;
    item["file"] = region.file;
    item["line"] = region.line;
    item["is_captured"] = region.is_captured;
    item["is_pending"] = region.is_pending;
    item["operators"] = region.operators;
    item["kernels"] = region.kernels;
    item["extern_calls"] = region.extern_calls;
    item["device_graphs"] = region.device_graphs.spans;
    item["device_graph_bytes"] = region.device_graphs.bytes();
    item["not_replayed"] = region.device_graphs.reasons;
    item["visits"] = region.visits;
    item["guards"] = region.guards;
    nb::list symbols;
    for (const oxy::guards::DescribedSymbol& symbol : region.symbols) {
      nb::dict described;
      described["name"] = symbol.name;
      described["source"] = symbol.source;
      described["hint"] = symbol.hint;
      described["range"] = symbol.range;
      symbols.append(described);
    }
    item["symbols"] = symbols;
    item["end"] = region.end ? nb::object(as_dict(*region.end)) : nb::none();
    regions.append(item);
  }
  return regions;
}

nb::dict metrics() {
  const oxy::driver::Metrics& m = oxy::driver::metrics();
  nb::dict result;
  result["graphs"] = m.compiled.graphs;
  nb::list breaks;
  for (const auto& record : m.breaks) breaks.append(as_dict(record));
  result["breaks"] = breaks;
  result["recompiles"] = m.recompiles;
  result["recompile_reasons"] = m.recompile_reasons;
  result["kernels"] = m.compiled.kernels;
  result["launches"] = m.compiled.launches;
  result["extern_calls"] = m.compiled.extern_calls;
  result["extern_names"] = m.compiled.extern_names;
  result["operators"] = m.compiled.operators;
  result["guards"] = m.guards;
  result["shape_fallbacks"] = m.compiled.shape_fallbacks;
  result["shape_fallback_names"] = m.compiled.shape_fallback_names;
  result["calls_compiled"] = m.calls_compiled;
  result["calls_eager"] = m.calls_eager;
  result["pending"] = oxy::driver::KernelRequest::pending();
  result["arena_bytes"] = m.compiled.arena_bytes;
  result["packed_bytes"] = m.compiled.packed_bytes;
  const oxy::runtime::StaticVariantCounts& variants = oxy::runtime::static_variant_counts();
  nb::dict counts;
  counts["made"] = variants.made.load();
  counts["kept"] = variants.kept.load();
  counts["dropped"] = variants.dropped.load();
  counts["let_go"] = variants.let_go.load();
  result["static_variants"] = counts;
  nb::dict seconds;
  for (const auto& [stage, time] : oxy::stage_times()) seconds[stage.c_str()] = time.seconds;
  result["seconds"] = seconds;
  return result;
}

void mark(nb::handle callable, const std::string& kind, const std::string& reason) {
  using oxy::eval::TreatmentKind;
  constexpr std::pair<std::string_view, TreatmentKind> kKinds[] = {{"disabled", TreatmentKind::Disabled},
                                                                   {"skipped", TreatmentKind::Skipped},
                                                                   {"in_graph", TreatmentKind::InGraph},
                                                                   {"constant", TreatmentKind::Constant}};
  for (const auto& [name, value] : kKinds)
    if (name == kind) try {
        return oxy::eval::set_treatment(callable.ptr(), {value, reason});
      } catch (const oxy::UserError& error) {
        throw nb::type_error(error.what());
      }
  throw oxy::UserError("there is no treatment '" + kind + "'");
}

std::string set_stance(const std::string& name) {
  const auto stance = oxy::driver::stance_from_name(name);
  if (!stance)
    throw oxy::UserError(
        "stance must be 'default', 'force_eager', 'eager_on_recompile' or 'fail_on_recompile', not '" + name +
        "'");
  return std::string(oxy::driver::name_of(oxy::driver::set_stance(*stance)));
}

}  // namespace

NB_MODULE(_core, m) {
  oxy::set_interruption_check(oxy::cpy::run_signal_handlers);
  m.doc() = "The compiler of oxyfuel.";
  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const oxy::UserError& error) {
      PyErr_SetString(PyExc_ValueError, error.what());
    }
  });
  m.def("compile", &compile, "target"_a, "backend"_a, "custom_backend"_a.none(), "fullgraph"_a,
        "dynamic"_a.none(), "dynamic_shapes"_a.none(), "freezing"_a, "fusion"_a, "recompile_limit"_a,
        "fill_caches_in_eager"_a, "weight_copy_budget"_a, "activation_memory_budget"_a, "rng"_a, "graphs"_a,
        "static_variants"_a, "wait"_a, "mode"_a, "A CompiledFunction for any callable.");
  PyTypeObject* callable_type = oxy::pybind::callable_type();
  if (!callable_type) throw nb::python_error();
  m.attr("CompiledFunction") = nb::borrow(reinterpret_cast<PyObject*>(callable_type));
  m.def("watch", &watch, "function"_a, "Calls a function; the regions that the call went through.");
  m.def(
      "call_disabled",
      [](nb::handle function, nb::args args, nb::kwargs kwargs) {
        oxy::hook::HookPause pause;
        return function(*args, **kwargs);
      },
      "Calls a function; no frame below it is captured.");
  m.def("mark", &mark, "callable"_a, "kind"_a, "reason"_a = "",
        "Says how the compiler treats a callable: 'disabled', 'skipped' (a code object), 'in_graph' or "
        "'constant'.");
  m.def("set_stance", &set_stance, "Sets whether calls may compile; returns the stance before.");
  m.def("is_compiling", &oxy::trace::is_recording);
  m.def("is_hook_installed", &oxy::hook::is_installed);
  m.def("metrics", &metrics, "What was compiled since the last reset.");
  m.def("reset", [] {
    oxy::driver::reset_all();
    oxy::driver::reset_metrics();
  });
  m.def("wait_for_background", &oxy::background::wait, nb::call_guard<nb::gil_scoped_release>(),
        "Waits for what is compiled in the background.");
  m.def("end_background", &oxy::background::end, nb::call_guard<nb::gil_scoped_release>(),
        "Nothing is compiled in the background any more.");
  nb::module_::import_("atexit").attr("register")(m.attr("end_background"));
  m.def("hold_background", &oxy::background::hold,
        "For tests: kernels that the background compiles are not begun until release_background().");
  m.def("release_background", &oxy::background::release, "See hold_background().");
  m.def("judge_static_variants", &oxy::runtime::judge_static_variants, "verdict"_a.none(),
        "For tests: the result of trials to come; None: the times decide.");
  m.def("set_unsupported_class", [](nb::handle cls) { oxy::driver::set_unsupported_class(cls.ptr()); });
  m.def("enable_logs", [](const std::string& channels) { oxy::enable_logs(channels); });
  m.def("start_logging", &oxy::start_logging);
  m.def("use_triton", &oxy::backend::use_triton, "python"_a, "worker"_a, "version"_a);
  m.def("strict", &oxy::strict);
  m.def("set_strict", &oxy::set_strict);
}
