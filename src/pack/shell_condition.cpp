// SPDX-License-Identifier: Apache-2.0
#include "pack/shell_condition.hpp"

#include "support/ascii.hpp"

namespace msprobe::pack {
namespace {

constexpr int kDeepestTest = 32;
constexpr std::size_t kMostSteps = 1'000'000;  // of fitting a pattern; names and paths take some hundreds
constexpr std::string_view kPatternLetters = "*?[\\";

using Operand = std::optional<std::string>;

Truth truth_of(bool holds) {
  return holds ? Truth::yes : Truth::no;
}

/// `a || b && ! ( c )`, as `[[ ]]` has it; `[ ]` has one comparison only, else it is unknown.
class Test {
 public:
  Test(const std::vector<Operand>& words, std::size_t first, std::size_t last, bool extended)
      : words_(words), at_(first), end_(last), extended_(extended) {}

  Truth run() {
    const Truth found = any(0);
    return at_ == end_ && !failed_ ? found : Truth::unknown;
  }

 private:
  bool is(std::string_view text) const { return at_ < end_ && words_[at_] && *words_[at_] == text; }
  bool take(std::string_view text) {
    if (!is(text)) return false;
    ++at_;
    return true;
  }

  Truth any(int depth) {
    Truth found = all(depth);
    while (extended_ && take("||")) found = either(found, all(depth));
    return found;
  }

  Truth all(int depth) {
    Truth found = one(depth);
    while (extended_ && take("&&")) found = both(found, one(depth));
    return found;
  }

  Truth one(int depth) {
    if (at_ == end_ || depth > kDeepestTest) return fail();
    // Before a single word `!` negates; `[ ! ]` and `[ ! = x ]` test the letter itself.
    if (end_ - at_ >= 2 && is("!") && !is_comparison(at_ + 1)) {
      ++at_;
      return negated(one(depth + 1));
    }
    if (extended_ && take("(")) {
      const Truth found = any(depth + 1);
      return take(")") ? found : fail();
    }
    if (is_comparison(at_ + 1) && at_ + 2 < end_) {
      at_ += 3;
      return compared(words_[at_ - 3], *words_[at_ - 2], words_[at_ - 1]);
    }
    if (at_ + 1 < end_ && words_[at_] && words_[at_]->size() == 2 && words_[at_]->front() == '-' &&
        !(extended_ && (words_[at_ + 1] == "&&" || words_[at_ + 1] == "||"))) {
      at_ += 2;
      const char which = (*words_[at_ - 2])[1];
      if ((which != 'z' && which != 'n') || !words_[at_ - 1]) return Truth::unknown;
      return truth_of(words_[at_ - 1]->empty() == (which == 'z'));
    }
    ++at_;
    return words_[at_ - 1] ? truth_of(!words_[at_ - 1]->empty()) : Truth::unknown;
  }

  Truth fail() {
    failed_ = true;
    return Truth::unknown;
  }

  bool is_comparison(std::size_t at) const {
    if (at >= end_ || !words_[at]) return false;
    const std::string& word = *words_[at];
    return word == "=" || word == "==" || word == "!=" || word == "<" || word == ">" || word == "=~" ||
           word == "-eq" || word == "-ne" || word == "-lt" || word == "-le" || word == "-gt" || word == "-ge";
  }

  Truth compared(const Operand& left, const std::string& how, const Operand& right) const {
    if (!left || !right) return Truth::unknown;
    if (how.front() == '-') {
      const auto a = whole_number<std::int64_t>(*left);
      const auto b = whole_number<std::int64_t>(*right);
      if (!a || !b) return Truth::unknown;
      if (how == "-eq") return truth_of(*a == *b);
      if (how == "-ne") return truth_of(*a != *b);
      if (how == "-lt") return truth_of(*a < *b);
      if (how == "-le") return truth_of(*a <= *b);
      return truth_of(how == "-gt" ? *a > *b : *a >= *b);
    }
    if (how == "<" || how == ">" || how == "=~") return Truth::unknown;
    // In [[ ]] this may be a pattern, or quoted and none.
    if (extended_ && right->find_first_of(kPatternLetters) != std::string::npos) return Truth::unknown;
    return truth_of((*left == *right) == (how != "!="));
  }

  const std::vector<Operand>& words_;
  std::size_t at_;
  std::size_t end_;
  bool extended_;
  bool failed_ = false;
};

}  // namespace

Truth negated(Truth truth) {
  return truth == Truth::unknown ? truth : truth_of(truth == Truth::no);
}

Truth both(Truth a, Truth b) {
  if (a == Truth::no || b == Truth::no) return Truth::no;
  return a == Truth::yes && b == Truth::yes ? Truth::yes : Truth::unknown;
}

Truth either(Truth a, Truth b) {
  return negated(both(negated(a), negated(b)));
}

Truth evaluate_test(const std::vector<std::optional<std::string>>& words) {
  if (words.empty() || !words.front()) return Truth::unknown;
  const std::string& first = *words.front();
  if (first == "test") return Test(words, 1, words.size(), false).run();
  const std::string_view closing = first == "[[" ? "]]" : "]";
  if (words.size() < 2 || words.back() != closing) return Truth::unknown;
  return Test(words, 1, words.size() - 1, first == "[[").run();
}

std::optional<bool> fits_pattern(std::string_view pattern, std::string_view text) {
  if (pattern.find_first_of("[\\(") != std::string_view::npos) return std::nullopt;
  if (pattern.size() * text.size() > kMostSteps) return std::nullopt;
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;  // the last one, and what it has taken so far ends there
  std::size_t taken = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace msprobe::pack
