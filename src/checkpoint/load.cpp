// SPDX-License-Identifier: Apache-2.0
// Detects which kind of checkpoint a path holds, from its contents.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>
#include <vector>

#include "checkpoint/file_series.hpp"
#include "checkpoint/loaders.hpp"
#include "checkpoint/names.hpp"
#include "checkpoint/shards.hpp"
#include "checkpoint/weight_forms.hpp"
#include "formats/safetensors.hpp"
#include "support/ascii.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/folder.hpp"
#include "support/text.hpp"

namespace msprobe::checkpoint {
namespace {

namespace fs = std::filesystem;
using formats::Container;
using formats::TensorSet;

constexpr const char* kTracker = "latest_checkpointed_iteration.txt";
constexpr std::uint64_t kMostConfig = std::uint64_t{1} << 20;
constexpr std::uint64_t kMostIndex = std::uint64_t{64} << 20;

/// Raises the limit of open files: a checkpoint of hundreds of ranks has hundreds of files open.
void allow_many_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);  // on failure, open() reports the first file too many
}

std::string tracked_folder(const std::string& folder) {
  const std::string tracker = in_folder(folder, kTracker);
  const std::string text = read_line(tracker);
  std::string inner = text;
  if (text != "release") {
    const auto iteration = whole_number<std::uint64_t>(text);
    if (!iteration) {
      throw FormatError(display(tracker), fmt::format("'{}' must be a number or 'release'", display(text)));
    }
    inner = fmt::format("iter_{:07}", *iteration);
  }
  std::string path = in_folder(folder, inner);
  if (!path_exists(path))
    throw IoError(display(path), fmt::format("not found, although {} names it", kTracker));
  return path;
}

void read_config(const std::string& folder, Architecture& architecture) {
  try {
    const std::string text = read_all(*open_file(in_folder(folder, "config.json")), kMostConfig);
    const nlohmann::json config = nlohmann::json::parse(text, nullptr, false);
    if (!config.is_object()) return;
    const auto number = [&](const char* key) -> std::optional<std::int64_t> {
      const auto found = config.find(key);
      if (found == config.end() || !found->is_number_integer()) return {};
      return found->get<std::int64_t>();
    };
    architecture = architecture_of(
        {"num_attention_heads", "num_key_value_heads", "head_dim", "vocab_size", "hidden_size"}, number);
  } catch (const Error&) {
    // There is no configuration; the other checkpoint may have one.
  }
}

void add_set(Checkpoint& checkpoint, const std::shared_ptr<const TensorSet>& set, const std::string& path,
             const CheckpointLoadOptions& options) {
  if (const auto gguf = std::dynamic_pointer_cast<const formats::GgufFile>(set))
    return add_gguf(checkpoint, gguf, path);
  if (const auto flax = std::dynamic_pointer_cast<const formats::FlaxFile>(set))
    return add_flax(checkpoint, flax, path);
  TiedNames tied(checkpoint.entries);
  bool has_container = false;
  for (std::size_t i = 0; i < set->size(); ++i) {
    const std::string& name = set->name(i);
    const std::size_t dot = name.find('.');
    has_container = has_container || (dot != std::string::npos && is_container(name.substr(0, dot)));
  }
  for (std::size_t i = 0; i < set->size(); ++i) {
    std::string name = set->name(i);
    if (name.empty()) name = "tensor";
    const bool state = is_training_state(name) || (has_container && is_beside_model(name));
    if (state && !options.optimizer) continue;
    checkpoint.entries.push_back(entry_of(set, i, std::move(name)));
    tied.note_last(set->place(i));
  }
}

/// Files that a series lacks are an error, as missing files of a rank are.
void check_complete(const std::string& folder, const FileSeries& series, const CheckpointLoadOptions& options,
                    std::vector<std::string>& warnings) {
  const std::string missing = missing_text(series);
  if (missing.empty()) return;
  const std::string text =
      fmt::format("incomplete: found {}, but {}", display(series.files.front()), missing);
  if (!options.allow_partial) throw FormatError(display(folder), text);
  warnings.push_back(display(folder) + ": " + text);
}

