// SPDX-License-Identifier: Apache-2.0
// DeepSpeed's folders. With ZeRO stages 1 and 2, one file has the model. With stage 3, each rank has a
// stretch of each parameter's elements in the optimizer's single-precision copy, and the stretches are
// joined.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "checkpoint/file_series.hpp"
#include "checkpoint/loaders.hpp"
#include "formats/limits.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/folder.hpp"
#include "support/text.hpp"

namespace msprobe::checkpoint {
namespace {

using formats::Pickle;
using formats::PickleKind;
using formats::PickleRef;
using formats::TorchTensors;
using Tensors = std::shared_ptr<const TorchTensors>;

constexpr std::string_view kModelStates = "model_states.pt";
constexpr std::string_view kOptimizerStates = "optim_states.pt";
constexpr std::string_view kFlatGroups = "optimizer_state_dict.fp32_flat_groups";
constexpr std::string_view kModule = "module.";
constexpr const char* kLatest = "latest";

/// A stretch of a tensor, read as one row.
TensorSource stretch_of(std::shared_ptr<const TensorSource> whole, std::int64_t begin, std::int64_t length) {
  return [whole = std::move(whole), begin, length] {
    formats::StoredTensor tensor = (*whole)();
    if (!tensor.is_contiguous() || begin > tensor.numel() - length)
      throw FormatError(display(tensor.storage->name()), "its elements are not contiguous");
    tensor.offset += begin;
    tensor.shape = {length};
    tensor.strides = {1};
    return tensor;
  };
}

/// Adds some elements of a parameter, in row-major order from `begin` on, as boxes: the end of a row, whole
/// rows, the beginning of a row. `from`: where the elements begin in the source.
void add_stretch(Parameter& parameter, const std::shared_ptr<const TensorSource>& source, std::int64_t from,
                 std::int64_t begin, std::int64_t length) {
  const Shape strides = formats::row_major_strides(parameter.shape);
  const std::size_t rank = parameter.shape.size();
  while (length > 0) {
    std::size_t axis = 0;
    while (axis < rank && (begin % strides[axis] != 0 || strides[axis] > length)) ++axis;
    Shape offset(rank);
    Shape size = parameter.shape;
    std::int64_t rest = begin;
    for (std::size_t i = 0; i < rank; ++i) {
      offset[i] = rest / strides[i];
      rest %= strides[i];
      if (i < axis) size[i] = 1;
    }
    std::int64_t numel = 1;
    if (axis < rank) {
      size[axis] = std::min(parameter.shape[axis] - offset[axis], length / strides[axis]);
      numel = size[axis] * strides[axis];
    }
    Parameter box = whole(parameter.name, parameter.dtype, size, stretch_of(source, from, numel));
    box.blocks[0].offset = std::move(offset);
    parameter.blocks.push_back(std::move(box.blocks[0]));
    from += numel;
    begin += numel;
    length -= numel;
  }
}

struct Declared {
  std::string name;
  Shape shape;
};

class ZeroThree {
 public:
  /// `bytes`: the size of all files together.
  ZeroThree(std::string folder, std::vector<Tensors> models, std::vector<Tensors> optimizers,
            std::uint64_t bytes)
      : folder_(std::move(folder)),
        models_(std::move(models)),
        optimizers_(std::move(optimizers)),
        allowance_(bytes) {}

  std::vector<CheckpointEntry> run() {
    const Pickle& pickle = models_[0]->pickle();
    add_buffers();
    for (const Tensors& rank : optimizers_) flat_.push_back(flat_of(*rank, rank));
    std::int64_t done = 0;  // of each rank's elements
    const std::vector<Declared> parameters = shapes("param_shapes");
    for (const Declared& declared : parameters) {
      const std::int64_t numel = checked_numel(declared.shape, declared.name);
      const std::int64_t step = share(numel);
      CheckpointEntry& entry = start(declared);
      for (std::size_t rank = 0; rank < flat_.size(); ++rank) add_share(entry, rank, done, step, numel);
      if (__builtin_add_overflow(done, step, &done)) fail("more elements than any memory holds");
    }
    add_frozen();
    const auto shared = pickle.find(pickle.root(), "shared_params");
    if (shared && pickle.kind(*shared) == PickleKind::dict) add_shared(*shared);
    return std::move(entries_);
  }

 private:
  struct FlatPiece {
    std::shared_ptr<const TensorSource> source;
    std::int64_t begin = 0;  // among the rank's elements
    std::int64_t length = 0;
  };
  using Flat = std::vector<FlatPiece>;

