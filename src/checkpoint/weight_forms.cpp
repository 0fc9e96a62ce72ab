// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/weight_forms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "checkpoint/loaders.hpp"
#include "checkpoint/metrics.hpp"
#include "checkpoint/names.hpp"
#include "support/error.hpp"
#include "support/folder.hpp"
#include "support/text.hpp"

namespace msprobe::checkpoint {
namespace {

using Names = std::vector<std::string>;

// The files that loaders look for first.
constexpr std::array<std::string_view, 3> kSafetensors = {
    "model.safetensors", "diffusion_pytorch_model.safetensors", "adapter_model.safetensors"};

/// `consolidated.safetensors` is the original form of models that transformers reads from other files. A
/// variant such as `model.fp16.safetensors` is read only on request.
bool is_second_choice(std::string_view name) {
  constexpr std::array<std::string_view, 4> kVariants = {".fp16.", ".bf16.", ".fp32.", ".non_ema."};
  return name.starts_with("consolidated") || std::ranges::any_of(kVariants, [&](std::string_view variant) {
           return name.find(variant) != std::string_view::npos;
         });
}

/// Files of a training program that hold no parameters, by the head of their names.
bool is_state_file(std::string_view name) {
  constexpr std::array<std::string_view, 8> kStateHeads = {"optim",         "extra_state", "scheduler",
                                                           "random_states", "rng_state",   "training_args",
                                                           "trainer_st",    "scaler"};
  return std::ranges::any_of(kStateHeads, [&](std::string_view head) { return name.starts_with(head); });
}

bool ends_with_any(std::string_view name, std::initializer_list<std::string_view> suffixes) {
  return std::ranges::any_of(suffixes, [&](std::string_view suffix) { return name.ends_with(suffix); });
}

class FormFinder {
  using Layout = WeightForm::WeightLayout;

 public:
  FormFinder(const std::string& folder, const Names& names)
      : folder_(folder), left_(names), is_deepspeed_(deepspeed_folder(folder).has_value()) {}

  std::vector<WeightForm> run() {
    for (const std::string_view name : kSafetensors)
      take(Layout::safetensors, [&](const std::string& each) { return each == name; });
    take_indexes(".safetensors.index.json");
    const auto is_safetensors = [](const std::string& name) { return name.ends_with(".safetensors"); };
    take(Layout::safetensors,
         [&](const std::string& name) { return is_safetensors(name) && !is_second_choice(name); });
    take_indexes(".index.json");
    take_files();
    if (is_deepspeed_) forms_.push_back({Layout::deepspeed, {}});
    take(Layout::safetensors, is_safetensors);
    // Most GGUF files are made from one of the others, and rounded.
    take(Layout::gguf, [](const std::string& name) { return name.ends_with(".gguf"); });
    take(Layout::files, [](const std::string& name) { return name.ends_with(".onnx"); });
    take(Layout::files, [](const std::string& name) { return name.ends_with(".msgpack"); });
    return std::move(forms_);
  }

 private:
  /// Takes the remaining names that `wanted` accepts, as one form.
  template <typename Wanted>
  void take(Layout kind, const Wanted& wanted) {
    WeightForm form{kind, {}};
    const auto begin = std::stable_partition(left_.begin(), left_.end(),
                                             [&](const std::string& name) { return !wanted(name); });
    form.files.assign(std::make_move_iterator(begin), std::make_move_iterator(left_.end()));
    left_.erase(begin, left_.end());
    if (!form.files.empty()) forms_.push_back(std::move(form));
  }

  void take_indexes(std::string_view suffix) {
    Names indexes;
    std::ranges::copy_if(left_, std::back_inserter(indexes),
                         [&](const std::string& name) { return name.ends_with(suffix); });
    for (const std::string& index : indexes) {
      const std::set<std::string> files = files_of_index(folder_, index);
      std::erase_if(left_, [&](const std::string& name) { return name == index || files.contains(name); });
      forms_.push_back({Layout::index, {index}});
    }
  }

  /// The state of a training counts as a checkpoint only if there is nothing else.
  void take_files() {
    const auto is_weights = [](const std::string& name) {
      return ends_with_any(name, {".pt", ".pth", ".bin", ".ckpt", ".npz"}) &&
             !ends_with_any(name, {"_model_states.pt", "_optim_states.pt"});
    };
    const auto is_model = [&](const std::string& name) { return is_weights(name) && !is_state_file(name); };
    take(Layout::files, [&](const std::string& name) { return is_model(name) && !is_second_choice(name); });
    take(Layout::files, is_model);
    if (forms_.empty() && !is_deepspeed_) take(Layout::files, is_weights);
  }

