#include "cpy/exception_table.h"

namespace oxy::cpy {
namespace {

// Numbers are written in groups of six bits, highest first; bit 6 says that another group follows.
class Reader {
 public:
  explicit Reader(PyObject* bytes)
      : next_(reinterpret_cast<const unsigned char*>(PyBytes_AS_STRING(bytes))),
        end_(next_ + PyBytes_GET_SIZE(bytes)) {}
  bool more() const { return next_ < end_; }
  int32_t number() {
    int32_t value = 0;
    while (next_ < end_) {
      const unsigned char group = *next_++;
      value = (value << 6) | (group & 63);
      if (!(group & 64)) break;
    }
    return value;
  }

 private:
  const unsigned char* next_;
  const unsigned char* end_;
};

Handler read_handler(Reader& reader) {
  Handler handler;
  handler.begin = reader.number();
  handler.end = handler.begin + reader.number();
  handler.target = reader.number();
  const int32_t depth_and_flag = reader.number();
  handler.depth = depth_and_flag >> 1;
  handler.push_last_instruction = depth_and_flag & 1;
  return handler;
}

}  // namespace

std::vector<Handler> exception_table(PyCodeObject* code) {
  std::vector<Handler> handlers;
  for (Reader reader(code->co_exceptiontable); reader.more();) handlers.push_back(read_handler(reader));
  return handlers;
}

Handler find_handler(PyCodeObject* code, int32_t unit) {
  for (Reader reader(code->co_exceptiontable); reader.more();) {
    const Handler handler = read_handler(reader);
    if (handler.begin > unit) break;
    if (unit < handler.end) return handler;
  }
  return {};
}

}  // namespace oxy::cpy
