// SPDX-License-Identifier: Apache-2.0
#include "pack/pack_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <tuple>

#include "dump/tree.hpp"
#include "support/crc32.hpp"
#include "support/error.hpp"
#include "support/format_version.hpp"
#include "support/parallel.hpp"
#include "support/text.hpp"

namespace msprobe::pack {
namespace {

constexpr std::size_t kMostLevels = 10;  // of folders in weights
constexpr std::string_view kNames[] = {"env", "pip", "dataset", "weights", "hyperparameters", "random"};

/// Why a program that unpacks the archive could write outside its folder; empty: it could not.
std::string_view why_it_escapes(const archive::ZipEntry& entry) {
  const std::string_view name = entry.name;
  if (entry.link) return "it is a symbolic link";
  const bool drive = name.size() > 1 && name[1] == ':';
  if (name.starts_with('/') || name.starts_with('\\') || drive) return "its name is absolute";
  for (const std::string_view part : split(name, "/\\")) {
    if (part == "..") return "its name leads outside the folder";
  }
  return {};
}

archive::ZipLimits zip_limits(const PackLimits& limits) {
  archive::ZipLimits zip;
  zip.max_entries = limits.max_members;
  zip.max_directory = std::uint64_t{1} << 30;
  zip.allow_twins = true;
  return zip;
}

std::size_t index_of(Section section) {
  return static_cast<std::size_t>(section);
}

}  // namespace

std::string_view name_of(Section section) {
  return kNames[index_of(section)];
}

Pack::Pack(std::shared_ptr<const ByteSource> file, const PackLimits& limits)
    : name_(file->name()), limits_(limits), zip_(std::move(file), zip_limits(limits)) {
  if (std::string_view version = zip_.comment(); version.starts_with(kFormatMark)) {
    version.remove_prefix(kFormatMark.size());
    check_format_version(name_, version, kPackFormat);
  }
  std::uint64_t total = 0;
  std::uint64_t ignored = 0;
  for (const archive::ZipEntry& entry : zip_.entries()) {
    if (const std::string_view reason = why_it_escapes(entry); !reason.empty())
      throw FormatError(display(name_), fmt::format("refused: member {}: {}", display(entry.name), reason));
    if (entry.size > limits_.max_member) {
      throw FormatError(display(name_),
                        fmt::format("refused: member {} unpacks to {}; the limit is {}", display(entry.name),
                                    human_bytes(entry.size), human_bytes(limits_.max_member)));
    }
    total += entry.size;  // cannot overflow: fewer than 2^32 members of 2^30 bytes
    if (total > limits_.max_total) {
      throw FormatError(display(name_),
                        fmt::format("refused: it unpacks to more than {}", human_bytes(limits_.max_total)));
    }
    if (zip_.find(entry.name) != &entry) {
      warnings_.push_back(
          fmt::format("{}: duplicate member {}; the last one is used", display(name_), display(entry.name)));
      continue;
    }
    if (!add(entry)) ++ignored;
  }
  std::ranges::sort(warnings_);
  warnings_.erase(std::unique(warnings_.begin(), warnings_.end()), warnings_.end());
  if (ignored != 0)
    warnings_.push_back(
        fmt::format("{}: ignored {} members that do not belong in a pack", display(name_), ignored));
  for (std::vector<PackMember>& members : members_) {
    std::ranges::sort(members, [](const PackMember& a, const PackMember& b) {
      return std::tie(a.step, a.rank, a.name) < std::tie(b.step, b.rank, b.name);
    });
  }
}

bool Pack::add(const archive::ZipEntry& entry) {
  const std::vector<std::string_view> parts = split(entry.name, "/");
  const std::string_view file = parts.back();
  PackMember member;
  member.name = entry.name;
  const auto keep = [&](Section section) {
    members_[index_of(section)].push_back(std::move(member));
    return true;
  };
  const auto misplace = [&](Section section) {
    misplaced_[index_of(section)].push_back(entry.name);
    return true;
  };
  if (file.empty()) {  // a folder
    if (entry.name == "env/") return misplace(Section::env);
    if (entry.name == "pip/") return misplace(Section::pip);
    return true;
  }
  if (parts.size() == 1) {
    if (file == "env") return keep(Section::env);
    if (file == "pip") return keep(Section::pip);
    return false;
  }
  const std::string_view top = parts.front();
  if (top == "hyperparameters" && parts.size() == 2) {
    if (file == "hyperparameters_static.json" || file == "hyperparameters_dynamic.json")
      return keep(Section::hyperparameters);
    return false;
  }
  if (top == "random" && parts.size() == 2) {
    if (!file.starts_with("rank") || !file.ends_with(".json")) return false;
    const auto rank = dump::number_after(file.substr(0, file.size() - 5), "rank");
    if (!rank) return misplace(Section::random);
    member.rank = *rank;
    return keep(Section::random);
  }
  const bool dataset = top == "dataset";
  if (!dataset && top != "weights") return false;
  if (dataset ? file != "dataset.json" : !file.ends_with(".json")) return false;
  const auto step = parts.size() >= 4 ? dump::number_after(parts[1], "step") : std::nullopt;
  const auto rank = parts.size() >= 4 ? dump::number_after(parts[2], "rank") : std::nullopt;
  const bool right_depth = dataset ? parts.size() == 4 : parts.size() <= kMostLevels + 1;
  if (!step || !rank || !right_depth) {
    if (dataset) return false;
    return misplace(Section::weights);
  }
  member.step = *step;
  member.rank = *rank;
  return keep(dataset ? Section::dataset : Section::weights);
}

const std::vector<PackMember>& Pack::members(Section section) const {
  return members_[index_of(section)];
}

const std::vector<std::string>& Pack::misplaced(Section section) const {
  return misplaced_[index_of(section)];
}

const PackMember* Pack::find(Section section, std::string_view name) const {
  const auto& members = this->members(section);
  const auto found =
      std::ranges::find_if(members, [&](const PackMember& member) { return member.name == name; });
  return found == members.end() ? nullptr : &*found;
}

std::string Pack::read(const PackMember& member) const {
  const archive::ZipEntry* const entry = zip_.find(member.name);
  const auto bytes = zip_.open(*entry, limits_.max_member);
  std::string text = read_text(*bytes, 0, bytes->size());
  if (entry->method == archive::ZipMethod::stored) {
    if (crc32(0, std::as_bytes(std::span(text))) != entry->crc32)
      throw FormatError(display(name_), fmt::format("zip entry {}: wrong checksum", display(member.name)));
  }
  return text;
}

void Pack::verify() const {
  for (const std::vector<PackMember>& members : members_) {
    parallel_for(members.size(), [&](std::size_t i) { read(members[i]); });
  }
}

}  // namespace msprobe::pack
