// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/buffer_rule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_map>
#include <utility>

#include "diagnosis/sentences.hpp"
#include "dump/side.hpp"
#include "pairing/places.hpp"

namespace msprobe::diagnosis {
namespace {

using dump::Item;
using dump::Side;
using measuring::elements_of;
using measuring::unit_roundoff;

std::string name_of(const Side& side, const Item& buffer) {
  return fmt::format("{}.{}", pairing::module_path(side.text(side.apis[buffer.api].name)),
                     dump::split_last(side.name(buffer)).second);
}

}  // namespace

BufferRule::BufferRule(Walk& walk, const RunningStatistics& running) : WalkRule(walk) {
  std::unordered_map<std::string, std::uint32_t> golden_buffers;
  for (std::uint32_t i = 0; i < golden_.buffers.size(); ++i)
    golden_buffers.try_emplace(name_of(golden_, golden_.buffers[i]), i);
  for (std::uint32_t i = 0; i < target_.buffers.size(); ++i) {
    const Item& ours = target_.buffers[i];
    const auto partner = golden_buffers.find(name_of(target_, ours));
    if (partner == golden_buffers.end() || !ours.is_tensor) continue;
    if (running.are_left(measuring::content_key(target_, ours))) continue;
    const Item& theirs = golden_.buffers[partner->second];
    const measuring::Tolerance tolerance = history_.precision->of(target_, ours, golden_, theirs);
    const measuring::Measure measure = measuring::measure(target_, ours, golden_, theirs, tolerance);
    const bool other_size = elements_of(target_.text(ours.shape)) != elements_of(golden_.text(theirs.shape));
    const bool checksums = !measure.known && ours.has_checksum && theirs.has_checksum &&
                           target_.text(ours.checksum) != golden_.text(theirs.checksum);
    const double e = other_size || checksums ? measuring::kInfinite : measure.known ? measure.e : 0;
    // Errors of earlier values explain those of running statistics, unless a difference of the code made
    // them.
    const bool by_code = history_.suspects.contains(measuring::content_key(target_, ours)) ||
                         history_.suspects.contains(measuring::content_key(golden_, theirs));
    const double ahead = by_code ? 0
                                 : std::max({history_.forward, history_.backward, history_.gradients,
                                             walk_.drift ? walk_.drift->largest : 0});
    const double u = std::max({unit_roundoff(target_.text(ours.dtype)),
                               unit_roundoff(golden_.text(theirs.dtype)), measuring::kSingleRoundoff});
    const double excess = e / (ahead + kFew * u);
    if (!(excess > walk_.threshold)) continue;
    // A table of another size may hold the same values; only the tensors that are computed from it can show a
    // fault.
    const std::uint64_t content = measuring::content_key(target_, ours);
    if (!other_size && contents_.find(content) == ContentMap::kUnknown)
      contents_.put(content, static_cast<std::uint32_t>(different_.size()));
    different_.push_back({finding_of(i, partner->second, checksums ? NAN : e, excess), ours.api});
  }
}

bool BufferRule::is_within(std::uint32_t api, std::uint32_t module) const {
  const std::string_view name = walk_.target_name(module);
  if (api == module) return true;
  if (walk_.construct == nullptr) return false;
  const auto around = walk_.construct->around(walk_.target_name(api));
  return std::ranges::find(around, name) != around.end();
}

/// The first entry in a module.
std::uint32_t BufferRule::begin_of(std::uint32_t module) const {
  for (std::uint32_t api = 0; api < module; ++api) {
    if (is_within(api, module)) return api;
  }
  return module;
}

Finding BufferRule::finding_of(std::uint32_t buffer, std::uint32_t golden_buffer, double e,
                               double excess) const {
  const Item& ours = target_.buffers[buffer];
  const std::string name = name_of(target_, ours);
  EntryPair entry;
  entry.target = ours.api;
  entry.golden = golden_.buffers[golden_buffer].api;
  Finding found = walk_.finding(entry, Kind::parameter, Rule::source, excess);
  walk_.name_places(found, entry.target, entry.golden);
  found.order = walk_.order_of(begin_of(ours.api));
  found.place = fmt::format("buffers.{}", dump::split_last(name).second);
  const bool other_size = elements_of(target_.text(ours.shape)) !=
                          elements_of(golden_.text(golden_.buffers[golden_buffer].shape));
  found.text = other_size ? fmt::format("buffer {} has another size before it is used", name)
               : std::isnan(e)
                   ? fmt::format("buffer {} has another checksum before it is used", name)
                   : fmt::format("buffer {} differs by {} before it is used", name, error_text(e));
  found.next =
      fmt::format("compare how {} is computed, and whether loading a checkpoint leaves it as it was", name);
  return found;
}

void BufferRule::report(EntryPair& entry, Different& buffer) {
  entry.touched = true;
  if (std::exchange(buffer.reported, true)) return;
  // The tables of all layers are made in the same way, so that one finding is enough.
  const std::string_view name = buffer.finding.place;
  std::size_t more = 0;
  for (Different& other : different_) {
    if (!other.reported && (other.module == buffer.module || other.finding.place == name)) {
      other.reported = true;
      ++more;
    }
  }
  buffer.finding.concerned += more;
  if (more > 0) buffer.finding.text += fmt::format("; so {} {} more", more == 1 ? "does" : "do", more);
  // Unrecorded code may have put values into it that were wrong before, as the average of a model does.
  const auto came_before = [&](const Finding& each) {
    return each.is_evidence() && each.kind != Kind::parameter && each.order < buffer.finding.order;
  };
  buffer.finding.downstream =
      buffer.finding.downstream || std::ranges::any_of(walk_.out.findings, came_before);
  walk_.keep(buffer.finding, walk_.before);
}

bool BufferRule::takes(EntryPair& entry, std::uint64_t content) {
  const std::uint32_t found = contents_.find(content);
  if (found == ContentMap::kUnknown) return false;
  report(entry, different_[found]);
  return true;
}

void BufferRule::explain(EntryPair& entry) {
  if (!entry.best || !entry.best->is_evidence() || entry.best->downstream) return;
  for (Different& buffer : different_) {
    if (!is_within(entry.target, buffer.module)) continue;
    report(entry, buffer);
    entry.best->downstream = true;
    return;
  }
}

void BufferRule::finish() {
  for (Different& buffer : different_) {
    if (buffer.reported) continue;
    buffer.finding.confidence = Confidence::hint;
    buffer.finding.text += "; no recorded effect";
    walk_.keep(std::move(buffer.finding), 0);
  }
}

}  // namespace msprobe::diagnosis
