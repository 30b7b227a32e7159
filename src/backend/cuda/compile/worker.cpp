#include "backend/cuda/compile/worker.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

extern char** environ;

namespace oxy::backend::cuda {

namespace {

// A process that is asked to end removes its folder before it does; it may hang, too.
constexpr std::chrono::milliseconds kWait(5);
constexpr int kMostWaits = 100;

}  // namespace

std::unique_ptr<Worker> Worker::start(const std::vector<std::string>& command) {
  int ends[2];
  if (command.empty() || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return nullptr;
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, ends[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
  // In a group of its own: what a user's keyboard interrupts is this process.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t process = 0;
  const int status = posix_spawnp(&process, arguments[0], &files, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  close(ends[1]);
  if (status != 0) {
    close(ends[0]);
    return nullptr;
  }
  return std::unique_ptr<Worker>(new Worker(process, ends[0]));
}

Worker::Worker(pid_t process, int socket) : process_(process), owner_(getpid()), socket_(socket) {}

Worker::~Worker() {
  close(socket_);
  if (getpid() != owner_) return;
  kill(process_, SIGTERM);
  for (int k = 0; k < kMostWaits; ++k) {
    if (waitpid(process_, nullptr, WNOHANG) != 0) return;
    std::this_thread::sleep_for(kWait);
  }
  kill(process_, SIGKILL);
  while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::optional<Message> Worker::ask(const Message& message, std::chrono::milliseconds patience) {
  if (getpid() != owner_ || !send(socket_, message)) return std::nullopt;
  return receive(socket_, patience);
}

}  // namespace oxy::backend::cuda
