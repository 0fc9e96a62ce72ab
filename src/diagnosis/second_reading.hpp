// SPDX-License-Identifier: Apache-2.0
// Reads data once more where a rule asks for it: the tensors of a call that is replayed, those of a parameter
// before and after a step, the line that called an entry of golden, a noise floor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "diagnosis/noise_floor.hpp"
#include "diagnosis/updates.hpp"
#include "measuring/measured_rank.hpp"

namespace msprobe::diagnosis {

/// An output that was computed again, in double precision, from each side's own inputs.
struct Replayed {
  std::uint32_t item = 0;  // of the side under test
  double target = 0;       // distance of the recorded output from the computed one, relative
  double golden = 0;
  double tolerance = 0;
};

/// Items and entries are numbers of the sides. No function throws for a file that cannot be read; its result
/// is then missing.
class SecondReading {
 public:
  virtual ~SecondReading() = default;

  /// Replays a call of both sides; returns the outputs that it can judge.
  virtual std::vector<Replayed> replay(std::uint32_t target_api, std::uint32_t golden_api) = 0;
  /// The update of a parameter since the step before; nothing if that is not known.
  virtual std::optional<Update> update(std::uint32_t target_item, std::uint32_t golden_item) = 0;
  /// Whether two items have the same elements, in whatever order. False also where that is not known.
  virtual bool same_elements(std::uint32_t target_item, std::uint32_t golden_item) = 0;
  /// The line of code that called an entry of golden; empty if it is not known.
  virtual std::string golden_line(std::string_view golden_entry) = 0;
  /// The noise of an output of golden.
  virtual Noise noise(std::uint32_t golden_item) = 0;
};

/// Reads the files of the two dumps. All arguments must outlive it. `before`, the rank's step before, and
/// `noise` may be null.
class FileReading final : public SecondReading {
 public:
  FileReading(const measuring::MeasuredRank& rank, const measuring::MeasuredRank* before,
              const diagnosis::NoiseFloor* noise, const std::vector<std::string>& framework_frames);
  ~FileReading() override;

  std::vector<Replayed> replay(std::uint32_t target_api, std::uint32_t golden_api) override;
  std::optional<Update> update(std::uint32_t target_item, std::uint32_t golden_item) override;
  bool same_elements(std::uint32_t target_item, std::uint32_t golden_item) override;
  std::string golden_line(std::string_view golden_entry) override;
  Noise noise(std::uint32_t golden_item) override;

  /// How many entries and items have files that could not be read; the first of them, and why.
  std::size_t unread() const { return unread_.size(); }
  const std::string& first_unread() const { return first_unread_; }

 private:
  void failed(std::string_view name, const std::string& reason);

  const measuring::MeasuredRank& rank_;
  const diagnosis::NoiseFloor* noise_;
  class Stacks;
  std::unique_ptr<Stacks> golden_stacks_;
  class StepUpdates;
  std::unique_ptr<StepUpdates> updates_;
  std::set<std::string, std::less<>> unread_;  // by name
  std::string first_unread_;
};

}  // namespace msprobe::diagnosis
