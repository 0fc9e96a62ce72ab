// SPDX-License-Identifier: Apache-2.0
#include "support/team.hpp"

#include "support/parallel.hpp"
#include "support/units.hpp"

namespace msprobe {
namespace {

class SingleProcess final : public Team {
 public:
  void share(const SharedWork& work) override { do_alone(work); }
  bool is_root() const override { return true; }
  std::size_t processes() const override { return 1; }
  std::vector<std::string> gather(const std::string& own) override { return {own}; }
  std::string host() const override { return "this machine"; }
  std::time_t begun() const override { return std::time(nullptr); }
};

Team* g_team = nullptr;

}  // namespace

Team& team() {
  static SingleProcess alone;
  return g_team == nullptr ? alone : *g_team;
}

void set_team(Team* team) {
  g_team = team;
}

std::uint64_t fingerprint(std::uint64_t before, std::string_view text) {
  // FNV-1a; the length comes first, so that adjacent texts stay separate.
  constexpr std::uint64_t kPrime = 0x100000001b3;
  std::uint64_t number = (before ^ text.size()) * kPrime;
  for (const char c : text) number = (number ^ static_cast<unsigned char>(c)) * kPrime;
  return number;
}

void do_alone(const SharedWork& work) {
  const std::vector<std::size_t> order = largest_first(work.bytes);
  if (work.one_at_a_time) {
    for (const std::size_t unit : order) work.compute(unit);
  } else {
    parallel_for(order.size(), [&](std::size_t i) { work.compute(order[i]); });
  }
}

}  // namespace msprobe
