// SPDX-License-Identifier: Apache-2.0
#include "collector/structure.hpp"

#include <algorithm>
#include <atomic>

#include "support/json_writer.hpp"

namespace msprobe::collector {
namespace {

constexpr int kNodeLevel = 1;

/// Numbers threads. The system gives the number of an ended thread to the next one; these are never reused.
std::uint64_t this_thread() {
  static std::atomic<std::uint64_t> count{0};
  thread_local const std::uint64_t number = ++count;
  return number;
}

OpenCall* find_in(Thread& thread, const CollectedCall& call) {
  const auto at = std::find_if(thread.calls.rbegin(), thread.calls.rend(),
                               [&](const OpenCall& open) { return open.call == call; });
  return at == thread.calls.rend() ? nullptr : &*at;
}

}  // namespace

Thread& Structure::thread() {
  return threads_[this_thread()];
}

OpenCall* Structure::find(const CollectedCall& call, Thread*& owner) {
  owner = &thread();
  if (OpenCall* open = find_in(*owner, call)) return open;
  for (auto& [number, other] : threads_) {
    owner = &other;
    if (OpenCall* open = find_in(other, call)) return open;
  }
  return nullptr;
}

Parent Structure::parent_of(const CollectedCall& call, const Thread& thread) const {
  const auto above = std::find_if(thread.calls.rbegin(), thread.calls.rend(),
                                  [](const OpenCall& open) { return open.call.module; });
  if (above != thread.calls.rend()) return Parent::module(above->call.name, above->call.number);
  if (!call.module) return thread.pseudo_parent ? Parent::pseudo(*thread.pseudo_parent) : Parent();
  // The module may run in another thread than the module around it.
  const OpenCall* latest = nullptr;
  const std::string_view wanted = name_of(call.name).parent_path;
  for (const auto& [number, other] : threads_) {
    for (const OpenCall& open : other.calls) {
      if (open.call.module && name_of(open.call.name).path == wanted &&
          (latest == nullptr || open.sequence > latest->sequence)) {
        latest = &open;
      }
    }
  }
  return latest == nullptr ? Parent() : Parent::module(latest->call.name, latest->call.number);
}

void Structure::append_value(std::string& out, const CollectedCall& call, Parent parent) const {
  std::string name;
  if (parent.is_pseudo()) {
    name = name_of(parent.name()).text;
  } else if (!parent.none()) {
    append_entry_name(name, {parent.name(), parent.number(), true, call.backward});
  }
  JsonWriter value({.indent = 1}, kNodeLevel);
  if (micro_step_) value.open_list();
  name.empty() ? value.null() : value.value(name);
  if (micro_step_) {
    value.value(*micro_step_);
    value.close();
  }
  out += value.text();
}

void Structure::add_node(GrowingFile& file, const CollectedCall& call, Parent parent) {
  std::string name;
  if (parent.is_pseudo() && unusual_.insert(name_of(parent.name()).text).second) {
    file.begin_member();
    append_json_string(file.text(), name_of(parent.name()).text);
    file.text() += ": ";
    append_value(file.text(), call, Parent());
  }
  append_entry_name(name, call);
  if (call.backward && !unusual_.insert(name).second) return;
  file.begin_member();
  append_json_string(file.text(), name);
  file.text() += ": ";
  append_value(file.text(), call, parent);
  changed_ = true;
}

std::string Structure::provisional(const GrowingFile& file) const {
  std::string out;
  if (!micro_step_) return out;
  file.begin_provisional(out);
  out += "\"megatron_micro_step_number\": ";
  append_json_integer(out, highest_micro_step_);
  return out;
}

void Structure::set_micro_step(std::uint32_t micro_step) {
  micro_step_ = micro_step;
  highest_micro_step_ = std::max(highest_micro_step_, micro_step);
}

}  // namespace msprobe::collector
