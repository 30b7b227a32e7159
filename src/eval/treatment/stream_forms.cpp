#include "eval/treatment/stream_forms.h"

namespace oxy::eval {

// The real methods go on from these attributes if a region ends inside of the context.
const char* const kStreamForms = R"(
def index_of_streams():
    raise NotImplementedError

def stays_on(stream):
    raise NotImplementedError

def stream_context_init(self, stream):
    self.stream = stream
    self.idx = index_of_streams()
    self.src_prev_stream = self.dst_prev_stream = None

def stream_context_enter(self):
    if self.stream is not None and self.idx != -1:
        stays_on(self.stream)
        self.src_prev_stream = self.stream

def stream_context_exit(self, type, value, traceback):
    if self.stream is not None and self.idx != -1:
        stays_on(self.stream)
        stays_on(self.src_prev_stream)
)";

}  // namespace oxy::eval