void add_parts(ShardJoiner& joiner, const std::shared_ptr<const TensorSet>& set,
               const std::optional<SavedOffsets>& offsets, const std::string& path,
               const CheckpointLoadOptions& options) {
  for (std::size_t i = 0; i < set->size(); ++i) {
    const std::string& name = set->name(i);
    if (!options.optimizer && is_training_state(name)) continue;
    CheckpointEntry entry = entry_of(set, i, name);
    Shard shard{std::move(entry.parameter), {}, {}, path, std::move(entry.problem)};
    shard.offset.assign(shard.part.shape.size(), 0);
    if (offsets) {
      if (const auto found = offsets->find(name); found != offsets->end()) shard.offset = found->second;
    }
    joiner.add(name, std::move(shard));
  }
}

/// Loads the file of one rank together with the files of the other ranks beside it.
Checkpoint load_ranks_beside(const std::string& path, const CheckpointLoadOptions& options) {
  const fs::path file(path);
  const std::string folder = file.has_parent_path() ? file.parent_path().string() : ".";
  const std::string name = file.filename().string();
  for (const FileSeries& series : series_among(names_in(folder, WhichNames::regular_files))) {
    if (std::find(series.files.begin(), series.files.end(), name) == series.files.end()) continue;
    std::vector<std::string> incomplete;
    check_complete(folder, series, options, incomplete);
    std::vector<std::string> paths;
    for (const std::string& each : series.files) paths.push_back(in_folder(folder, each));
    Checkpoint checkpoint = load_rank_shards(paths, options);
    std::move(incomplete.begin(), incomplete.end(), std::back_inserter(checkpoint.warnings));
    return checkpoint;
  }
  return load_rank_shards({path}, options);
}

Checkpoint load_file(const std::string& path, const CheckpointLoadOptions& options) {
  const auto file = open_file(path);
  const Container container = formats::container_of(file);
  if (container == Container::torch_zip || container == Container::torch_legacy) {
    const auto tensors = std::make_shared<const formats::TorchTensors>(file);
    if (is_rank_file(*tensors)) return load_rank_file(path, tensors, options);
    if (has_shards(*tensors)) return load_ranks_beside(path, options);
    Checkpoint checkpoint;
    checkpoint.format = "PyTorch file";
    note_dangers(checkpoint.warnings, path, tensors->pickle());
    checkpoint.architecture = TrainingArguments(tensors->pickle(), tensors->pickle().root()).architecture();
    add_set(checkpoint, tensors, path, options);
    return checkpoint;
  }
  return load_files({path}, options);
}

/// The first of several entries with one name stays; such entries are adjacent. Parts can be put together to
/// one name in two ways, so it is unknown which entry belongs to that of the other checkpoint.
void merge_twins(std::vector<CheckpointEntry>& entries) {
  const auto twins = [](const CheckpointEntry& a, const CheckpointEntry& b) {
    return a.parameter.name == b.parameter.name;
  };
  for (std::size_t i = 1; i < entries.size(); ++i) {
    if (twins(entries[i - 1], entries[i]) && entries[i - 1].problem.empty())
      entries[i - 1].problem = "several tensors have this name";
  }
  entries.erase(std::unique(entries.begin(), entries.end(), twins), entries.end());
}

/// Loads safetensors, or pieces of another kind, without an index.
Checkpoint load_pieces(const std::string& folder, const std::vector<std::string>& names,
                       const CheckpointLoadOptions& options) {
  std::vector<std::string> paths;
  for (const std::string& name : names) paths.push_back(in_folder(folder, name));
  Checkpoint checkpoint = load_files(paths, options);
  for (const FileSeries& series : series_among(names)) {
    if (!series.place.ranks) check_complete(folder, series, options, checkpoint.warnings);
  }
  if (!checkpoint.architecture.heads) read_config(folder, checkpoint.architecture);
  return checkpoint;
}

