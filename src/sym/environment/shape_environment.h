// The shape environment: the symbols of one compilation, what is known of them, and what the compilation
// relies on.
//
// A question about sizes is answered from what is known if that is possible, and leaves no trace. Otherwise
// the values at hand answer it, and the answer becomes a guard with the user's line that asked: the
// compilation serves every later call whose values satisfy all guards, and for each of them every question
// has the same answer. Symbols of equal value are different symbols until the program asks whether they are
// equal, and 0 and 1 are values like any other.
//
// A symbol without a value (data-dependent, or marked so) leaves no guard. What the program checks of it
// becomes an assertion of the run, and is relied on. Not thread-safe; copies are values.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "sym/environment/data_dependence.h"
#include "sym/environment/demands.h"
#include "sym/environment/symbol.h"
#include "sym/facts/facts.h"

namespace oxy::sym {

// Gives the user's line, "file.py:12 in forward". It is called only if a line is needed.
using Locate = std::function<std::string()>;

// What the program checked of values that are known when the graph runs.
struct Assertion {
  Condition condition;
  std::string asked_at;
  bool is_likely = false;  // nobody said it: it is the answer that expect() took for likely
};

// The program contradicts a mark.
struct MarkViolation {
  SymbolId symbol{};
  std::string text;      // "x.size(0) is marked dynamic, but the program takes it for 8"
  std::string asked_at;  // the line that did so; empty: the value at hand is not in the marked range
  std::string advice;    // what the user can do
};

enum class Checked : uint8_t { Holds, Recorded, Fails };

class ShapeEnvironment {
 public:
  // Variables get ids from `first_id` on.
  explicit ShapeEnvironment(int64_t first_id = 0) : first_id_(first_id) {}

  // The expression for a value that is read before the graph runs: a symbol, or the number if it is marked
  // static. Unsupported for numbers of more than 61 bits.
  Expr admit(SymbolKind kind, Origin origin, int64_t value, const Mark& mark = {});
  // The symbol for a value that the graph computes, known to be in the range.
  Expr data_dependent(Origin origin, Range range = {});

  std::span<const Symbol> symbols() const { return symbols_; }
  const Symbol& symbol(SymbolId id) const;  // InternalError if it has none such

  // What is certain.
  Answer answer(const Condition& question, Assume assume = Assume::Nothing) const;
  // Whether only data tell the answer: neither what is certain nor the values at hand do.
  bool depends_on_data(const Condition& question) const;
  // The answer for all calls. Unknown becomes the answer of the values at hand, and a guard. DataDependence
  // if there are none; of a size that is marked unbacked it is a violation as well.
  bool decide(const Condition& question, const Locate& where);
  // What holds for sizes other than 0 and 1, if that is certain.
  std::optional<bool> general_answer(const Condition& question) const;
  // For a question whose general answer is right for all sizes, if only the program goes on as for the
  // general case: that answer and no guard, unless the values at hand differ from it; then as decide().
  bool decide_general(const Condition& question, const Locate& where);
  // The same, and what only data could tell is `otherwise`.
  bool decide_general_or(const Condition& question, bool otherwise, const Locate& where);
  // For a question whose answer `otherwise` is right whatever comes: what is certain, or else that. No guard.
  bool decide_or_default(const Condition& question, bool otherwise) const;
  // For a question of an operator's. As decide(), but what only data could tell gets the answer that is
  // likely: numbers are not negative, sizes are neither 0 nor 1, and what is compared is equal. That becomes
  // an assertion. DataDependence if no answer is likely.
  bool expect(const Condition& question, const Locate& where);
  // Whether a size or a number of elements is zero: as expect(), but what only data could tell is likely not.
  bool expect_empty(const Expr& count, const Locate& where);
  // As expect(), with an answer that the caller knows to be likely. False, and nothing changes, if it
  // contradicts what is known.
  bool suppose(const Condition& condition, const Locate& where);
  // The value of the expression for all calls, guarded.
  int64_t specialise(const Expr& e, const Locate& where);

  // The user has said so of sizes: a guard, and nothing that the program demands. Precondition: it holds for
  // the values at hand.
  void promise(const Condition& condition, const std::string& said_at);

  // The program itself asserts the condition (`torch._check`). Of values at hand it is a guard if they
  // satisfy it, else Fails and nothing changes: the program raises. Of others it is an assertion of the run,
  // or Fails if it contradicts what is known.
  Checked check(const Condition& condition, const Locate& where);
  // As check(e >= 0), and `e` is a size from now on (Assume::LargeSizes).
  Checked expect_size(const Expr& e, const Locate& where);
  // What is so by construction, such as an operator's bound of its result: neither guard nor assertion.
  void assume(const Condition& condition);

  // Takes expressions of several symbols that guards hold to 0 or 1 for the values at hand: canonical forms
  // know the ranges of variables only, and a stride of max(e, 1) would not be seen to be 1.
  void specialise_small_expressions();

  // The value at hand; nothing if a symbol has none, or it cannot be computed.
  std::optional<int64_t> hint(const Expr& e) const;
  std::optional<bool> hint(const Condition& condition) const;
  // Of the same value wherever guards and assertions hold; equal expressions of symbols that are known to be
  // equal become one.
  Expr simplify(const Expr& e) const { return facts_.simplify(e); }
  Range range(const Expr& e) const { return facts_.range(e); }
  // What holds before the graph has computed anything: the guards, and assertions of what is read before.
  Facts facts_of_guards() const;
  // Whether it has a symbol that the graph computes.
  bool depends_on_graph(const Condition& condition) const;
  bool depends_on_graph(const Expr& e) const;

  // All that was asked for, in order, and what remains of it when nothing is said twice. The conditions have
  // symbols with values only.
  std::span<const Demand> demands() const { return demands_; }
  std::vector<Demand> guards() const { return minimal(demands_); }
  std::span<const Assertion> assertions() const { return assertions_; }
  std::span<const MarkViolation> violations() const { return violations_; }
  // The sizes that the user wants to be symbols: "x.size(0) is marked dynamic".
  std::vector<std::string> promised_symbols() const;

  // As the user would write them.
  std::string text(const Expr& e) const;
  std::string text(const Condition& condition) const;

 private:
  Expr add_symbol(SymbolKind kind, Origin origin, std::optional<int64_t> hint, const Mark& mark, Range range);
  const Symbol* find(int64_t variable_id) const;
  bool is_of_graph(const std::vector<Expr>& variables) const;
  // Throws DataDependence for a question that has no answer, or a number that has no value.
  [[noreturn]] void refuse(const Symbol& symbol, const std::string& question, const Locate& where,
                           const std::string& check);
  // A symbol of it that has no value; null if all have one.
  const Symbol* symbol_without_value(const Condition& condition) const;
  // The likely answer of expect().
  std::optional<bool> likely(const Condition& question) const;
  // Of a condition whose value is known without its symbols that have none: a condition without those that
  // decides it.
  Condition decisive_part(const Condition& condition, bool value) const;
  void demand(const Condition& condition, const std::string& where);
  void add_demand(const Condition& demanded, const std::string& where);
  void look_for_violations(const Condition& demanded, const std::string& where);
  // Over the variables as the symbols have them.
  Condition plain(const Condition& condition) const;
  std::string name(int64_t variable_id) const;

  int64_t first_id_;
  std::vector<Symbol> symbols_;  // by id less first_id_
  Facts facts_;
  std::vector<Demand> demands_;
  std::vector<Condition> assumed_;
  std::vector<Assertion> assertions_;
  std::vector<MarkViolation> violations_;
};

}  // namespace oxy::sym
