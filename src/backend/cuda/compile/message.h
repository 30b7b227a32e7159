// Messages between this process and the workers: fields of bytes. See python/oxyfuel/_triton_worker.py.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace oxy::backend::cuda {

using Message = std::vector<std::string>;

std::string encode(const Message& message);

// Sends the message over a socket. False if the other end is gone; no signal is raised.
bool send(int socket, const Message& message);
// Waits for a whole message. Nothing if the other end is gone, sends what is no message, or lets `patience`
// pass without a byte.
std::optional<Message> receive(int socket, std::chrono::milliseconds patience);

// `message` of the bytes that encode() gave; nothing if they are not.
std::optional<Message> decode(std::string_view bytes);

}  // namespace oxy::backend::cuda
