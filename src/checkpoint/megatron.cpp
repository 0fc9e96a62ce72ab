// SPDX-License-Identifier: Apache-2.0
// Finds the rank files of Megatron-LM and MindSpeed, and the layers and experts that each of them holds.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "checkpoint/loaders.hpp"
#include "checkpoint/megatron_merge.hpp"
#include "checkpoint/names.hpp"
#include "support/ascii.hpp"
#include "support/error.hpp"
#include "support/folder.hpp"
#include "support/parallel.hpp"
#include "support/text.hpp"

namespace msprobe::checkpoint {
namespace {

using formats::TorchTensors;

constexpr std::string_view kRankPrefix = "mp_rank_";
constexpr std::int64_t kMostRanks = 1 << 16;
constexpr std::int64_t kMostLayers = 1 << 20;

/// The numbers of `mp_rank_01_002`.
std::optional<std::vector<std::int64_t>> rank_numbers(std::string_view name) {
  name.remove_prefix(kRankPrefix.size());
  std::vector<std::int64_t> numbers;
  for (const std::string_view part : split(name, "_")) {
    const auto number = whole_number<std::uint64_t>(part);
    if (!number || *number >= kMostRanks) return {};
    numbers.push_back(static_cast<std::int64_t>(*number));
  }
  return numbers;
}

struct Grid {
  std::int64_t tensor = 1;
  std::int64_t pipeline = 1;
  std::int64_t expert = 1;
  std::int64_t size() const { return tensor * pipeline * expert; }
  std::string text() const {
    std::string out = fmt::format("{} tensor x {} pipeline", tensor, pipeline);
    if (expert > 1) out += fmt::format(" x {} expert", expert);
    return out + (tensor == 1 && pipeline == 1 && expert == 1 ? " rank" : " ranks");
  }
};

/// A part of the model on one rank: a pipeline stage, or a piece of one in an interleaved pipeline.
using Chunk = std::map<std::string, CheckpointEntry>;  // by today's name

struct MegatronRank {
  std::shared_ptr<const TorchTensors> tensors;  // nullptr: missing, with --allow-partial
  std::string folder;
  std::vector<Chunk> chunks;
  std::vector<CheckpointEntry> training_state;
};

struct Coordinates {
  std::int64_t tensor = 0;
  std::int64_t pipeline = 0;
  std::int64_t expert = 0;
};

std::string rank_file(const std::string& folder) {
  for (const char* name : {"model_optim_rng.pt", "model_rng.pt"}) {
    std::string path = in_folder(folder, name);
    if (path_exists(path)) return path;
  }
  return in_folder(folder, "model_optim_rng.pt");
}

/// "model" -> 0, "model3" -> 3, by the first component of a name.
std::optional<std::size_t> chunk_index(std::string_view head) {
  if (head == "model") return 0;
  if (!head.starts_with("model")) return {};
  head.remove_prefix(5);
  const auto index = whole_number<std::size_t>(head);
  constexpr std::size_t kMostChunks = 4096;
  return index && *index < kMostChunks ? index : std::nullopt;
}

/// Tensors in a list are no parameters: the state of a module has names only.
bool is_list_item(std::string_view name) {
  return is_digits(split(name, ".").back());
}

void fill_rank(MegatronRank& rank, const CheckpointLoadOptions& options) {
  const std::shared_ptr<const TorchTensors>& tensors = rank.tensors;
  std::vector<std::vector<std::size_t>> by_chunk;
  for (std::size_t i = 0; i < tensors->size(); ++i) {
    const std::string& name = tensors->name(i);
    const std::string_view head = std::string_view(name).substr(0, name.find('.'));
    if (const auto chunk = chunk_index(head)) {
      if (by_chunk.size() <= *chunk) by_chunk.resize(*chunk + 1);
      by_chunk[*chunk].push_back(i);
    } else if (options.optimizer && is_training_state(name)) {
      rank.training_state.push_back(entry_of(tensors, i, rank.folder + "." + name));
    }
  }
  for (const std::vector<std::size_t>& indices : by_chunk) {
    Chunk& chunk = rank.chunks.emplace_back();
    const auto inner = [&](std::size_t index) {
      const std::string_view name = tensors->name(index);
      return name.substr(std::min(name.find('.') + 1, name.size()));
    };
    const bool has_decoder = std::ranges::any_of(indices, [&](std::size_t index) {
      const auto parts = split(inner(index), ".");
      return std::find(parts.begin(), parts.end(), "decoder") != parts.end();
    });
    for (const std::size_t index : indices) {
      const std::string name = megatron_name(inner(index), has_decoder);
      if (is_extra_state(name) || is_list_item(name)) continue;
      CheckpointEntry entry = entry_of(tensors, index, name);
      if (!chunk.emplace(name, std::move(entry)).second) {
        chunk[name].problem = "two of its names mean the same parameter";
      }
    }
  }
}

class MegatronLoader {
 public:
  MegatronLoader(std::string folder, const CheckpointLoadOptions& options)
      : folder_(std::move(folder)), options_(options) {}