  [[noreturn]] void fail(const std::string& reason) const { throw FormatError(display(folder_), reason); }

  std::int64_t share(std::int64_t numel) const {
    const auto ranks = static_cast<std::int64_t>(optimizers_.size());
    return numel / ranks + (numel % ranks == 0 ? 0 : 1);
  }

  CheckpointEntry& start(const Declared& declared) {
    CheckpointEntry& entry = entries_.emplace_back();
    entry.parameter.name = declared.name;
    entry.parameter.shape = declared.shape;
    entry.parameter.dtype = tensor::DType::float32;
    index_.emplace(declared.name, entries_.size() - 1);
    return entry;
  }

  /// The flat groups of one rank, end to end.
  Flat flat_of(const TorchTensors& tensors, const Tensors& owner) const {
    Flat flat;
    std::int64_t end = 0;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const std::string& name = tensors.name(i);
      if (!name.starts_with(kFlatGroups)) continue;
      const CheckpointEntry group = entry_of(owner, i, name);
      if (!group.problem.empty()) throw FormatError(group.problem);
      if (group.parameter.dtype != tensor::DType::float32)
        fail(display(name) + " is not in single precision");
      const std::int64_t length = group.parameter.numel();
      flat.push_back({group.parameter.blocks[0].source, end, length});
      end += length;
    }
    if (flat.empty()) fail("it has no flat groups of ZeRO stage 3");
    return flat;
  }

  // A few bytes can name a parameter of many axes, and every rank has a share of each parameter.
  void charge(std::size_t name, std::size_t axes) { check(allowance_.take_tensor(name, axes)); }
  void charge_boxes(std::size_t axes, std::size_t boxes) {
    constexpr std::uint64_t kBox = 600;
    check(allowance_.take(boxes * (kBox + 40 * axes)));
  }
  void check(bool enough) const {
    if (!enough) fail("refused: it names more parameters than files of that size can hold");
  }

  /// Adds one rank's share of a parameter: `step` elements, the last of which may be padding.
  void add_share(CheckpointEntry& entry, std::size_t rank, std::int64_t done, std::int64_t step,
                 std::int64_t numel) {
    const std::int64_t first = std::min(numel, static_cast<std::int64_t>(rank) * step);
    std::int64_t left = std::min(step, numel - first);
    std::int64_t at = done;
    std::int64_t begin = first;
    const Flat& flat = flat_[rank];
    const std::size_t before = entry.parameter.blocks.size();
    auto piece =
        std::upper_bound(flat.begin(), flat.end(), at,
                         [](std::int64_t value, const FlatPiece& each) { return value < each.begin; });
    if (piece != flat.begin()) --piece;
    for (; left > 0 && piece != flat.end(); ++piece) {
      const std::int64_t length = std::min(left, piece->begin + piece->length - at);
      if (length <= 0) continue;
      add_stretch(entry.parameter, piece->source, at - piece->begin, begin, length);
      at += length;
      begin += length;
      left -= length;
    }
    charge_boxes(entry.parameter.shape.size(), entry.parameter.blocks.size() - before);
    if (left > 0) entry.problem = fmt::format("rank {} has too few elements for it", rank);
  }

  void add_buffers() {
    const Pickle& pickle = models_[0]->pickle();
    std::set<std::string, std::less<>> buffers;
    if (const auto names = pickle.find(pickle.root(), "buffer_names");
        names && pickle.kind(*names) == PickleKind::list) {
      for (const PickleRef name : pickle.items(*names))
        buffers.insert(std::string(kModule) + std::string(pickle.text(name)));
    }
    for (std::size_t i = 0; i < models_[0]->size(); ++i) {
      const std::string& name = models_[0]->name(i);
      if (buffers.find(name) == buffers.end()) continue;
      entries_.push_back(entry_of(models_[0], i, name.substr(kModule.size())));
    }
  }

  /// Reads a dict of names and sizes, or a list of such dicts.
  std::vector<Declared> shapes(std::string_view member) {
    const Pickle& pickle = models_[0]->pickle();
    std::vector<Declared> all;
    const auto found = pickle.find(pickle.root(), member);
    if (!found) return all;
    const auto add = [&](PickleRef dict) {
      const auto pairs = pickle.pairs(dict);
      for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
        Declared& declared = all.emplace_back();
        declared.name = pickle.text(pairs[i]);
        const auto sizes = pickle.items(pairs[i + 1]);
        if (sizes.size() > formats::kMaxRank) fail("a tensor with too many dimensions");
        charge(declared.name.size(), sizes.size());
        for (const PickleRef size : sizes) declared.shape.push_back(pickle.integer(size));
      }
    };
    if (pickle.kind(*found) == PickleKind::dict) {
      add(*found);
    } else if (pickle.kind(*found) == PickleKind::list) {
      for (const PickleRef group : pickle.items(*found)) add(group);
    }
    return all;
  }

