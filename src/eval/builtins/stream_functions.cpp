// What the forms of stream contexts call (treatment/stream_forms.h).
#include "eval/builtins/builtin_families.h"
#include "eval/python/objects.h"
#include "runtime/device/current.h"
#include "runtime/device/stream.h"

namespace oxy::eval {
namespace {

Ref index_of_streams(Interpreter& interpreter, Arguments& /*a*/) {
  if (runtime::is_accelerator_in_use()) return Ref::steal(PyLong_FromLong(runtime::current_device_index()));
  const Ref library = Ref::steal(PyImport_ImportModule("torch._C"));
  if (library && PyObject_HasAttrString(library.get(), "_cuda_getDevice"))
    interpreter.stop("makes a context of a stream before any GPU is in use");
  return Ref::steal(PyLong_FromLong(-1));
}

Ref stays_on(Interpreter& interpreter, Arguments& a) {
  PyObject* const stream = arg(a, 0);
  const bool is_known = runtime::is_stream(stream) && interpreter.externals.is_external(stream);
  if (!is_known || !runtime::is_current_stream(stream))
    interpreter.stop("enters or leaves a stream that is not the current one",
                     "call the compiled function inside of the stream's context");
  const SourceId answer = interpreter.guards().calculated(
      runtime::current_stream_function(), interpreter.externals.source_of(stream), guards::kNoSource);
  interpreter.guards().require(answer, guards::CheckKind::Equal, Py_True);
  return none();
}

constexpr BuiltinEntry kTable[] = {
    {nullptr, "index_of_streams", &index_of_streams},
    {nullptr, "stays_on", &stays_on},
};

}  // namespace

std::span<const BuiltinEntry> stream_builtins() {
  return kTable;
}

}  // namespace oxy::eval