  Checkpoint run() {
    list_ranks();
    read_first();
    choose_grid();
    read_all_ranks();
    return assemble();
  }

  /// Loads a rank's file by itself.
  Checkpoint run_single(const std::string& path, std::shared_ptr<const TorchTensors> tensors) {
    first_ = std::move(tensors);
    arguments_ = TrainingArguments(first_->pickle(), first_->pickle().root());
    ranks_.resize(1);
    ranks_[0].tensors = first_;
    ranks_[0].folder = "rank";
    fill_rank(ranks_[0], options_);
    note_dangers(warnings_, path, first_->pickle());
    Checkpoint checkpoint = assemble();
    checkpoint.format = "Megatron, one rank's file";
    return checkpoint;
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const { throw FormatError(display(folder_), reason); }

  void list_ranks() {
    for (const std::string& name : names_in(folder_, WhichNames::folders)) {
      if (!name.starts_with(kRankPrefix)) continue;
      auto numbers = rank_numbers(name);
      if (!numbers || numbers->size() > 3)
        fail(fmt::format("{} is not the name of a rank folder", display(name)));
      found_[std::move(*numbers)] = name;
    }
    if (found_.empty()) fail("it has no rank folders of a checkpoint (mp_rank_…)");
    const std::size_t fields = found_.begin()->first.size();
    for (const auto& [numbers, name] : found_) {
      if (numbers.size() != fields) {
        fail(fmt::format("{} and {} do not belong to the same layout", display(found_.begin()->second),
                         display(name)));
      }
    }
  }

  std::shared_ptr<const TorchTensors> read(const std::string& rank_folder) const {
    return std::make_shared<const TorchTensors>(open_file(rank_file(in_folder(folder_, rank_folder))));
  }

  void read_first() {
    first_ = read(found_.begin()->second);
    arguments_ = TrainingArguments(first_->pickle(), first_->pickle().root());
  }

  void choose_grid() {
    const std::size_t fields = found_.begin()->first.size();
    std::vector<std::int64_t> sizes(fields, 1);
    for (const auto& [numbers, name] : found_) {
      for (std::size_t i = 0; i < fields; ++i) sizes[i] = std::max(sizes[i], numbers[i] + 1);
    }
    const auto declared_tensor = arguments_.integer("tensor_model_parallel_size");
    if (declared_tensor) {
      Grid declared;
      declared.tensor = *declared_tensor;
      declared.pipeline = arguments_.integer("pipeline_model_parallel_size").value_or(1);
      declared.expert = arguments_.integer("expert_model_parallel_size").value_or(1);
      const std::size_t declared_fields =
          std::size_t{1} + (declared.pipeline > 1 ? 1U : 0U) + (declared.expert > 1 ? 1U : 0U);
      bool fits = declared_fields == fields && declared.tensor >= sizes[0];
      if (fields == 2) fits = fits && std::max(declared.pipeline, declared.expert) >= sizes[1];
      if (fields == 3) fits = fits && declared.pipeline >= sizes[1] && declared.expert >= sizes[2];
      if (fits) {
        grid_ = declared;
        return;
      }
      warnings_.push_back(
          fmt::format("{}: its arguments say {}, but its folders do not; the folders are used",
                      display(folder_), declared.text()));
    } else {
      warnings_.push_back(fmt::format("{}: it has no arguments; the layout is taken from the folder names",
                                      display(folder_)));
    }
    grid_.tensor = sizes[0];
    if (fields == 3) {
      grid_.pipeline = sizes[1];
      grid_.expert = sizes[2];
    } else if (fields == 2) {
      (second_is_expert() ? grid_.expert : grid_.pipeline) = sizes[1];
    }
  }

  /// True if the second number of a folder is an expert rank: every expert rank has the embedding, but only
  /// the first of the pipeline's stages has it.
  bool second_is_expert() const {
    for (const auto& [numbers, name] : found_) {
      if (numbers[1] != 1) continue;
      const auto tensors = read(name);
      for (std::size_t i = 0; i < tensors->size(); ++i) {
        if (tensors->name(i).find("word_embeddings.weight") != std::string::npos) return true;
      }
      return false;
    }
    return false;
  }

  Coordinates coordinates(std::size_t index) const {
    const auto at = static_cast<std::int64_t>(index);
    return {at % grid_.tensor, at / grid_.tensor % grid_.pipeline, at / (grid_.tensor * grid_.pipeline)};
  }
  const MegatronRank& rank(const Coordinates& at) const {
    return ranks_[static_cast<std::size_t>((at.expert * grid_.pipeline + at.pipeline) * grid_.tensor +
                                           at.tensor)];
  }

  void read_all_ranks() {
    const auto positive = [](std::int64_t n) { return n >= 1 && n <= kMostRanks; };
    if (!positive(grid_.tensor) || !positive(grid_.pipeline) || !positive(grid_.expert) ||
        grid_.tensor * grid_.pipeline > kMostRanks || grid_.size() > kMostRanks) {
      fail(fmt::format("refused: {}", grid_.text()));
    }
    ranks_.resize(static_cast<std::size_t>(grid_.size()));
    std::vector<std::string> problems(ranks_.size());
    const std::size_t fields = found_.begin()->first.size();
    parallel_for(ranks_.size(), [&](std::size_t i) {
      const Coordinates at = coordinates(i);
      std::vector<std::int64_t> numbers = {at.tensor};
      if (fields == 3 || (fields == 2 && grid_.expert == 1)) numbers.push_back(at.pipeline);
      if (fields == 3 || (fields == 2 && grid_.expert > 1)) numbers.push_back(at.expert);
      MegatronRank& rank = ranks_[i];
      rank.folder = std::string(kRankPrefix) + fmt::format("{:02}", numbers[0]);
      for (std::size_t k = 1; k < fields; ++k) rank.folder += fmt::format("_{:03}", numbers[k]);
      try {
        if (const auto found = found_.find(numbers); found != found_.end()) rank.folder = found->second;
        rank.tensors = i == 0 && rank.folder == found_.begin()->second ? first_ : read(rank.folder);
        fill_rank(rank, options_);
      } catch (const Error& error) {
        problems[i] = error.what();
        rank = MegatronRank{.tensors = nullptr, .folder = rank.folder, .chunks = {}, .training_state = {}};
      }
    });
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      if (!problems[i].empty()) {
        if (!options_.allow_partial) {
          throw FormatError(problems[i] + fmt::format(" (rank {} of {})", i + 1, grid_.text()));
        }
        warnings_.push_back(problems[i]);
      } else {
        note_dangers(warnings_, in_folder(folder_, ranks_[i].folder), ranks_[i].tensors->pickle());
      }
    }
  }