Checkpoint load_weight_files(const std::string& folder, const std::vector<std::string>& names,
                             const CheckpointLoadOptions& options) {
  const std::vector<FileSeries> all = series_among(names);
  const bool one_series = all.size() == 1 && all[0].files.size() == names.size();
  if (one_series && !all[0].place.ranks) return load_pieces(folder, names, options);
  if (one_series && names.size() > 1) {
    const auto file = open_file(in_folder(folder, names[0]));
    const Container container = formats::container_of(file);
    const bool torch = container == Container::torch_zip || container == Container::torch_legacy;
    if (torch && has_shards(formats::TorchTensors(file)))
      return load_ranks_beside(in_folder(folder, names[0]), options);
  }
  if (names.size() > 1) {
    throw FormatError(display(folder), fmt::format("several checkpoints here: name one of {}, {}, …",
                                                   display(names[0]), display(names[1])));
  }
  Checkpoint checkpoint = load_file(in_folder(folder, names[0]), options);
  if (!checkpoint.architecture.heads) read_config(folder, checkpoint.architecture);
  return checkpoint;
}

Checkpoint load_form(const std::string& folder, const WeightForm& form,
                     const CheckpointLoadOptions& options) {
  switch (form.kind) {
    case WeightForm::WeightLayout::safetensors:
      return load_pieces(folder, form.files, options);
    case WeightForm::WeightLayout::index:
      return load_indexed(folder, form.files.front(), options);
    case WeightForm::WeightLayout::files:
    case WeightForm::WeightLayout::gguf:
      return load_weight_files(folder, form.files, options);
    case WeightForm::WeightLayout::deepspeed:
      break;
  }
  return load_deepspeed(*deepspeed_folder(folder), options);
}

/// Reports the forms that are not read, and contents in them that contradict the form that is read.
void note_other_forms(const std::string& folder, const std::vector<WeightForm>& forms,
                      const std::vector<std::string>& names, Checkpoint& checkpoint) {
  for (std::size_t i = 1; i < forms.size(); ++i) {
    std::string text = fmt::format("{}: {} {} here, too, and not compared", display(folder),
                                   form_name(forms[i]), forms[i].files.size() == 1 ? "is" : "are");
    try {
      // Elements that were rounded and rows in another order are no contradiction.
      if (forms[i].kind == WeightForm::WeightLayout::gguf) {
        checkpoint.left_out.push_back(std::move(text));
        continue;
      }
      CheckpointLoadOptions options;
      options.allow_partial = true;
      const std::string reason = contradiction(checkpoint, load_form(folder, forms[i], options));
      // The same weights in another form need no comparison.
      if (reason.empty()) {
        checkpoint.warnings.push_back(std::move(text));
        continue;
      }
      text += fmt::format("; it contradicts {}: {}", form_name(forms[0]), reason);
    } catch (const Error& error) {
      text += fmt::format(" ({})", error.what());
    }
    checkpoint.left_out.push_back(std::move(text));
  }
  for (const std::string& name : unread_weights(names))
    checkpoint.left_out.push_back(
        fmt::format("{}: {} is here, too; msprobe does not read it", display(folder), display(name)));
}

/// Lists the checkpoints one level below, for a folder that is one level too high.
std::string below_text(const std::string& folder) {
  std::vector<std::string> below;
  for (const std::string& name : names_in(folder, WhichNames::folders)) {
    if (looks_like_checkpoint(in_folder(folder, name))) below.push_back(display(in_folder(folder, name)));
  }
  if (below.empty()) return {};
  return fmt::format("; {} {}", below.front(),
                     below.size() == 1 ? "is one" : fmt::format("and {} more are", below.size() - 1));
}

