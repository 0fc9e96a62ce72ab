// SPDX-License-Identifier: Apache-2.0
// A team that computes nothing (--dry-run): it only notes the work that would have to be done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "support/team.hpp"

namespace msprobe {

class DryRun final : public Team {
 public:
  explicit DryRun(std::size_t processes) : processes_(processes) {}

  void share(const SharedWork& work) override;
  bool is_root() const override { return false; }  // so that no output is finished
  bool hands_out() const override { return true; }
  bool computes() const override { return false; }
  std::size_t processes() const override { return processes_; }
  std::vector<std::string> gather(const std::string& own) override { return {own}; }
  std::string host() const override { return "this machine"; }
  std::time_t begun() const override { return 0; }

  /// The plan in words: units, bytes, the largest units, and their distribution over the processes.
  std::string plan() const;

 private:
  struct DryRunPart {
    std::string units;
    std::vector<std::uint64_t> bytes;
    std::vector<std::string> largest;  // names, the largest first
  };

  std::size_t processes_;
  std::vector<DryRunPart> parts_;  // one after another
};

}  // namespace msprobe