  /// Each rank has its share of the frozen parameters in the file of its model.
  void add_frozen() {
    const std::vector<Declared> frozen = shapes("frozen_param_shapes");
    if (frozen.empty()) return;
    std::vector<std::unordered_map<std::string_view, std::size_t>> names(models_.size());
    for (std::size_t rank = 0; rank < models_.size(); ++rank) {
      for (std::size_t i = 0; i < models_[rank]->size(); ++i) names[rank].emplace(models_[rank]->name(i), i);
    }
    for (const Declared& declared : frozen) {
      const std::int64_t numel = checked_numel(declared.shape, declared.name);
      CheckpointEntry& entry = start(declared);
      std::int64_t done = 0;
      for (std::size_t rank = 0; rank < models_.size() && entry.problem.empty() && done < numel; ++rank) {
        const auto found = names[rank].find("frozen_param_fragments." + declared.name);
        if (found == names[rank].end()) continue;
        const CheckpointEntry part = entry_of(models_[rank], found->second, declared.name);
        entry.problem = part.problem;
        if (!part.problem.empty()) break;
        if (rank == 0) entry.parameter.dtype = part.parameter.dtype;
        const std::int64_t length = std::min(numel - done, part.parameter.numel());
        add_stretch(entry.parameter, part.parameter.blocks[0].source, 0, done, length);
        done += length;
      }
      charge_boxes(declared.shape.size(), entry.parameter.blocks.size());
      if (entry.problem.empty() && done < numel) entry.problem = "the ranks have too few elements for it";
    }
  }

  void add_shared(PickleRef shared) {
    const Pickle& pickle = models_[0]->pickle();
    const auto pairs = pickle.pairs(shared);
    std::size_t groups = 0;
    for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
      const auto found = index_.find(std::string(pickle.text(pairs[i + 1])));
      if (found == index_.end()) continue;
      CheckpointEntry& kept = entries_[found->second];
      charge(pickle.text(pairs[i]).size(), kept.parameter.shape.size());
      charge_boxes(kept.parameter.shape.size(), kept.parameter.blocks.size());
      if (kept.tied == 0) kept.tied = ++groups;
      CheckpointEntry twin = kept;
      twin.parameter.name = pickle.text(pairs[i]);
      entries_.push_back(std::move(twin));
    }
  }

  std::string folder_;
  std::vector<Tensors> models_;      // by rank
  std::vector<Tensors> optimizers_;  // by rank
  std::vector<Flat> flat_;           // by rank
  std::vector<CheckpointEntry> entries_;
  std::unordered_map<std::string, std::size_t> index_;
  formats::MemoryAllowance allowance_;
};

bool has_model_states(const std::string& folder) {
  const std::vector<std::string> names = names_in(folder, WhichNames::regular_files);
  return std::ranges::any_of(names, [](const std::string& name) { return name.ends_with(kModelStates); });
}

/// The files with this ending in the order of their ranks. Throws an error if one is missing.
std::vector<std::string> rank_files(const std::string& folder, const std::vector<std::string>& names,
                                    std::string_view ending) {
  std::map<std::int64_t, std::string> by_rank;
  for (const std::string& name : names) {
    constexpr std::string_view kRank = "zero_pp_rank_";
    const std::size_t at = name.find(kRank);
    if (at == std::string::npos || !name.ends_with(ending)) continue;
    const auto place = series_place(name.substr(at, name.find("_mp_rank_") - at));
    if (place) by_rank.emplace(place->number, in_folder(folder, name));
  }
  std::vector<std::string> files;
  for (auto& [rank, path] : by_rank) {
    if (rank != static_cast<std::int64_t>(files.size())) {
      throw FormatError(display(folder), fmt::format("incomplete: found {}, but rank {} is missing",
                                                     display(path), files.size()));
    }
    files.push_back(std::move(path));
  }
  return files;
}