  Checkpoint assemble() {
    check_layout();
    count_layers();
    count_experts();
    const std::size_t chunks = chunk_count();
    for (std::int64_t expert = 0; expert < grid_.expert; ++expert) {
      for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
        for (std::int64_t stage = 0; stage < grid_.pipeline; ++stage) add_stage(expert, chunk, stage);
      }
    }
    for (const auto& [name, groups] : groups_) put(join_expert_groups(name, groups), "");
    drop_tied_copy();
    Checkpoint checkpoint;
    checkpoint.format = "Megatron, " + grid_.text();
    checkpoint.megatron_names = true;
    checkpoint.architecture = arguments_.architecture();
    checkpoint.entries = std::move(entries_);
    for (MegatronRank& rank : ranks_) {
      std::move(rank.training_state.begin(), rank.training_state.end(),
                std::back_inserter(checkpoint.entries));
    }
    checkpoint.warnings = std::move(warnings_);
    return checkpoint;
  }

  std::size_t chunk_count() const {
    std::size_t count = 0;
    for (const MegatronRank& rank : ranks_) count = std::max(count, rank.chunks.size());
    return count;
  }

  void check_layout() {
    for (std::int64_t stage = 0; stage < grid_.pipeline; ++stage) {
      bool any = false;
      for (std::size_t i = 0; i < ranks_.size(); ++i) {
        any = any || (coordinates(i).pipeline == stage && ranks_[i].tensors != nullptr);
      }
      if (!any) fail(fmt::format("no part of pipeline stage {} could be read", stage));
    }
    bool experts = false;
    for (const MegatronRank& rank : ranks_) {
      for (const Chunk& chunk : rank.chunks) {
        experts = experts || std::ranges::any_of(chunk, [](const auto& e) { return is_expert(e.first); });
      }
    }
    const auto expert_tensor = arguments_.integer("expert_tensor_parallel_size");
    if (experts && grid_.tensor > 1 && expert_tensor && *expert_tensor != grid_.tensor) {
      fail(fmt::format(
          "its experts are split over {} tensor-parallel ranks and the rest over {}, which is not supported",
          *expert_tensor, grid_.tensor));
    }
    const formats::Pickle& pickle = first_->pickle();
    if (pickle.kind(pickle.root()) != formats::PickleKind::dict) return;
    const auto version = pickle.find(pickle.root(), "checkpoint_version");
    if (version && pickle.kind(*version) == formats::PickleKind::real && pickle.real(*version) < 3.0) {
      warnings_.push_back(fmt::format(
          "{}: checkpoint version {} has its attention rows in another order; they are compared as they are",
          display(folder_), pickle.real(*version)));
    }
  }

