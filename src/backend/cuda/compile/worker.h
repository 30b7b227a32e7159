// A process beside this one that answers messages.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/cuda/compile/message.h"

namespace oxy::backend::cuda {

// The process ends when the object does, or by itself. It shares no memory and no files with this one but the
// standard error. An object belongs to the process that made it: after a fork the child leaves it alone.
class Worker {
 public:
  // Standard input and output of `command` are one end of a socket. Null if it cannot be started.
  static std::unique_ptr<Worker> start(const std::vector<std::string>& command);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // The answer to a message; nothing if the process is gone or does not answer in time. Then the object is of
  // no more use.
  std::optional<Message> ask(const Message& message, std::chrono::milliseconds patience);

 private:
  Worker(pid_t process, int socket);

  pid_t process_;
  pid_t owner_;
  int socket_;
};

}  // namespace oxy::backend::cuda
