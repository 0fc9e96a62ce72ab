// SPDX-License-Identifier: Apache-2.0
// A configuration pack: the zip archive of one run's environment, packages, hyper-parameters and statistics.
#pragma once

#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "archive/zip_reader.hpp"
#include "support/byte_source.hpp"

namespace msprobe::pack {

/// The comment of a pack's archive is this and the format version; the Python tool does not read it.
inline constexpr std::string_view kFormatMark = "msprobe pack ";

enum class Section : std::uint8_t { env, pip, dataset, weights, hyperparameters, random };
inline constexpr Section kSections[] = {
    Section::env,   Section::pip, Section::dataset, Section::weights, Section::hyperparameters,
    Section::random};
std::string_view name_of(Section section);

struct PackLimits {
  std::uint64_t max_members = 2'000'000;  // a long run records one file for each rank and micro-step
  std::uint64_t max_member = std::uint64_t{1} << 30;
  std::uint64_t max_total = std::uint64_t{10} << 30;
};

struct PackMember {
  std::string name;
  std::uint64_t step = 0;  // only for dataset and weights
  std::uint64_t rank = 0;  // only for dataset, weights and random
  std::string_view file() const { return std::string_view(name).substr(name.rfind('/') + 1); }
};

class Pack {
 public:
  /// FormatError naming the file if it is not a pack, or cannot be trusted: it is damaged, has links or names
  /// that lead out of a folder, or unpacks to more than the limits. Members with unknown names are ignored;
  /// of two members with the same name the last counts.
  explicit Pack(std::shared_ptr<const ByteSource> file, const PackLimits& limits = {});

  const std::string& name() const { return name_; }
  /// The members of a section: by step, then rank, then name.
  const std::vector<PackMember>& members(Section section) const;
  const PackMember* find(Section section, std::string_view name) const;
  /// Members at a place where the section allows none; they make the section unreadable.
  const std::vector<std::string>& misplaced(Section section) const;
  const std::vector<std::string>& warnings() const { return warnings_; }

  /// The text of a member, after its checksum was verified. FormatError if it is damaged.
  std::string read(const PackMember& member) const;
  /// Reads all members and discards them. FormatError if one is damaged.
  void verify() const;

 private:
  bool add(const archive::ZipEntry& entry);

  std::string name_;
  PackLimits limits_;
  archive::ZipReader zip_;
  std::vector<PackMember> members_[std::size(kSections)];
  std::vector<std::string> misplaced_[std::size(kSections)];
  std::vector<std::string> warnings_;
};

}  // namespace msprobe::pack
