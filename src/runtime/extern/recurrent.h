// The backward pass of LSTM, GRU and RNN, an operator of ours: PyTorch has one for some libraries alone, and
// it reads what their forward pass keeps.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

namespace oxy::runtime {

// Tells the dispatcher of oxyfuel::recurrent_backward: the gradients of the `wanted` ones of the input, the
// states and the weights, in this order, contiguous. `cell` names the operator of PyTorch's ("lstm", "gru",
// "rnn_tanh", "rnn_relu"), which runs again, under autograd. `gradients` are those of its results, null where
// none comes. `library` is that of our own operators.
void add_recurrent_backward(torch::Library& library);
// The operator, once the dispatcher knows of it.
c10::OperatorHandle recurrent_backward();

}  // namespace oxy::runtime
