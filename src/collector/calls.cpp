// SPDX-License-Identifier: Apache-2.0
// Handles events: their numbers, places, filters and parents.
#include <array>
#include <utility>

#include "collector/recorder.hpp"

namespace msprobe::collector {
namespace {

CollectedCall call_of(const msprobe_event& event) {
  return {event.name, event.number, event.kind == MSPROBE_KIND_MODULE, event.backward != 0};
}

std::string entry_name(const CollectedCall& call) {
  std::string name;
  append_entry_name(name, call);
  return name;
}

}  // namespace

/// The data that an event needs. `recorded`: the filter accepted the name.
std::uint32_t Recorder::wants_of(const std::string& entry, const CollectedCall& call, bool recorded) const {
  if (config_.calls_again())
    return recorded && !call.module && !call.backward ? std::uint32_t{MSPROBE_WANT_AGAIN} : 0;
  const DataMode& mode = config_.data_mode;
  const bool direction = call.backward ? mode.backward : mode.forward;
  const bool data = recorded && direction && config_.task != Task::structure;
  std::uint32_t wants = 0;
  if (data && mode.input) wants |= MSPROBE_WANT_INPUT;
  if (data && mode.output) wants |= MSPROBE_WANT_OUTPUT;
  if (data && mode.output && call.module && !call.backward) wants |= MSPROBE_WANT_PARAMETERS;
  if (!call.backward) {
    // The filter may accept the backward's own name even if it rejected this one, unless only the kind of API
    // decides.
    const bool by_name = !config_.scope.empty() || !config_.list.empty();
    const bool backward_data = mode.backward && config_.task != Task::structure && (recorded || by_name);
    if (backward_data || config_.has_structure(call.module)) wants |= MSPROBE_WANT_BACKWARD;
    if (recorded && config_.extra_info) wants |= MSPROBE_WANT_STACK;
  }
  if ((wants & (MSPROBE_WANT_INPUT | MSPROBE_WANT_OUTPUT)) == 0) return wants;
  const bool files = config_.wants_files(entry) || keeps_files();
  if (files) wants |= MSPROBE_WANT_FILES;
  if (files || config_.reads_elements()) wants |= MSPROBE_WANT_TENSORS;
  return wants;
}

void Recorder::add_node(const CollectedCall& call, Parent parent) {
  const std::size_t before = step_->construct.text().size();
  step_->structure.add_node(step_->construct, call, parent);
  step_->fresh += step_->construct.text().size() - before;
}

/// Makes an entry. It stays hidden as long as it is unknown whether it is needed.
PendingEntry& Recorder::new_entry(std::string name, bool later) {
  PendingEntry& entry = step_->entries.place(std::move(name), later);
  entry.hidden = config_.task == Task::overflow_check;
  return entry;
}

/// Closes an entry: nothing else is added to it, unless it is held.
void Recorder::close_entry(PendingEntry& entry) {
  step_->entries.close(entry);
  if (!keeps_files()) return;
  const auto found = step_->findings.find(entry.id);
  if (found == step_->findings.end()) {
    if (entry.hidden) entry.members.clear();
    return;
  }
  EntryFacts findings = std::move(found->second);
  step_->findings.erase(found);
  const bool wanted = step_->bench ? step_->bench->differs(entry.name, findings.seen) : findings.nonfinite;
  if (!wanted) {
    if (entry.hidden) entry.members.clear();
    return;
  }
  entry.hidden = false;
  ++wanted_;
  for (auto& [name, copy] : findings.files)
    queue_.write(step_->folder() + "/dump_tensor_data/" + name, std::move(copy));
  const std::int64_t most = step_->bench ? config_.diff_nums : config_.overflow_nums;
  if (most >= 0 && wanted_ >= most) {
    finished_ = true;
    running_ = 0;
  }
}

/// True if tensor files wait until it is known whether their call is of interest.
bool Recorder::keeps_files() const {
  return config_.task == Task::overflow_check || (step_ && step_->bench);
}

msprobe_status Recorder::enter(bool module, std::uint32_t name, msprobe_event& event) {
  if (running_ == 0 || !step_) return MSPROBE_SKIP;
  name_of(name);
  Thread& thread = step_->structure.thread();
  event.name = name;
  event.kind = module ? MSPROBE_KIND_MODULE : MSPROBE_KIND_API;
  event.step = serial_;
  if (!module && thread.api_depth > 0) {
    event.nested = 1;
    event.number = thread.api_depth++;
    return MSPROBE_SKIP;
  }
  event.number = step_->numbers.calls[name]++;

  OpenCall open;
  open.call = call_of(event);
  open.sequence = step_->structure.next_sequence();
  open.api_depth = thread.api_depth;
  const std::string entry = entry_name(open.call);
  const Parent parent = step_->structure.parent_of(open.call, thread);
  event.parent = parent.code();
  if (config_.has_structure(module)) add_node(open.call, parent);
  if (module) filter_->open_module(entry);
  open.recorded = filter_->check(entry);
  event.wants = wants_of(entry, open.call, open.recorded);
  if ((event.wants & (MSPROBE_WANT_INPUT | MSPROBE_WANT_OUTPUT)) != 0) {
    // If the output of a module is recorded, its entry comes after those of its children.
    const bool later = module && (event.wants & MSPROBE_WANT_OUTPUT) != 0;
    event.entry = new_entry(entry, later).id;
  }
  open.entry = event.entry;
  thread.calls.push_back(open);
  if (!module) ++thread.api_depth;
  return event.wants != 0 ? MSPROBE_OK : MSPROBE_SKIP;
}

void Recorder::check_output(OpenCall& open) {
  if (open.output_checked) return;
  open.output_checked = true;
  open.output_recorded = filter_->check(entry_name(open.call));
}

void Recorder::finish_call(OpenCall& open) {
  check_output(open);
  if (open.call.module) filter_->close_module(entry_name(open.call));
  if (PendingEntry* entry = step_->entries.find(open.entry)) close_entry(*entry);
}

msprobe_status Recorder::leave(const msprobe_event& event) {
  if (!step_ || event.step != serial_) return MSPROBE_SKIP;
  if (event.nested != 0) {
    Thread& thread = step_->structure.thread();
    thread.api_depth = std::min(thread.api_depth, event.number);
    return MSPROBE_OK;
  }
  const CollectedCall call = call_of(event);
  if (call.backward) {
    const std::string name = entry_name(call);
    if (call.module) filter_->close_module(name);
    if (PendingEntry* entry = step_->entries.find(event.entry)) close_entry(*entry);
    return write_if_due();
  }
  Thread* owner = nullptr;
  OpenCall* open = step_->structure.find(call, owner);
  if (open == nullptr) return MSPROBE_SKIP;
  // Calls that were entered after it and never left were ended by an exception.
  const auto place = static_cast<std::size_t>(open - owner->calls.data());
  owner->api_depth = open->api_depth;
  while (owner->calls.size() > place) {
    finish_call(owner->calls.back());
    owner->calls.pop_back();
  }
  return write_if_due();
}

msprobe_status Recorder::enter_backward(const msprobe_event& forward, msprobe_event& event) {
  if (!step_ || step_->debug || finished_) return MSPROBE_SKIP;
  name_of(forward.name);
  event.name = forward.name;
  event.number = forward.number;
  event.kind = forward.kind;
  event.step = serial_;
  event.backward = 1;
  const CollectedCall call = call_of(event);
  const std::string name = entry_name(call);
  const Parent above(forward.parent);
  const Parent parent = above.is_pseudo() ? Parent() : above;
  event.parent = parent.code();
  if (config_.has_structure(call.module)) add_node(call, parent);
  if (call.module) filter_->open_module(name);
  event.wants = wants_of(name, call, filter_->check(name));
  if ((event.wants & (MSPROBE_WANT_INPUT | MSPROBE_WANT_OUTPUT)) != 0) {
    // A second backward through the same call replaces the first as long as that can still change.
    std::uint64_t& id = step_->backward_entries[name];
    if (PendingEntry* before = step_->entries.find(id)) {
      before->open = true;
    } else {
      // The entry of a module comes after those of its children, as in the forward.
      const bool later = call.module && (event.wants & MSPROBE_WANT_OUTPUT) != 0;
      id = new_entry(name, later).id;
    }
    event.entry = id;
  }
  return event.wants != 0 ? MSPROBE_OK : MSPROBE_SKIP;
}

msprobe_status Recorder::set_pseudo_parent(const char* name) {
  if (!step_ || config_.level != Level::mix) return MSPROBE_SKIP;
  Thread& thread = step_->structure.thread();
  thread.pseudo_parent.reset();
  if (name != nullptr) thread.pseudo_parent = intern(name);
  return MSPROBE_OK;
}

msprobe_status Recorder::describe_training(std::string_view json) {
  if (!step_ || step_->debug || !records_surroundings()) return MSPROBE_SKIP;
  std::string tail = ",";
  append_json_line(tail, 1, 1);
  step_->data.set_tail(tail + "\"training\": " + std::string(json) + "\n}");
  step_->changed = true;
  return MSPROBE_OK;
}

msprobe_status Recorder::set_micro_step(std::uint32_t micro_step) {
  if (!step_) return MSPROBE_SKIP;
  step_->structure.set_micro_step(micro_step);
  return MSPROBE_OK;
}

msprobe_status Recorder::use_stack(const msprobe_event& event, std::uint64_t key) {
  if (!step_ || event.step != serial_ || (event.wants & MSPROBE_WANT_STACK) == 0) return MSPROBE_OK;
  if (!stacks_.knows(key)) return MSPROBE_SKIP;
  name_of(event.name);
  stacks_.use(key, call_of(event));
  return MSPROBE_OK;
}

msprobe_status Recorder::define_stack(std::uint64_t key, std::vector<std::string> frames) {
  stacks_.define(key, std::move(frames));
  return MSPROBE_OK;
}

msprobe_status Recorder::hold(const msprobe_event& event, bool on) {
  if (!step_ || event.step != serial_) return MSPROBE_SKIP;
  PendingEntry* entry = step_->entries.find(event.entry);
  if (entry == nullptr) return MSPROBE_SKIP;
  if (on) {
    ++entry->holds;
  } else if (entry->holds > 0) {
    --entry->holds;
  }
  return MSPROBE_OK;
}

std::optional<Builder::Target> Recorder::begin_section(const msprobe_event& event, msprobe_section section) {
  if (!step_ || event.step != serial_) return std::nullopt;
  const bool named = section == MSPROBE_NAMED_OUTPUT;
  if (named) section = MSPROBE_OUTPUT;
  const std::uint32_t wanted = section == MSPROBE_OUTPUT       ? MSPROBE_WANT_OUTPUT
                               : section == MSPROBE_PARAMETERS ? MSPROBE_WANT_PARAMETERS
                                                               : MSPROBE_WANT_INPUT;
  if ((event.wants & wanted) == 0) return std::nullopt;
  const PendingEntry* entry = step_->entries.find(event.entry);
  if (entry == nullptr || (!entry->open && entry->holds == 0)) return std::nullopt;
  const CollectedCall call = call_of(event);
  if (section == MSPROBE_BUFFERS && (call.number != 0 || !records_surroundings())) return std::nullopt;
  if (!call.backward && wanted != MSPROBE_WANT_INPUT) {
    Thread* owner = nullptr;
    if (OpenCall* open = step_->structure.find(call, owner)) {
      check_output(*open);
      if (!open->output_recorded) return std::nullopt;
    }
  }
  Builder::Target target = new_target();
  target.entry = event.entry;
  target.place = static_cast<int>(section);
  target.level = 3;
  target.stem = entry->name;
  target.list = section == MSPROBE_INPUT || (section == MSPROBE_OUTPUT && !named);
  target.object = !target.list;
  constexpr std::array<std::string_view, 6> kNames = {"input",      "kwargs", "output",
                                                      "parameters", "output", "buffers"};
  const std::string_view name = kNames[section];
  target.key = section == MSPROBE_KWARGS                    ? "input_kwargs"
               : section == MSPROBE_INPUT && !call.backward ? "input_args"
                                                            : name;
  target.stem += '.';
  target.stem += name;
  target.files = section != MSPROBE_BUFFERS && config_.wants_files(entry->name);
  target.keep_files = keeps_files();
  return target;
}

std::optional<Builder::Target> Recorder::begin_parameter_gradient(std::uint32_t module,
                                                                  std::string_view parameter,
                                                                  std::uint32_t expected) {
  if (!step_ || step_->debug || finished_ || config_.task == Task::structure ||
      !config_.data_mode.parameter_gradients)
    return std::nullopt;
  const std::string base = name_of(module).text + ".parameters_grad.";
  ModuleGradients& gradients = step_->gradients[module];
  const std::string key(parameter);
  if (gradients.first.empty()) {
    gradients.first = key;
  } else if (gradients.first == key) {
    ++gradients.count;
    if (PendingEntry* before = step_->entries.find(gradients.entry)) close_entry(*before);
    gradients.entry = 0;
    gradients.arrived.clear();
  }
  const std::string name = base + std::to_string(gradients.count);
  if (!filter_->check(name)) return std::nullopt;
  PendingEntry* entry = step_->entries.find(gradients.entry);
  if (entry == nullptr) {
    entry = &new_entry(name, false);
    gradients.entry = entry->id;
  }
  gradients.arrived.insert(key);
  Builder::Target target = new_target();
  target.entry = entry->id;
  target.place = static_cast<int>(entry->members.size());
  target.level = 3;
  target.list = true;
  target.key = key;
  target.stem = name + '.' + key;
  target.indexed = false;
  target.files = config_.wants_files(name);
  target.keep_files = keeps_files();
  target.close_entry = expected > 0 && gradients.arrived.size() >= expected;
  return target;
}

}  // namespace msprobe::collector