  const std::string& folder_;
  Names left_;
  bool is_deepspeed_;
  std::vector<WeightForm> forms_;
};

/// Parameters by the names that all forms of a model have in common.
std::unordered_map<std::string, const Parameter*> parameters_of(const Checkpoint& checkpoint) {
  std::unordered_map<std::string, const Parameter*> parameters;
  for (const CheckpointEntry& entry : checkpoint.entries) {
    if (entry.problem.empty()) parameters.emplace(without_wrappers(entry.parameter.name), &entry.parameter);
  }
  return parameters;
}

/// True if the first or the last rows differ by more than rounding.
bool differs_at_its_ends(const Parameter& a, const Parameter& b) {
  const auto differs = [](const Parameter& one, const Parameter& other) {
    const PairMetrics metrics = measure(one, other);
    return metrics.unequal > 0 && !metrics.unrounded.holds();
  };
  if (a.shape.empty()) return differs(a, b);
  constexpr std::int64_t kElements = 4096;
  const std::int64_t length = a.shape[0];
  if (length == 0 || a.numel() == 0) return false;
  const std::int64_t rows = std::min(length, std::max<std::int64_t>(1, kElements / (a.numel() / length)));
  return differs(narrow(a, 0, 0, rows), narrow(b, 0, 0, rows)) ||
         differs(narrow(a, 0, length - rows, rows), narrow(b, 0, length - rows, rows));
}

struct FolderMark {
  std::string_view name;  // of a file or folder
  std::string_view what;
};

constexpr std::string_view kOrbax = "an Orbax checkpoint";
constexpr std::array kMarks = {
    FolderMark{"_CHECKPOINT_METADATA", kOrbax},
    FolderMark{"manifest.ocdbt", kOrbax},
    FolderMark{"saved_model.pb", "a SavedModel of TensorFlow"},
    FolderMark{"fingerprint.pb", "a SavedModel of TensorFlow"},
};

/// Files that huggingface_hub began to download; their incomplete part has this ending.
std::string unfinished_download(const std::string& folder) {
  const std::string cache = cache_of_snapshot(folder);
  const std::array places = {in_folder(folder, ".cache/huggingface/download"), in_folder(folder, "blobs"),
                             cache.empty() ? std::string() : in_folder(cache, "blobs")};
  for (const std::string& place : places) {
    if (place.empty() || !is_folder(place)) continue;
    std::error_code error;
    for (const std::string& name : list_folder(place, error).files) {
      if (!name.ends_with(".incomplete")) continue;
      return fmt::format(
          "a download that was not finished ({}): fetch it again, which goes on where it stopped",
          display(in_folder(place, name)));
    }
  }
  return {};
}

}  // namespace

std::vector<WeightForm> weight_forms(const std::string& folder, const std::vector<std::string>& names) {
  return FormFinder(folder, names).run();
}

std::vector<std::string> unread_weights(const std::vector<std::string>& names) {
  Names unread;
  std::ranges::copy_if(names, std::back_inserter(unread), [](const std::string& name) {
    return ends_with_any(name, {".h5", ".keras"});
  });
  return unread;
}

std::string form_name(const WeightForm& form) {
  if (form.kind == WeightForm::WeightLayout::deepspeed) return "files of DeepSpeed";
  if (form.files.size() == 1) return display(form.files.front());
  return fmt::format("{} and {} more", display(form.files.front()), form.files.size() - 1);
}

std::string contradiction(const Checkpoint& read, const Checkpoint& other) {
  const auto ours = parameters_of(read);
  const auto theirs = parameters_of(other);
  std::size_t common = 0;
  Names differ;
  for (const auto& [name, parameter] : ours) {
    const auto found = theirs.find(name);
    if (found == theirs.end()) continue;
    ++common;
    try {
      if (parameter->shape != found->second->shape || differs_at_its_ends(*parameter, *found->second))
        differ.push_back(name);
    } catch (const Error&) {
      differ.push_back(name);
    }
  }
  if (common == 0) return "none of its names is the same";
  if (differ.empty()) return {};
  const std::string& first = *std::ranges::min_element(differ);
  return fmt::format("{} of {} parameters in both differ, as {}", human_count(differ.size()),
                     human_count(common), display(first));
}

std::string unread_folder_reason(const std::string& folder) {
  std::error_code error;
  const Listing listing = list_folder(folder, error);
  for (const FolderMark& mark : kMarks) {
    const auto is_marked = [&](const std::string& name) { return name == mark.name; };
    if (std::ranges::any_of(listing.files, is_marked))
      return fmt::format("{}, which msprobe does not read: save its weights as safetensors or npz",
                         mark.what);
  }
  // TensorFlow's own form: PREFIX.index beside PREFIX.data-00000-of-00001.
  for (const std::string& name : listing.files) {
    constexpr std::string_view kIndex = ".index";
    if (!name.ends_with(kIndex)) continue;
    const std::string data = name.substr(0, name.size() - kIndex.size()) + ".data-";
    if (std::ranges::any_of(listing.files, [&](const std::string& each) { return each.starts_with(data); }))
      return "a TensorFlow checkpoint, which msprobe does not read: save its weights as safetensors or npz";
  }
  return unfinished_download(folder);
}

}  // namespace msprobe::checkpoint
