// Precompiled for files that call PyTorch's dispatcher or its autograd.
#include <Python.h>

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/library.h>

#include "tensor_pch.h"