  /// Counts where the layers of each chunk of each stage begin, from the layers that are really there.
  void count_layers() {
    const std::size_t chunks = chunk_count();
    std::map<std::string, std::int64_t, std::less<>> next;  // by the head of the name
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
      for (std::int64_t stage = 0; stage < grid_.pipeline; ++stage) {
        first_layer_.push_back(next);
        std::map<std::string, std::int64_t, std::less<>> here;
        for (std::size_t i = 0; i < ranks_.size(); ++i) {
          if (coordinates(i).pipeline != stage || ranks_[i].chunks.size() <= chunk) continue;
          for (const auto& [name, entry] : ranks_[i].chunks[chunk]) {
            const auto layer = layer_of(name);
            if (!layer) continue;
            if (*layer >= kMostLayers) fail(fmt::format("refused: {}", display(name)));
            std::int64_t& count = here[name.substr(0, name.find('.'))];
            count = std::max(count, *layer + 1);
          }
        }
        for (const auto& [head, count] : here) next[head] += count;
      }
    }
  }

  void count_experts() {
    std::int64_t next = 0;
    for (std::int64_t expert = 0; expert < grid_.expert; ++expert) {
      first_expert_.push_back(next);
      std::int64_t count = 0;
      for (std::size_t i = 0; i < ranks_.size(); ++i) {
        if (coordinates(i).expert != expert) continue;
        for (const Chunk& chunk : ranks_[i].chunks) {
          for (const auto& [name, entry] : chunk) {
            const auto index = expert_of(name);
            if (!index) continue;
            if (*index >= kMostLayers) fail(fmt::format("refused: {}", display(name)));
            count = std::max(count, *index + 1);
          }
        }
      }
      next += count;
    }
  }

