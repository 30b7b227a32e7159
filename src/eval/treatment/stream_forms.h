// `with torch.cuda.stream(s)` inside of a program: where s is the current stream, or None, it changes
// nothing. Python functions of ours, which are part of the prelude, take the place of the context's methods.
#pragma once

namespace oxy::eval {

// Their Python text. In it,
//   index_of_streams()  is the index of the current device; -1 where this PyTorch knows no GPUs,
//   stays_on(stream)    ends the region unless the stream is the current one, which is guarded.
extern const char* const kStreamForms;

}  // namespace oxy::eval
