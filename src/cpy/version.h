// OXY_PYTHON: the running version of Python as a number. Files whose names end in _311, _312 or _313 have the
// code that differs between versions. Little else may test the version.
#pragma once

#include <Python.h>

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
#define OXY_PYTHON 311
#elif PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030D0000
#define OXY_PYTHON 312
#elif PY_VERSION_HEX >= 0x030D0000 && PY_VERSION_HEX < 0x030E0000
#define OXY_PYTHON 313
#else
#error "Python 3.11, 3.12 or 3.13 is needed"
#endif