  std::optional<std::int64_t> local_experts() const {
    const auto all = arguments_.integer("num_experts");
    if (!all || *all < 1 || *all % grid_.expert != 0) return {};
    return *all / grid_.expert;
  }

  std::string final_name(const std::string& name, std::int64_t expert, std::size_t chunk,
                         std::int64_t stage) const {
    std::string result = name;
    if (const auto layer = layer_of(name)) {
      const auto& first =
          first_layer_[chunk * static_cast<std::size_t>(grid_.pipeline) + static_cast<std::size_t>(stage)];
      const auto found = first.find(name.substr(0, name.find('.')));
      if (found != first.end()) result = with_layer(name, *layer + found->second);
    }
    if (const auto index = expert_of(name)) {
      result = with_expert(result, *index + first_expert_[static_cast<std::size_t>(expert)]);
    }
    return result;
  }

  void add_stage(std::int64_t expert, std::size_t chunk, std::int64_t stage) {
    const auto chunk_of = [&](std::int64_t tensor) -> const Chunk* {
      const MegatronRank& at = rank({tensor, stage, expert});
      return at.chunks.size() > chunk ? &at.chunks[chunk] : nullptr;
    };
    std::set<std::string> names;
    for (std::int64_t tensor = 0; tensor < grid_.tensor; ++tensor) {
      if (const Chunk* here = chunk_of(tensor)) {
        for (const auto& [name, entry] : *here) names.insert(name);
      }
    }
    MergeContext context;
    context.gated = arguments_.boolean("swiglu");
    context.local_experts = local_experts();
    const auto entry_at = [&](std::int64_t tensor, const std::string& name) -> const CheckpointEntry* {
      const Chunk* here = chunk_of(tensor);
      const auto found = here == nullptr ? Chunk::const_iterator() : here->find(name);
      return here == nullptr || found == here->end() ? nullptr : &found->second;
    };
    context.sibling = [&](const std::string& name) -> const Parameter* {
      for (std::int64_t tensor = 0; tensor < grid_.tensor; ++tensor) {
        if (const CheckpointEntry* entry = entry_at(tensor, name))
          return entry->problem.empty() ? &entry->parameter : nullptr;
      }
      return nullptr;
    };
    for (const std::string& name : names) {
      std::vector<Parameter> slices;
      std::string problem;
      for (std::int64_t tensor = 0; tensor < grid_.tensor; ++tensor) {
        const CheckpointEntry* slice = entry_at(tensor, name);
        if (slice == nullptr) {
          problem = fmt::format("{} has no part of it", rank({tensor, stage, expert}).folder);
        } else if (!slice->problem.empty()) {
          problem = slice->problem;
        } else {
          slices.push_back(slice->parameter);
        }
      }
      CheckpointEntry entry;
      if (problem.empty()) {
        entry = merge_slices(name, slices, context);
      } else {
        entry.problem = problem;
      }
      entry.parameter.name = final_name(name, expert, chunk, stage);
      const MergeKind kind = merge_kind(name);
      if (entry.problem.empty() && (kind == MergeKind::experts_in || kind == MergeKind::experts_out)) {
        groups_[entry.parameter.name].push_back(entry.parameter);
        continue;
      }
      put(std::move(entry), expert > 0 ? fmt::format("expert-parallel rank {}", expert)
                                       : fmt::format("pipeline stage {}", stage));
    }
  }