Checkpoint load_folder(const std::string& folder, const CheckpointLoadOptions& options, bool may_track) {
  if (may_track && path_exists(in_folder(folder, kTracker)))
    return load_folder(tracked_folder(folder), options, false);
  if (has_rank_folders(folder)) return load_megatron(folder, options);
  if (path_exists(in_folder(folder, ".metadata"))) return load_distributed(folder, options);
  for (const char* name : {"model_optim_rng.pt", "model_rng.pt"}) {
    if (path_exists(in_folder(folder, name))) return load_file(in_folder(folder, name), options);
  }
  const std::vector<std::string> names = names_in(folder, WhichNames::regular_files);
  const std::vector<WeightForm> forms = weight_forms(folder, names);
  if (forms.empty()) {
    if (const std::string reason = unread_folder_reason(folder); !reason.empty())
      throw FormatError(display(folder), reason);
    throw FormatError(display(folder),
                      fmt::format("no checkpoint here: found neither {} nor mp_rank_… folders, .metadata, "
                                  "safetensors or a single tensor file{}",
                                  kTracker, below_text(folder)));
  }
  Checkpoint checkpoint = load_form(folder, forms.front(), options);
  note_other_forms(folder, forms, names, checkpoint);
  return checkpoint;
}

}  // namespace

Checkpoint load_files(const std::vector<std::string>& files, const CheckpointLoadOptions& options) {
  Checkpoint checkpoint;
  checkpoint.format = files.size() == 1 ? "one file" : fmt::format("{} files", files.size());
  std::vector<std::shared_ptr<const TensorSet>> sets;
  std::vector<std::optional<SavedOffsets>> offsets;
  for (const std::string& name : files) {
    const auto file = open_file(name);
    if (files.size() == 1)
      checkpoint.format = std::string(formats::container_name(formats::container_of(file)));
    sets.push_back(formats::open_tensors(file));
    const auto* safe = dynamic_cast<const formats::SafetensorsFile*>(sets.back().get());
    offsets.push_back(safe == nullptr ? std::nullopt : saved_offsets(*safe, name));
  }
  const bool any_parts = std::ranges::any_of(offsets, [](const auto& o) { return o.has_value(); });
  ShardJoiner joiner;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (any_parts) {
      add_parts(joiner, sets[i], offsets[i], files[i], options);
    } else {
      add_set(checkpoint, sets[i], files[i], options);
    }
  }
  if (any_parts) {
    checkpoint.format =
        fmt::format("PyTorch distributed, {} safetensors file{}", files.size(), files.size() == 1 ? "" : "s");
    checkpoint.entries = joiner.finish();
  }
  return checkpoint;
}

namespace {

/// Reads which tensors each file has; throws FormatError if this is no index.
std::map<std::string, std::unordered_set<std::string>> read_index(const std::string& path) {
  const nlohmann::json root = nlohmann::json::parse(read_all(*open_file(path), kMostIndex), nullptr, false);
  const auto map = root.is_object() ? root.find("weight_map") : root.end();
  if (!root.is_object() || map == root.end() || !map->is_object()) {
    throw FormatError(display(path), "an index without a weight_map");
  }
  std::map<std::string, std::unordered_set<std::string>> by_file;
  for (const auto& [name, file] : map->items()) {
    if (!file.is_string())
      throw FormatError(display(path), fmt::format("the file of {} is not text", display(name)));
    by_file[file.get<std::string>()].insert(name);
  }
  return by_file;
}

}  // namespace

std::set<std::string> files_of_index(const std::string& folder, const std::string& index) {
  std::set<std::string> files;
  try {
    for (const auto& [name, tensors] : read_index(in_folder(folder, index))) files.insert(name);
  } catch (const Error&) {
    // The loader that reads the index reports the error.
  }
  return files;
}

