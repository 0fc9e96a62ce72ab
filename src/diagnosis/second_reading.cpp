// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/second_reading.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <span>
#include <unordered_map>
#include <utility>

#include "diagnosis/replay/replay.hpp"
#include "dump/member_stream.hpp"
#include "dump/side.hpp"
#include "dump/stack_json.hpp"
#include "formats/element_values.hpp"
#include "pairing/alignment.hpp"
#include "pairing/places.hpp"
#include "support/error.hpp"
#include "support/interrupt.hpp"
#include "support/parallel.hpp"

namespace msprobe::diagnosis {
namespace {

using dump::Api;
using dump::Item;
using dump::Side;
using measuring::MeasuredRank;

bool is_computed(const replay::ReplayedOutput& output) {
  return output.status == replay::Status::computed;
}

replay::ReplayResult replay_entry_of(const Side& side, std::uint32_t api) {
  const Api& place = side.apis[api];
  const std::string_view name = side.text(place.name);
  dump::Entry entry;
  dump::read_entry_at(*open_file(side.json), place.offset, place.size, entry, name);
  return replay::replay_entry(name, entry, side.tensor_directory);
}

/// All elements of a tensor, ascending, NaN last.
std::vector<double> sorted_elements(const formats::StoredTensor& tensor) {
  constexpr std::size_t kPiece = std::size_t{16} << 10;
  std::vector<double> elements;
  formats::ValueReader reader(tensor);
  while (reader.remaining() > 0) {
    check_interrupt();
    const std::span<const double> piece = reader.read(kPiece);
    elements.insert(elements.end(), piece.begin(), piece.end());
  }
  const auto numbers =
      std::partition(elements.begin(), elements.end(), [](double value) { return !std::isnan(value); });
  std::sort(elements.begin(), numbers);
  return elements;
}

/// Items of a step, by name.
class NamedItems {
 public:
  explicit NamedItems(const Side& side) : side_(side) {
    for (std::uint32_t i = 0; i < side.items.size(); ++i) {
      if (side.items[i].data_name != 0) items_.emplace(side.name(side.items[i]), i);
    }
  }
  /// The item with the name of an item of a later step; null if no such item exists, or one of them has no
  /// data file.
  const Item* find(const Side& now, std::uint32_t item) const {
    const auto found = items_.find(now.name(now.items[item]));
    return found == items_.end() || now.items[item].data_name == 0 ? nullptr : &side_.items[found->second];
  }
  const Side& side() const { return side_; }

 private:
  const Side& side_;
  std::unordered_map<std::string_view, std::uint32_t> items_;
};

}  // namespace

/// stack.json of golden, read when the first line is asked for.
class FileReading::Stacks {
 public:
  Stacks(std::string_view json, const std::vector<std::string>& framework_frames)
      : path_((std::filesystem::path(json).parent_path() / "stack.json").string()),
        frames_(framework_frames) {}
  std::string line_of(std::string_view entry) {
    if (!stacks_) stacks_.emplace(read());
    const auto* frames = stacks_->find(entry);
    return frames == nullptr ? std::string() : dump::user_frame(*frames, frames_);
  }

 private:
  dump::StackTable read() const {
    try {
      return dump::read_stacks_if_any(path_).value_or(dump::StackTable());
    } catch (const Error&) {
      return {};  // there is no line to show
    }
  }

  std::string path_;
  const std::vector<std::string>& frames_;
  std::optional<dump::StackTable> stacks_;
};

/// The updates of parameters, from the tensors of this step and of the one before. Throws what the readers of
/// tensors throw.
class FileReading::StepUpdates {
 public:
  StepUpdates(const MeasuredRank& before, const MeasuredRank& now)
      : now_(now), target_(before.target), golden_(before.golden) {}

  std::optional<Update> of(std::uint32_t target_item, std::uint32_t golden_item) const {
    const Item* const target = target_.find(now_.target, target_item);
    const Item* const golden = golden_.find(now_.golden, golden_item);
    if (target == nullptr || golden == nullptr) return std::nullopt;
    using measuring::open_data;
    return update_between(
        {open_data(target_.side(), *target), open_data(now_.target, now_.target.items[target_item])},
        {open_data(golden_.side(), *golden), open_data(now_.golden, now_.golden.items[golden_item])});
  }

