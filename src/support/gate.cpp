// SPDX-License-Identifier: Apache-2.0
#include "support/gate.hpp"

#include <algorithm>

#include "support/log.hpp"
#include "support/text.hpp"

namespace msprobe {
namespace {

constexpr std::size_t kMostTold = 8;
constexpr std::string_view kNoGate = "never";

}  // namespace

void tell_not_judged(std::string_view fail_on, const std::vector<std::string>& not_judged) {
  const auto tell = fail_on == kNoGate ? log_warning : log_error;
  const std::size_t told = std::min(not_judged.size(), kMostTold);
  for (std::size_t i = 0; i < told; ++i) tell("not judged: " + not_judged[i]);
  if (told < not_judged.size()) tell("not judged: " + human_count(not_judged.size() - told) + " more");
}

Outcome gate_outcome(std::string_view fail_on, bool findings, const std::vector<std::string>& not_judged) {
  if (fail_on == kNoGate) return Outcome::clean;
  if (findings) return Outcome::findings;
  return not_judged.empty() ? Outcome::clean : Outcome::failure;
}

Outcome end_at_gate(std::string_view fail_on, bool findings, const std::vector<std::string>& not_judged) {
  tell_not_judged(fail_on, not_judged);
  return gate_outcome(fail_on, findings, not_judged);
}

}  // namespace msprobe