Checkpoint load_indexed(const std::string& folder, const std::string& index,
                        const CheckpointLoadOptions& options) {
  auto by_file = read_index(in_folder(folder, index));
  Checkpoint checkpoint;
  checkpoint.format = fmt::format("{} files with an index", by_file.size());
  for (auto& [name, wanted] : by_file) {
    if (!path_exists(in_folder(folder, name))) {
      throw FormatError(display(in_folder(folder, index)),
                        fmt::format("it names {}, which is not here", display(name)));
    }
    // A plain name may be a link, as in model caches; a longer one must stay inside the folder.
    const auto file = name.find('/') == std::string::npos && name != ".." ? open_file(in_folder(folder, name))
                                                                          : open_file_beneath(folder, name);
    const std::shared_ptr<const TensorSet> set = formats::open_tensors(file);
    for (std::size_t i = 0; i < set->size(); ++i) {
      if (wanted.erase(set->name(i)) == 0) {
        checkpoint.left_out.push_back(fmt::format("{}: {} is not in the index and was skipped",
                                                  display(file->name()), display(set->name(i))));
        continue;
      }
      if (!options.optimizer && is_training_state(set->name(i))) continue;
      checkpoint.entries.push_back(entry_of(set, i, set->name(i)));
    }
    for (const std::string& missing : wanted) {
      CheckpointEntry& entry = checkpoint.entries.emplace_back();
      entry.parameter.name = missing;
      entry.problem =
          fmt::format("{}: missing from this file, although the index places it here", display(file->name()));
    }
  }
  read_config(folder, checkpoint.architecture);
  return checkpoint;
}

Checkpoint load(const std::string& path, const CheckpointLoadOptions& options) {
  allow_many_files();
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status))
    throw IoError(display(path), error ? error.message() : "No such file or directory");
  Checkpoint checkpoint;
  if (fs::is_directory(status)) {
    checkpoint = load_folder(path, options, true);
  } else {
    const fs::path file(path);
    const std::string name = file.filename().string();
    const std::string folder = file.has_parent_path() ? file.parent_path().string() : ".";
    if (name == ".metadata") {
      checkpoint = load_distributed(folder, options);
    } else if (name.ends_with(".index.json")) {
      checkpoint = load_indexed(folder, name, options);
    } else if (name.find("zero_pp_rank_") != std::string::npos && deepspeed_folder(folder) == folder) {
      checkpoint = load_deepspeed(folder, options);  // a single rank's file has only stretches of elements
    } else {
      checkpoint = load_file(path, options);
      if (!checkpoint.architecture.heads) read_config(folder, checkpoint.architecture);
      const auto place = series_place(name);
      if (place && !place->ranks && place->count.value_or(1) > 1) {
        checkpoint.warnings.push_back(fmt::format(
            "{}: one of {} files of a checkpoint; only this one is read", display(path), *place->count));
      }
    }
  }
  checkpoint.path = path;
  std::ranges::stable_sort(checkpoint.entries, [](const CheckpointEntry& a, const CheckpointEntry& b) {
    return in_model_order(a.parameter.name, b.parameter.name);
  });
  if (checkpoint.entries.empty()) throw FormatError(display(path), "it has no tensors");
  merge_twins(checkpoint.entries);
  return checkpoint;
}

bool looks_like_checkpoint(const std::string& path) noexcept {
  try {
    if (is_folder(path)) {
      for (const char* name : {kTracker, ".metadata", "model_optim_rng.pt", "model_rng.pt"}) {
        if (path_exists(in_folder(path, name))) return true;
      }
      if (has_rank_folders(path) || deepspeed_folder(path)) return true;
      for (const std::string& name : names_in(path, WhichNames::regular_files)) {
        for (const char* suffix :
             {".index.json", ".safetensors", ".pt", ".pth", ".bin", ".ckpt", ".gguf", ".onnx", ".msgpack"}) {
          if (name.ends_with(suffix)) return true;
        }
      }
      return false;
    }
    const auto file = open_file(path);
    const Container container = formats::container_of(file);
    return container == Container::torch_zip || container == Container::torch_legacy ||
           container == Container::safetensors || container == Container::npz ||
           container == Container::mindspore || container == Container::gguf ||
           container == Container::onnx || container == Container::flax;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace msprobe::checkpoint
