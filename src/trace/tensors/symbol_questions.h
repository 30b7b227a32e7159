// Questions of shape rules, asked of the symbols of a capture in the name of the user's line of now.
#pragma once

#include "ops/core/size_questions.h"
#include "torch_api/symbolic_node.h"

namespace oxy::trace {

class SymbolQuestions : public ops::SizeQuestions {
 public:
  explicit SymbolQuestions(torch_api::Symbols& symbols) : symbols_(symbols) {}
  bool decide(const sym::Condition& question) const override {
    return symbols_.environment.expect(question, symbols_.where);
  }
  bool is_empty(const sym::Expr& count) const override {
    return symbols_.environment.expect_empty(count, symbols_.where);
  }
  bool require(const sym::Condition& condition) const override {
    return symbols_.environment.check(condition, symbols_.where) != sym::Checked::Fails;
  }
  bool decide_layout(const sym::Condition& question) const override {
    const std::optional<bool> answer = symbols_.decide_layout(question);
    return answer ? *answer : decide(question);
  }
  void need_exact_ones() const override { symbols_.needs_exact_ones = true; }
  std::optional<bool> generally(const sym::Condition& question) const override {
    return symbols_.environment.general_answer(question);
  }
  std::optional<bool> at_hand(const sym::Condition& question) const override {
    return symbols_.environment.hint(question);
  }
  int64_t specialise(const sym::Expr& e) const override {
    return symbols_.environment.specialise(e, symbols_.where);
  }

 protected:
  torch_api::Symbols& symbols() const { return symbols_; }

 private:
  torch_api::Symbols& symbols_;
};

}  // namespace oxy::trace
