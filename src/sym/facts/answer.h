// What is known of a question.
#pragma once

#include <cstdint>
#include <optional>

namespace oxy::sym {

enum class Answer : uint8_t { False, True, Unknown };

constexpr Answer answer_of(bool value) {
  return value ? Answer::True : Answer::False;
}
constexpr Answer operator!(Answer answer) {
  return answer == Answer::Unknown ? answer : answer_of(answer == Answer::False);
}

constexpr std::optional<bool> certain(Answer answer) {
  return answer == Answer::Unknown ? std::nullopt : std::optional(answer == Answer::True);
}

}  // namespace oxy::sym