 private:
  const MeasuredRank& now_;
  NamedItems target_;
  NamedItems golden_;
};

FileReading::FileReading(const MeasuredRank& rank, const MeasuredRank* before,
                         const diagnosis::NoiseFloor* noise, const std::vector<std::string>& framework_frames)
    : rank_(rank),
      noise_(noise),
      golden_stacks_(std::make_unique<Stacks>(rank.golden.json, framework_frames)),
      updates_(before == nullptr ? nullptr : std::make_unique<StepUpdates>(*before, rank)) {}

FileReading::~FileReading() = default;

void FileReading::failed(std::string_view name, const std::string& reason) {
  if (first_unread_.empty()) first_unread_ = std::string(name) + ": " + reason;
  unread_.emplace(name);
}

/// Measures how far the outputs of each side are from those that its own inputs give.
std::vector<Replayed> FileReading::replay(std::uint32_t target_api, std::uint32_t golden_api) {
  std::vector<Replayed> out;
  replay::ReplayResult ours;
  replay::ReplayResult theirs;
  parallel_for(2, [&](std::size_t side) {
    if (side == 0) ours = replay_entry_of(rank_.target, target_api);
    if (side == 1) theirs = replay_entry_of(rank_.golden, golden_api);
  });
  const Api& api = rank_.target.apis[target_api];
  for (const replay::ReplayResult* outputs : {&ours, &theirs}) {
    for (const replay::ReplayedOutput& output : *outputs) {
      if (output.status == replay::Status::broken_off) failed(rank_.target.text(api.name), output.reason);
    }
  }
  for (const std::uint32_t item : api.items()) {
    if (rank_.target.items[item].state != dump::State::output) continue;
    std::string_view place = pairing::place_of(rank_.target, rank_.target.items[item]).rest;
    if (place.starts_with('.')) place.remove_prefix(1);
    const auto of_place = [&](const replay::ReplayResult& outputs) {
      return std::find_if(outputs.begin(), outputs.end(),
                          [&](const auto& one) { return one.place == place && is_computed(one); });
    };
    const auto target = of_place(ours);
    const auto golden = of_place(theirs);
    if (target == ours.end() || golden == theirs.end()) continue;
    // An output that was only looked at in part may prove a fault, but cannot rule one out.
    const bool whole = target->covered == 1 && golden->covered == 1;
    if (!whole && target->r <= target->tolerance && golden->r <= golden->tolerance) continue;
    out.push_back({item, target->r, golden->r, std::max(target->tolerance, golden->tolerance)});
  }
  return out;
}

std::optional<Update> FileReading::update(std::uint32_t target_item, std::uint32_t golden_item) {
  if (!updates_) return std::nullopt;
  try {
    return updates_->of(target_item, golden_item);
  } catch (const Error& error) {
    failed(rank_.target.name(rank_.target.items[target_item]), error.what());
    return std::nullopt;
  }
}

bool FileReading::same_elements(std::uint32_t target_item, std::uint32_t golden_item) {
  // Chosen: 64 MiB a side.
  constexpr std::int64_t kMostElements = std::int64_t{8} << 20;
  const Item& item = rank_.target.items[target_item];
  const Item& partner = rank_.golden.items[golden_item];
  if (item.data_name == 0 || partner.data_name == 0) return false;
  try {
    const formats::StoredTensor ours = measuring::open_data(rank_.target, item);
    const formats::StoredTensor theirs = measuring::open_data(rank_.golden, partner);
    if (ours.numel() != theirs.numel() || ours.numel() > kMostElements || ours.dtype != theirs.dtype)
      return false;
    const std::vector<double> elements = sorted_elements(ours);
    return elements == sorted_elements(theirs);
  } catch (const Error& error) {
    failed(rank_.target.name(item), error.what());
    return false;
  }
}

std::string FileReading::golden_line(std::string_view golden_entry) {
  return golden_stacks_->line_of(golden_entry);
}

Noise FileReading::noise(std::uint32_t golden_item) {
  if (noise_ == nullptr) return {};
  try {
    return (*noise_)(golden_item);
  } catch (const Error& error) {
    failed(rank_.golden.name(rank_.golden.items[golden_item]), error.what());
    return {};  // what cannot be read explains nothing
  }
}

}  // namespace msprobe::diagnosis
