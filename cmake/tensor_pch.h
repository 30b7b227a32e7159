// Precompiled for files that see PyTorch's tensors and no more of it.
#include <Python.h>

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/SymNodeImpl.h>

#include "plain_pch.h"
