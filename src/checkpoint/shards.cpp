// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/shards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "checkpoint/loaders.hpp"
#include "checkpoint/names.hpp"
#include "formats/limits.hpp"
#include "formats/torch_tensors.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::checkpoint {
namespace {

/// The shape that all parts cover together.
Shape reach_of(const std::vector<Shard>& shards) {
  Shape reach = shards[0].part.shape;
  for (const Shard& shard : shards) {
    for (std::size_t i = 0; i < reach.size(); ++i) {
      std::int64_t end = 0;
      if (__builtin_add_overflow(shard.offset[i], shard.part.shape[i], &end))
        throw FormatError(display(shard.where), "one of its parts lies outside it");
      reach[i] = std::max(reach[i], end);
    }
  }
  return reach;
}

/// Says why the parts do not make a whole; empty if they may.
std::string misfit(const std::vector<Shard>& shards) {
  const Shard& first = shards[0];
  for (const Shard& shard : shards) {
    if (!shard.problem.empty()) return shard.problem;
    if (shard.part.shape.size() != shard.offset.size() || shard.part.shape.size() != first.part.shape.size())
      return fmt::format("{}: its part has a different number of dimensions", display(shard.where));
    if (shard.part.dtype != first.part.dtype) {
      return fmt::format("its parts have the types {} and {}", tensor::info(first.part.dtype).name,
                         tensor::info(shard.part.dtype).name);
    }
    if (shard.whole != first.whole)
      return fmt::format("{} and {} give different shapes", display(first.where), display(shard.where));
  }
  return {};
}

CheckpointEntry joined(const std::string& name, std::vector<Shard> shards) {
  CheckpointEntry entry;
  entry.parameter.name = name;
  entry.problem = misfit(shards);
  if (!entry.problem.empty()) return entry;
  entry.parameter.dtype = shards[0].part.dtype;
  entry.parameter.shape = shards[0].whole ? *shards[0].whole : reach_of(shards);
  const std::int64_t total = checked_numel(entry.parameter.shape, name);
  std::map<std::pair<Shape, Shape>, std::size_t> places;
  std::int64_t covered = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    Shard& shard = shards[i];
    const std::int64_t numel = shard.part.numel();
    if (numel == 0 && total != 0) continue;
    const auto [at, is_new] = places.try_emplace({shard.offset, shard.part.shape}, i);
    if (!is_new) {
      entry.replicas.push_back({shard.part, shard.where, shards[at->second].part});
      continue;
    }
    if (__builtin_add_overflow(covered, numel, &covered)) covered = total + 1;
    for (ParameterBlock block : shard.part.blocks) {
      for (std::size_t axis = 0; axis < block.offset.size(); ++axis) block.offset[axis] += shard.offset[axis];
      entry.parameter.blocks.push_back(std::move(block));
    }
  }
  if (covered < total) {
    entry.problem = fmt::format("none of the files has {} of its {} elements", total - covered, total);
  }
  return entry;
}

Shard shard_of(const std::shared_ptr<const formats::TorchTensors>& tensors, std::size_t index,
               const std::string& where) {
  Shard shard;
  shard.where = where;
  CheckpointEntry entry = entry_of(tensors, index, tensors->name(index));
  shard.problem = entry.problem;
  if (!shard.problem.empty()) return shard;
  shard.part = std::move(entry.parameter);
  shard.whole = shard.part.shape;
  shard.offset.assign(shard.part.shape.size(), 0);
  if (const formats::TorchShard* place = tensors->shard(index)) {
    if (place->size != shard.part.shape) {
      shard.problem = fmt::format("{}: its part is {}, but by its mesh it should be {}", display(where),
                                  shape_text(shard.part.shape), shape_text(place->size));
    }
    shard.whole = place->whole;
    shard.offset = place->offset;
  }
  return shard;
}

constexpr std::string_view kNote = "DCP_SHARDING_INFO";

/// {"name": {"saved_offsets": [0, 3]}, …}; three levels and no more, so nothing here recurses.
class InfoHandler {
 public:
  explicit InfoHandler(SavedOffsets& offsets) : offsets_(offsets) {}

  bool null() { return false; }
  bool boolean(bool) { return false; }
  bool number_float(double, const std::string&) { return false; }
  bool binary(nlohmann::json::binary_t&) { return false; }
  bool string(std::string&) { return false; }
  bool number_integer(std::int64_t) { return false; }
  bool number_unsigned(std::uint64_t value) {
    if (depth_ != 3 || value > INT64_MAX || offset_.size() == formats::kMaxRank) return false;
    offset_.push_back(static_cast<std::int64_t>(value));
    return true;
  }
  bool start_object(std::size_t) { return ++depth_ < 3; }
  bool key(std::string& name) {
    if (depth_ == 1)
      name_ = std::move(name);
    else if (name != "saved_offsets")
      return false;
    return true;
  }
  bool end_object() {
    --depth_;
    return true;
  }
  bool start_array(std::size_t) {
    offset_.clear();
    return ++depth_ == 3;
  }
  bool end_array() {
    --depth_;
    offsets_[std::move(name_)] = std::move(offset_);
    offset_.clear();
    name_.clear();
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) { return false; }

 private:
  SavedOffsets& offsets_;
  int depth_ = 0;
  std::string name_;
  Shape offset_;
};

}  // namespace

void ShardJoiner::add(const std::string& name, Shard shard) {
  const auto [at, is_new] = index_.try_emplace(name, shards_.size());
  if (is_new) shards_.emplace_back(name, std::vector<Shard>());
  shards_[at->second].second.push_back(std::move(shard));
}

std::vector<CheckpointEntry> ShardJoiner::finish() {
  std::vector<CheckpointEntry> entries;
  for (auto& [name, shards] : shards_) {
    try {
      entries.push_back(joined(name, std::move(shards)));
    } catch (const FormatError& error) {
      CheckpointEntry& broken = entries.emplace_back();
      broken.parameter.name = name;
      broken.problem = error.what();
    }
  }
  return entries;
}

bool has_shards(const formats::TorchTensors& tensors) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors.shard(i) != nullptr) return true;
  }
  return false;
}

Checkpoint load_rank_shards(const std::vector<std::string>& files, const CheckpointLoadOptions& options) {
  Checkpoint checkpoint;
  const auto ranks = open_all(files, checkpoint.warnings);
  checkpoint.format = files.size() == 1 ? "PyTorch, parts of one rank"
                                        : fmt::format("PyTorch, parts of {} ranks", files.size());
  ShardJoiner joiner;
  for (std::size_t rank = 0; rank < files.size(); ++rank) {
    const auto& tensors = ranks[rank];
    for (std::size_t i = 0; i < tensors->size(); ++i) {
      if (!options.optimizer && is_training_state(tensors->name(i))) continue;
      joiner.add(tensors->name(i), shard_of(tensors, i, files[rank]));
    }
  }
  checkpoint.entries = joiner.finish();
  return checkpoint;
}

std::optional<SavedOffsets> saved_offsets(const formats::SafetensorsFile& file, const std::string& path) {
  const auto& metadata = file.metadata();
  const auto note = std::ranges::find_if(metadata, [](const auto& m) { return m.first == kNote; });
  if (note == metadata.end()) return {};
  SavedOffsets offsets;
  InfoHandler handler(offsets);
  if (!nlohmann::json::sax_parse(note->second, &handler)) {
    throw FormatError(display(path), "its DCP_SHARDING_INFO is not what PyTorch writes");
  }
  return offsets;
}

}  // namespace msprobe::checkpoint