Checkpoint load_stage_three(const std::string& folder, const std::vector<std::string>& models,
                            const std::vector<std::string>& optimizers) {
  if (models.size() != optimizers.size()) {
    throw FormatError(
        display(folder),
        fmt::format("ZeRO stage 3 keeps its parameters in files *{}, but there are {} of them for {} ranks",
                    kOptimizerStates, optimizers.size(), models.size()));
  }
  Checkpoint checkpoint;
  checkpoint.format =
      fmt::format("DeepSpeed ZeRO stage 3, {} rank{}", models.size(), models.size() == 1 ? "" : "s");
  const std::vector<Tensors> model_files = open_all(models, checkpoint.warnings);
  const std::vector<Tensors> optimizer_files = open_all(optimizers, checkpoint.warnings);
  std::uint64_t bytes = 0;
  for (const auto* paths : {&models, &optimizers}) {
    for (const std::string& path : *paths) bytes += open_file(path)->size();
  }
  const Pickle& pickle = model_files[0]->pickle();
  if (pickle.kind(pickle.root()) != PickleKind::dict || !pickle.find(pickle.root(), "param_shapes"))
    throw FormatError(display(models[0]), "it does not list its parameters (param_shapes)");
  const auto ranks = pickle.find(pickle.root(), "dp_world_size");
  if (ranks && pickle.kind(*ranks) == PickleKind::integer &&
      pickle.integer(*ranks) != static_cast<std::int64_t>(models.size())) {
    throw FormatError(display(folder),
                      fmt::format("incomplete: written by {} ranks, but there are files of {}",
                                  pickle.integer(*ranks), models.size()));
  }
  checkpoint.entries = ZeroThree(folder, model_files, optimizer_files, bytes).run();
  return checkpoint;
}

constexpr const char* kZero = "zero";
constexpr const char* kWeights = "fp32.pt";

/// DeepSpeed's universal form (ds_to_universal.py): a folder for each parameter below `zero`, with the
/// single-precision copy that DeepSpeed loads (`fp32.pt`) and the state of the optimizer. The file of the
/// model beside it has the buffers, and names that share a tensor.
class Universal {
 public:
  Universal(std::string folder, std::string model_file)
      : folder_(std::move(folder)), model_file_(std::move(model_file)) {}

  Checkpoint run(const CheckpointLoadOptions& options) {
    checkpoint_.format = "DeepSpeed universal";
    const std::string zero = in_folder(folder_, kZero);
    for (const std::string& name : names_in(zero, WhichNames::folders))
      add(in_folder(zero, name), name, options);
    add_model();
    return std::move(checkpoint_);
  }

 private:
  void add(const std::string& folder, const std::string& name, const CheckpointLoadOptions& options) {
    index_.emplace(name, checkpoint_.entries.size());
    checkpoint_.entries.push_back(tensor_of(in_folder(folder, kWeights), name));
    if (!options.optimizer) return;
    for (const std::string& file : names_in(folder, WhichNames::regular_files)) {
      if (file == kWeights || !file.ends_with(".pt")) continue;
      const std::string state = file.substr(0, file.size() - 3);
      checkpoint_.entries.push_back(
          tensor_of(in_folder(folder, file), fmt::format("optimizer.state.{}.{}", name, state)));
    }
  }

  /// Such a file has one tensor, by itself or as `param` of a dict.
  CheckpointEntry tensor_of(const std::string& path, const std::string& name) {
    try {
      const auto tensors = std::make_shared<const TorchTensors>(open_file(path));
      note_dangers(checkpoint_.warnings, path, tensors->pickle());
      for (std::size_t i = 0; i < tensors->size(); ++i) {
        if (tensors->name(i).empty() || tensors->name(i) == "param") return entry_of(tensors, i, name);
      }
      throw FormatError(display(path), "it has no 'param'");
    } catch (const Error& error) {
      CheckpointEntry entry;
      entry.parameter.name = name;
      entry.problem = error.what();
      return entry;
    }
  }

  void add_model() {
    const Tensors model = std::make_shared<const TorchTensors>(open_file(model_file_));
    note_dangers(checkpoint_.warnings, model_file_, model->pickle());
    const auto sources = shared_names(model->pickle());
    std::size_t groups = 0;
    for (std::size_t i = 0; i < model->size(); ++i) {
      if (!model->name(i).starts_with(kModule)) continue;
      std::string name = model->name(i).substr(kModule.size());
      if (const auto known = index_.find(name); known != index_.end()) {
        add_copy(checkpoint_.entries[known->second], entry_of(model, i, name));
        continue;
      }
      const auto source = sources.find(name);
      const auto kept = source == sources.end() ? index_.end() : index_.find(source->second);
      if (kept == index_.end()) {
        checkpoint_.entries.push_back(entry_of(model, i, std::move(name)));
        continue;
      }
      CheckpointEntry& original = checkpoint_.entries[kept->second];
      if (original.tied == 0) original.tied = ++groups;
      CheckpointEntry twin = original;
      twin.parameter.name = std::move(name);
      checkpoint_.entries.push_back(std::move(twin));
    }
  }

