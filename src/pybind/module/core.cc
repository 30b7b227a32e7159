// oxyfuel._core: everything that Python may call.
#include <nanobind/nanobind.h>

NB_MODULE(_core, m) { m.doc() = "The compiler of oxyfuel."; }
