#include "backend/cuda/compile/message.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>

namespace oxy::backend::cuda {

namespace {

constexpr uint32_t kMostFields = 64;
constexpr uint32_t kLongestField = 256 * 1024 * 1024;

void append_number(std::string& out, size_t number) {
  const auto value = static_cast<uint32_t>(number);
  for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(value >> shift & 0xff);
}

uint32_t number_of(const std::string& bytes) {
  uint32_t value = 0;
  for (size_t k = 4; k-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[k]);
  return value;
}

// The next bytes of a stream, as many as asked for; nothing if there are not as many.
using Reader = std::function<std::optional<std::string>(size_t)>;

std::optional<Message> read_message(const Reader& read) {
  const auto count = read(4);
  if (!count || number_of(*count) > kMostFields) return std::nullopt;
  Message message(number_of(*count));
  for (std::string& field : message) {
    const auto length = read(4);
    if (!length || number_of(*length) > kLongestField) return std::nullopt;
    auto bytes = read(number_of(*length));
    if (!bytes) return std::nullopt;
    field = std::move(*bytes);
  }
  return message;
}

std::optional<std::string> read_socket(int socket, size_t count, std::chrono::milliseconds patience) {
  std::string bytes(count, '\0');
  for (size_t done = 0; done < count;) {
    pollfd waiting{socket, POLLIN, 0};
    const int ready = poll(&waiting, 1, static_cast<int>(patience.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return std::nullopt;
    const ssize_t got = recv(socket, bytes.data() + done, count - done, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    done += static_cast<size_t>(got);
  }
  return bytes;
}

}  // namespace

std::string encode(const Message& message) {
  std::string out;
  append_number(out, message.size());
  for (const std::string& field : message) {
    append_number(out, field.size());
    out += field;
  }
  return out;
}

bool send(int socket, const Message& message) {
  const std::string bytes = encode(message);
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t sent = ::send(socket, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    done += static_cast<size_t>(sent);
  }
  return true;
}

std::optional<Message> receive(int socket, std::chrono::milliseconds patience) {
  return read_message([&](size_t count) { return read_socket(socket, count, patience); });
}

std::optional<Message> decode(std::string_view bytes) {
  auto message = read_message([&](size_t count) -> std::optional<std::string> {
    if (bytes.size() < count) return std::nullopt;
    std::string taken(bytes.substr(0, count));
    bytes.remove_prefix(count);
    return taken;
  });
  return bytes.empty() ? message : std::nullopt;
}

}  // namespace oxy::backend::cuda