  /// The model's file has a copy of the parameter. It must be equal, unless a narrower type rounds it.
  void add_copy(CheckpointEntry& entry, CheckpointEntry copy) const {
    const Parameter& parameter = copy.parameter;
    const bool alike = copy.problem.empty() && parameter.dtype == entry.parameter.dtype &&
                       parameter.shape == entry.parameter.shape;
    if (alike)
      entry.replicas.push_back(
          {std::move(copy.parameter), std::filesystem::path(model_file_).filename().string(), {}});
  }

  /// Maps a name to the other name that it shares its tensor with.
  static std::unordered_map<std::string, std::string> shared_names(const Pickle& pickle) {
    std::unordered_map<std::string, std::string> sources;
    if (pickle.kind(pickle.root()) != PickleKind::dict) return sources;
    const auto shared = pickle.find(pickle.root(), "shared_params");
    if (!shared || pickle.kind(*shared) != PickleKind::dict) return sources;
    const auto pairs = pickle.pairs(*shared);
    for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
      if (pickle.kind(pairs[i]) == PickleKind::text && pickle.kind(pairs[i + 1]) == PickleKind::text)
        sources.emplace(pickle.text(pairs[i]), pickle.text(pairs[i + 1]));
    }
    return sources;
  }

  std::string folder_;
  std::string model_file_;
  Checkpoint checkpoint_;
  std::unordered_map<std::string, std::size_t> index_;  // of the parameters below `zero`
};

bool is_deepspeed_universal(const std::string& folder) {
  return !folder_below(in_folder(folder, kZero), [](const std::string& file) {
            return file == kWeights;
          }).empty();
}

}  // namespace

std::optional<std::string> deepspeed_folder(const std::string& folder) {
  try {
    if (has_model_states(folder)) return folder;
    const std::string name = read_line(in_folder(folder, kLatest));
    if (name.empty() || name.find('/') != std::string::npos || name == "..") return {};
    const std::string inner = in_folder(folder, name);
    return has_model_states(inner) ? std::optional(inner) : std::nullopt;
  } catch (const Error&) {
    return {};  // no such folder
  }
}

Checkpoint load_deepspeed(const std::string& folder, const CheckpointLoadOptions& options) {
  const std::vector<std::string> names = names_in(folder, WhichNames::regular_files);
  if (is_deepspeed_universal(folder)) {
    const auto model =
        std::ranges::find_if(names, [](const std::string& name) { return name.ends_with(kModelStates); });
    return Universal(folder, in_folder(folder, *model)).run(options);
  }
  std::vector<std::string> whole;
  for (const std::string& name : names) {
    if (!name.ends_with(kModelStates)) continue;
    if (name.find("mp_rank_00") == std::string::npos) {
      throw FormatError(
          display(folder),
          fmt::format("{}: a DeepSpeed model split by layers or over tensor-parallel ranks is not supported; "
                      "merge it with zero_to_fp32.py or ds_to_universal.py of DeepSpeed",
                      display(name)));
    }
    if (name.starts_with("mp_rank_")) whole.push_back(in_folder(folder, name));
  }
  const std::vector<std::string> models = rank_files(folder, names, kModelStates);
  if (!models.empty() && whole.empty())
    return load_stage_three(folder, models, rank_files(folder, names, kOptimizerStates));
  Checkpoint checkpoint;
  checkpoint.format = "DeepSpeed";
  const std::vector<Tensors> files = open_all({whole.at(0)}, checkpoint.warnings);
  TiedNames tied(checkpoint.entries);
  for (std::size_t i = 0; i < files[0]->size(); ++i) {
    const std::string& name = files[0]->name(i);
    if (!name.starts_with(kModule) && !options.optimizer) continue;
    const std::size_t head = name.starts_with(kModule) ? kModule.size() : 0;
    checkpoint.entries.push_back(entry_of(files[0], i, name.substr(head)));
    tied.note_last(files[0]->place(i));
  }
  return checkpoint;
}

}  // namespace msprobe::checkpoint
