// SPDX-License-Identifier: Apache-2.0
// What builders hand over to the session, and what comes later.
#include <algorithm>
#include <iterator>
#include <utility>

#include "collector/builder.hpp"
#include "collector/c_tensor.hpp"
#include "collector/session.hpp"
#include "collector/tensor_file.hpp"

namespace msprobe::collector {

std::uint64_t Session::add_slot(const DeferredNumbers& numbers) {
  const std::lock_guard lock(mutex_);
  slots_.emplace(++next_slot_, numbers);
  return next_slot_;
}

msprobe_status Session::commit(const Builder::Target& target, Section section, Findings findings) {
  const std::lock_guard lock(mutex_);
  if (!step_ || target.serial != serial_) return MSPROBE_SKIP;
  if (target.keep_files) {
    Findings& all = step_->findings[target.entry];
    all.nonfinite = all.nonfinite || findings.nonfinite;
    std::move(findings.seen.begin(), findings.seen.end(), std::back_inserter(all.seen));
    std::move(findings.files.begin(), findings.files.end(), std::back_inserter(all.files));
  }
  return commit_locked(target, std::move(section));
}

msprobe_status Session::commit_locked(const Builder::Target& target, Section section) {
  Entry* entry = step_->entries.find(target.entry);
  if (entry == nullptr) return MSPROBE_SKIP;
  for (const Section::Gap& gap : section.gaps) gap.slot->entry = entry->id;
  step_->fresh += section.text.size();
  step_->changed = true;
  entry->set(target.place, target.key, std::move(section));
  if (target.close_entry) close_entry(*entry);
  return write_if_due();
}

msprobe_status Session::commit_saved(const Builder::Target& target, Section section, Section gradient,
                                     std::vector<GradientLeaf> leaves) {
  const std::lock_guard lock(mutex_);
  if (!step_ || target.serial != serial_) return MSPROBE_SKIP;
  if (Entry* entry = step_->entries.find(target.gradient_entry)) {
    entry->set(0, {}, std::move(gradient));
    step_->gradient_leaves.emplace(target.gradient_entry, std::move(leaves));
  }
  return commit_locked(target, std::move(section));
}

std::unique_ptr<Builder> Session::begin_save(std::string_view name, bool gradient,
                                             std::uint64_t& gradient_entry) {
  gradient_entry = 0;
  const std::lock_guard lock(mutex_);
  if (config_.level != Level::debug || (config_.task != Task::tensor && config_.task != Task::statistics) ||
      config_.dump_enable == false || finished_ || !step_listed()) {
    return nullptr;
  }
  begin_step();
  const std::string key(name);
  const std::string count = std::to_string(step_->save_counters[key]++);
  Builder::Target target;
  Entry& entry = step_->entries.place(key + '.' + count + ".debug");
  if (gradient) {
    Entry& copy = step_->entries.place(key + "_grad." + count + ".debug");
    gradient_entry = target.gradient_entry = copy.id;
  }
  target.serial = serial_;
  target.entry = entry.id;
  target.stem = entry.name;
  target.level = 2;
  target.files = wants_files(entry.name);
  target.close_entry = true;
  return std::make_unique<Builder>(*this, step_->rules, std::move(target));
}

msprobe_status Session::fill_gradient(std::uint64_t gradient_entry, std::string_view path,
                                      const msprobe_tensor& tensor) {
  TensorView view = view_of(tensor);
  Record record;
  std::shared_ptr<const RecordRules> rules;
  std::shared_ptr<Slot> slot;
  std::uint64_t serial = 0;
  {
    const std::lock_guard lock(mutex_);
    if (!step_) return MSPROBE_SKIP;
    const auto leaves = step_->gradient_leaves.find(gradient_entry);
    if (leaves == step_->gradient_leaves.end()) return MSPROBE_SKIP;
    const auto leaf = std::find_if(leaves->second.begin(), leaves->second.end(),
                                   [&](const GradientLeaf& l) { return l.path == path; });
    if (leaf == leaves->second.end())
      throw InvalidCall("a saved value has no leaf of that path that wants a gradient");
    const Entry* entry = step_->entries.find(gradient_entry);
    if (entry == nullptr) return MSPROBE_SKIP;
    rules = step_->rules;
    slot = leaf->slot;
    serial = serial_;
    record.level = leaf->level;
    if (wants_files(entry->name) && has_file(tensor, view)) {
      record.data_name = entry->name;
      if (!path.empty()) (record.data_name += '.') += path;
      record.data_name = file_name(record.data_name, rules->suffix);
    }
  }
  crop(view, rules->slice);
  std::string text;
  append_record(text, *rules, tensor, view, {}, record);
  // There is nothing to put the numbers into later: what is known is all.
  if (record.deferred) text.insert(record.gap, record.deferred->slot->text);
  const msprobe_status status =
      record.data_name.empty() ? MSPROBE_OK : save_tensor(serial, record.data_name, view);
  const std::lock_guard lock(mutex_);
  if (!step_ || serial != serial_) return MSPROBE_SKIP;
  step_->fresh += text.size();
  step_->changed = true;
  slot->text = std::move(text);
  return status;
}

msprobe_status Session::fill_statistics(std::uint64_t number, const msprobe_statistics& statistics) {
  const std::lock_guard lock(mutex_);
  const auto found = slots_.find(number);
  if (found == slots_.end()) return MSPROBE_SKIP;
  const DeferredNumbers& numbers = found->second;
  const Measured measured = measured_of(statistics);
  numbers.slot->text.clear();
  append_numbers(numbers.slot->text, numbers.level, numbers.kind, rules_, &measured);
  numbers.slot->filled = true;
  slots_.erase(found);
  if (!step_) return MSPROBE_SKIP;
  step_->changed = true;
  return write_if_due();
}

msprobe_status Session::save_tensor(std::uint64_t serial, const std::string& name, const TensorView& view) {
  std::string folder;
  {
    const std::lock_guard lock(mutex_);
    if (!step_ || serial != serial_) return MSPROBE_SKIP;
    folder = step_->folder();
  }
  queue_.write(folder + "/dump_tensor_data/" + name, view);
  return MSPROBE_OK;
}

}  // namespace msprobe::collector
