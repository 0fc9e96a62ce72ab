// SPDX-License-Identifier: Apache-2.0
// Takes over contents from builders, and contents that arrive later.
#include <algorithm>
#include <atomic>
#include <iterator>
#include <utility>

#include "collector/c_tensor.hpp"
#include "collector/recorder.hpp"
#include "support/file_name.hpp"

namespace msprobe::collector {

Builder::Target Recorder::new_target() const {
  Builder::Target target;
  target.serial = serial_;
  target.rules = step_->rules;
  return target;
}

/// Numbers are unique in the process, so that late contents never go to a session that was opened since.
std::uint64_t Recorder::add_slot(Deferred deferred) {
  static std::atomic<std::uint64_t> last{0};
  const std::uint64_t number = ++last;
  slots_.emplace(number, std::move(deferred));
  return number;
}

const Deferred* Recorder::find_slot(std::uint64_t number) const {
  const auto found = slots_.find(number);
  return found == slots_.end() ? nullptr : &found->second;
}

msprobe_status Recorder::commit(const Builder::Target& target, MemberText section, EntryFacts findings) {
  if (!step_ || target.serial != serial_) return MSPROBE_SKIP;
  if (target.keep_files) {
    EntryFacts& all = step_->findings[target.entry];
    all.nonfinite = all.nonfinite || findings.nonfinite;
    std::move(findings.seen.begin(), findings.seen.end(), std::back_inserter(all.seen));
    std::move(findings.files.begin(), findings.files.end(), std::back_inserter(all.files));
  }
  return put(target, std::move(section));
}

msprobe_status Recorder::put(const Builder::Target& target, MemberText section) {
  PendingEntry* entry = step_->entries.find(target.entry);
  if (entry == nullptr) return MSPROBE_SKIP;
  for (const MemberText::TextGap& gap : section.gaps) gap.slot->entry = entry->id;
  step_->fresh += section.text.size();
  step_->changed = true;
  entry->set(target.place, target.key, std::move(section));
  if (target.close_entry) close_entry(*entry);
  return write_if_due();
}

msprobe_status Recorder::commit_saved(const Builder::Target& target, MemberText section, MemberText gradient,
                                      std::vector<GradientLeaf> leaves) {
  if (!step_ || target.serial != serial_) return MSPROBE_SKIP;
  if (PendingEntry* entry = step_->entries.find(target.gradient_entry)) {
    entry->set(0, {}, std::move(gradient));
    step_->gradient_leaves.emplace(target.gradient_entry, std::move(leaves));
  }
  return put(target, std::move(section));
}

Builder::Target Recorder::begin_save(std::string_view name, bool gradient, std::uint64_t& gradient_entry) {
  const std::string key(name);
  const std::string count = std::to_string(step_->numbers.saves[key]++);
  Builder::Target target = new_target();
  PendingEntry& entry = step_->entries.place(key + '.' + count + ".debug");
  if (gradient) {
    PendingEntry& copy = step_->entries.place(key + "_grad." + count + ".debug");
    gradient_entry = target.gradient_entry = copy.id;
  }
  target.entry = entry.id;
  target.stem = entry.name;
  target.level = 2;
  target.files = config_.wants_files(entry.name);
  target.close_entry = true;
  return target;
}

std::optional<SavedLeaf> Recorder::find_leaf(std::uint64_t gradient_entry, std::string_view path) const {
  if (!step_) return std::nullopt;
  const auto leaves = step_->gradient_leaves.find(gradient_entry);
  if (leaves == step_->gradient_leaves.end()) return std::nullopt;
  const auto leaf =
      std::ranges::find_if(leaves->second, [&](const GradientLeaf& l) { return l.path == path; });
  if (leaf == leaves->second.end())
    throw InvalidCall("a saved value has no leaf at that path that requires a gradient");
  const PendingEntry* entry = step_->entries.find(gradient_entry);
  if (entry == nullptr) return std::nullopt;
  SavedLeaf found{step_->rules, leaf->slot, serial_, leaf->level, {}};
  if (config_.wants_files(entry->name)) {
    found.file = entry->name;
    if (!path.empty()) (found.file += '.') += path;
    found.file = file_name(found.file, found.rules->suffix);
  }
  return found;
}

bool Recorder::fill_leaf(const SavedLeaf& leaf, std::string text) {
  if (!step_ || leaf.serial != serial_) return false;
  step_->fresh += text.size();
  step_->changed = true;
  leaf.slot->text = std::move(text);
  return true;
}

std::string Recorder::tensor_folder(std::uint64_t serial) const {
  return step_ && serial == serial_ ? step_->folder() + "/dump_tensor_data/" : "";
}

msprobe_status Recorder::fill_slot(std::uint64_t number, const DeviceResults& results) {
  const Deferred* deferred = find_slot(number);
  return deferred == nullptr ? MSPROBE_SKIP : fill_slot(number, late_texts(*deferred, results));
}

msprobe_status Recorder::fill_slot(std::uint64_t number, LateTexts texts) {
  const auto found = slots_.find(number);
  if (found == slots_.end()) return MSPROBE_SKIP;
  fill(found->second, std::move(texts));
  slots_.erase(found);
  if (!step_) return MSPROBE_SKIP;
  step_->changed = true;
  return write_if_due();
}

}  // namespace msprobe::collector
