// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "checkpoint/loaders.hpp"
#include "formats/pickle_rating.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/parallel.hpp"
#include "support/text.hpp"

namespace msprobe::checkpoint {
namespace {

using formats::Pickle;
using formats::PickleKind;
using formats::PickleRef;
using formats::TensorSet;

/// The members of a record: a dict, or an object whose state is a dict (Namespace).
std::optional<PickleRef> members_of(const Pickle& pickle, PickleRef ref) {
  if (pickle.kind(ref) == PickleKind::dict) return ref;
  if (pickle.kind(ref) != PickleKind::object) return {};
  const formats::PickleObject& object = pickle.object(ref);
  for (const PickleRef part : {object.state, object.kwargs, object.pairs}) {
    if (part != formats::kNoPickleRef && pickle.kind(part) == PickleKind::dict) return part;
  }
  return {};
}

bool is_dangerous(const formats::PickleGlobal& global) {
  // A checkpoint of Megatron keeps the signal that ends the training among its arguments; that is no call.
  if (global.module == "signal" && !global.called) return false;
  // Whether getattr is dangerous depends on its arguments: see note_dangers().
  const bool builtin = global.module == "builtins" || global.module == "__builtin__";
  if (builtin && global.name == "getattr") return false;
  return formats::rate_global(global.module, global.name) == formats::Rating::dangerous;
}

}  // namespace

TensorSource source_of(std::shared_ptr<const TensorSet> set, std::size_t index) {
  return [set = std::move(set), index] { return set->tensor(index); };
}

CheckpointEntry entry_of(const std::shared_ptr<const TensorSet>& set, std::size_t index, std::string name) {
  CheckpointEntry entry;
  try {
    const formats::StoredTensor tensor = set->tensor(index);
    entry.parameter = whole(name, tensor.dtype, tensor.shape, source_of(set, index),
                            formats::ElementReader::memory_need(tensor));
    if (const auto half_step = set->half_step(index)) {
      entry.parameter.half_step = std::make_shared<const Parameter>(whole(
          name, half_step->dtype, half_step->shape, [set, index] { return set->half_step(index).value(); }));
    }
  } catch (const Error& error) {
    entry.parameter.name = std::move(name);
    entry.problem = error.what();
  }
  return entry;
}

TiedNames::TiedNames(std::vector<CheckpointEntry>& entries) : entries_(entries) {
  for (const CheckpointEntry& entry : entries) groups_ = std::max(groups_, entry.tied);
}

void TiedNames::note_last(const std::string& place) {
  if (place.empty()) return;
  const auto [at, is_new] = places_.try_emplace(place, entries_.size() - 1);
  if (is_new) return;
  CheckpointEntry& twin = entries_[at->second];
  if (twin.tied == 0) twin.tied = ++groups_;
  entries_.back().tied = twin.tied;
}

Architecture architecture_of(const std::array<const char*, 5>& keys,
                             const std::function<std::optional<std::int64_t>(const char*)>& number) {
  Architecture found{number(keys[0]), number(keys[1]), number(keys[2]), number(keys[3])};
  if (!found.query_groups) found.query_groups = found.heads;
  const auto hidden = number(keys[4]);
  if (!found.head_size && hidden && found.heads && *found.heads > 0) found.head_size = *hidden / *found.heads;
  return found;
}

TrainingArguments::TrainingArguments(const Pickle& pickle, PickleRef root) {
  if (pickle.kind(root) != PickleKind::dict) return;
  const auto found = pickle.find(root, "args");
  const auto members = found ? members_of(pickle, *found) : std::nullopt;
  if (!members) return;
  present_ = true;
  const auto pairs = pickle.pairs(*members);
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
    if (pickle.kind(pairs[i]) != PickleKind::text) continue;
    std::string name(pickle.text(pairs[i]));
    const PickleRef value = pairs[i + 1];
    if (pickle.kind(value) == PickleKind::integer) {
      values_[std::move(name)] = pickle.integer(value);
    } else if (pickle.kind(value) == PickleKind::boolean) {
      values_[std::move(name)] = pickle.boolean(value) ? 1 : 0;
    }
  }
}

std::optional<std::int64_t> TrainingArguments::integer(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<bool> TrainingArguments::boolean(const std::string& name) const {
  const auto value = integer(name);
  return value ? std::optional(*value != 0) : std::nullopt;
}

Architecture TrainingArguments::architecture() const {
  Architecture architecture =
      architecture_of({"num_attention_heads", "num_query_groups", "kv_channels", "", "hidden_size"},
                      [&](const char* key) { return integer(key); });
  // Without grouped queries the number of groups keeps its default, which means nothing.
  if (const auto grouped = boolean("group_query_attention"); grouped && !*grouped) {
    architecture.query_groups = architecture.heads;
  }
  return architecture;
}

void note_dangers(std::vector<std::string>& warnings, const std::string& where, const Pickle& pickle) {
  const auto note = [&](std::string_view name) {
    warnings.push_back(fmt::format("{}: its pickle names {}; msprobe ran none of it, but Python would",
                                   display(where), name));
  };
  for (const formats::PickleGlobal& global : pickle.globals()) {
    if (is_dangerous(global)) note(display(global.full_name()));
  }
  // getattr on anything but a class of the pickle can reach everything in a process.
  for (std::size_t i = 0; i < pickle.size(); ++i) {
    const auto ref = static_cast<PickleRef>(i);
    if (pickle.kind(ref) != PickleKind::object) continue;
    const formats::PickleObject& object = pickle.object(ref);
    if (pickle.kind(object.callable) != PickleKind::global) continue;
    const formats::PickleGlobal& callable = pickle.global(object.callable);
    const bool builtin = callable.module == "builtins" || callable.module == "__builtin__";
    if (!builtin || callable.name != "getattr" || object.args == formats::kNoPickleRef) continue;
    const auto args = pickle.items(object.args);
    if (!args.empty() && pickle.kind(args[0]) == PickleKind::global) continue;
    note("builtins.getattr of an object");
    break;
  }
}

std::vector<std::shared_ptr<const formats::TorchTensors>> open_all(const std::vector<std::string>& files,
                                                                   std::vector<std::string>& warnings) {
  std::vector<std::shared_ptr<const formats::TorchTensors>> all(files.size());
  parallel_for(files.size(), [&](std::size_t i) {
    all[i] = std::make_shared<const formats::TorchTensors>(open_file(files[i]));
  });
  for (std::size_t i = 0; i < files.size(); ++i) note_dangers(warnings, files[i], all[i]->pickle());
  return all;
}

std::string read_line(const std::string& path) {
  constexpr std::uint64_t kMost = 4096;
  constexpr std::string_view kBlanks = " \n\r\t";
  std::string text = read_all(*open_file(path), kMost);
  text.erase(text.find_last_not_of(kBlanks) + 1);
  text.erase(0, text.find_first_not_of(kBlanks));
  return text;
}

std::string in_folder(const std::string& folder, const std::string& name) {
  return folder.empty() || folder.ends_with('/') ? folder + name : folder + "/" + name;
}

}  // namespace msprobe::checkpoint
