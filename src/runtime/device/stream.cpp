#include "runtime/device/stream.h"

#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/Stream.h>

#include <string_view>

namespace oxy::runtime {

bool is_stream(PyObject* object) {
  if (THPStreamClass == nullptr || !PyType_IsSubtype(Py_TYPE(object), THPStreamClass)) return false;
  // A class of the program's may have other ways to say which stream it is.
  PyObject* const own = Py_TYPE(object)->tp_dict;
  PyObject* const module = own ? PyDict_GetItemString(own, "__module__") : nullptr;
  const char* const name =
      module && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : Py_TYPE(object)->tp_name;
  return name != nullptr &&
         (std::string_view(name) == "torch" || std::string_view(name).starts_with("torch."));
}

bool is_current_stream(PyObject* object) {
  const auto* const stream = reinterpret_cast<const THPStream*>(object);
  const auto type = static_cast<c10::DeviceType>(stream->device_type);
  if (!c10::impl::hasDeviceGuardImpl(type)) return false;
  const c10::impl::VirtualGuardImpl guard(type);
  const c10::Device device = guard.getDevice();
  return device.index() == stream->device_index && guard.getStream(device).id() == stream->stream_id;
}

PyObject* current_stream_function() {
  static PyMethodDef definition = {"is_current_stream",
                                   [](PyObject* /*self*/, PyObject* stream) {
                                     return PyBool_FromLong(is_stream(stream) && is_current_stream(stream));
                                   },
                                   METH_O, nullptr};
  static PyObject* const function = PyCFunction_New(&definition, nullptr);
  return function;
}

}  // namespace oxy::runtime