  /// Adds a parameter, or a copy of one that is there already.
  void put(CheckpointEntry entry, const std::string& where) {
    const auto [at, is_new] = index_.try_emplace(entry.parameter.name, entries_.size());
    if (is_new) {
      entries_.push_back(std::move(entry));
      return;
    }
    CheckpointEntry& there = entries_[at->second];
    if (!there.problem.empty()) return;
    if (!entry.problem.empty()) {
      there.problem = entry.problem;
    } else if (entry.parameter.shape != there.parameter.shape ||
               entry.parameter.dtype != there.parameter.dtype) {
      there.problem =
          fmt::format("its copy on {} is {} {}, not {} {}", where, tensor::info(entry.parameter.dtype).name,
                      shape_text(entry.parameter.shape), tensor::info(there.parameter.dtype).name,
                      shape_text(there.parameter.shape));
    } else {
      there.replicas.push_back({std::move(entry.parameter), where, {}});
    }
  }

  /// The last of several stages keeps a copy of the embedding that it shares with the first; makes it a
  /// replica.
  void drop_tied_copy() {
    const auto untied = arguments_.boolean("untie_embeddings_and_output_weights");
    if (!untied || *untied) return;
    const auto copy = index_.find("output_layer.weight");
    const auto embedding = index_.find("embedding.word_embeddings.weight");
    if (copy == index_.end() || embedding == index_.end()) return;
    CheckpointEntry& from = entries_[copy->second];
    CheckpointEntry& to = entries_[embedding->second];
    if (!from.problem.empty() || !to.problem.empty() || from.parameter.shape != to.parameter.shape ||
        from.parameter.dtype != to.parameter.dtype) {
      return;
    }
    to.replicas.push_back({from.parameter, "output_layer.weight, which is tied to it", {}});
    entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(copy->second));
  }

  std::string folder_;
  CheckpointLoadOptions options_;
  std::map<std::vector<std::int64_t>, std::string> found_;  // folders by their numbers
  std::shared_ptr<const TorchTensors> first_;
  TrainingArguments arguments_;
  Grid grid_;
  std::vector<MegatronRank> ranks_;
  std::vector<std::map<std::string, std::int64_t, std::less<>>> first_layer_;  // by chunk, then stage
  std::vector<std::int64_t> first_expert_;                                     // by expert rank
  std::map<std::string, std::vector<Parameter>> groups_;
  std::unordered_map<std::string, std::size_t> index_;
  std::vector<CheckpointEntry> entries_;
  std::vector<std::string> warnings_;
};

}  // namespace

bool has_rank_folders(const std::string& folder) {
  return std::ranges::any_of(names_in(folder, WhichNames::folders),
                             [](const std::string& name) { return name.starts_with(kRankPrefix); });
}

Checkpoint load_megatron(const std::string& folder, const CheckpointLoadOptions& options) {
  return MegatronLoader(folder, options).run();
}

bool is_rank_file(const TorchTensors& tensors) {
  bool chunks = false;
  bool names = false;
  for (std::size_t i = 0; i < tensors.size() && !(chunks && names); ++i) {
    const std::string& name = tensors.name(i);
    if (!chunk_index(std::string_view(name).substr(0, name.find('.')))) continue;
    chunks = true;
    for (const char* part : {"linear_qkv", "linear_fc1", "query_key_value", "dense_h_to_4h"}) {
      names = names || name.find(part) != std::string::npos;
    }
  }
  const formats::Pickle& pickle = tensors.pickle();
  return chunks && (names || TrainingArguments(pickle, pickle.root()).integer("tensor_model_parallel_size"));
}

Checkpoint load_rank_file(const std::string& path, std::shared_ptr<const TorchTensors> tensors,
                          const CheckpointLoadOptions& options) {
  return MegatronLoader(path, options).run_single(path, std::move(tensors));
}

}  // namespace msprobe::checkpoint
