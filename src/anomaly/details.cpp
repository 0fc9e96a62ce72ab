// SPDX-License-Identifier: Apache-2.0
#include "anomaly/details.hpp"

#include <optional>

#include "dump/construct_json.hpp"
#include "dump/member_stream.hpp"
#include "dump/stack_json.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::anomaly {
namespace {

using dump::Entry;
using dump::NodeKind;

/// Runs `read`; a file that is missing or broken is one of the problems, unless it is needed.
template <typename Read>
auto lenient(bool needed, std::vector<std::string>& problems, Read&& read)
    -> std::optional<decltype(read())> {
  try {
    return read();
  } catch (const Error& error) {
    if (needed) throw;
    problems.emplace_back(error.what());
  }
  return std::nullopt;
}

/// Does the first element of a value of stack.json name the entry, as Python's `in` has it?
bool names_entry(const Entry& value, Entry::Index first, std::string_view entry, const std::string& file) {
  if (value.is(first, NodeKind::string)) return value.text(first).find(entry) != std::string_view::npos;
  if (!value.is(first, NodeKind::array) && !value.is(first, NodeKind::object))
    throw FormatError(display(file), "the first element of a value is neither text nor a list");
  bool found = false;
  const bool object = value.is(first, NodeKind::object);
  value.children(first, [&](Entry::Index item) {
    found = found || (object                             ? value.key(item)
                      : value.is(item, NodeKind::string) ? value.text(item)
                                                         : "") == entry;
  });
  return found;
}

/// The first value of stack.json that lists the entry, its second element (docs/differences.md, N11).
void find_stack_as_python(const std::string& path, std::string_view entry, RootDetails& details) {
  const auto file = open_file(path);
  dump::MemberStream stream(*file);
  stream.enter();
  std::string key;
  bool found = false;
  Entry value;
  while (stream.next(key)) {
    if (found) {
      stream.skip();
      continue;
    }
    stream.entry(value, key);
    if (!value.is(0, NodeKind::array)) {
      throw FormatError(display(path), "Unsupported type: The value's type in stack.json should be a list (" +
                                           display(key) + ")");
    }
    std::vector<Entry::Index> elements;
    value.children(0, [&](Entry::Index item) { elements.push_back(item); });
    if (elements.size() < 2 || !names_entry(value, elements[0], entry, path)) continue;
    found = true;
    value.keep();
    details.stack = value;
    details.stack_node = elements[1];
    value.children(elements[1], [&](Entry::Index frame) {
      if (value.is(frame, NodeKind::string)) details.frames.emplace_back(value.text(frame));
    });
  }
}

void no_stack(RootDetails& details) {
  details.stack.clear();
  details.stack.close(details.stack.open(NodeKind::object));
  details.stack_node = 0;
}

void find_stack(const dump::StackTable& table, const std::string& entry, RootDetails& details) {
  const dump::StackTable::Frames* frames = table.find(entry);
  if (frames != nullptr) {
    details.frames = *frames;
    details.stack.clear();
    const Entry::Index list = details.stack.open(NodeKind::array);
    for (const std::string& frame : *frames) details.stack.add_scalar(NodeKind::string, frame);
    details.stack.close(list);
    return;
  }
  // Only forward entries have a stack of their own.
  std::string forward = entry;
  const std::size_t at = forward.rfind("backward");
  if (at == std::string::npos) return;
  forward.replace(at, 8, "forward");
  if (frames = table.find(forward); frames != nullptr) {
    details.frames = *frames;
    details.frames_of_forward = true;
  }
}

}  // namespace

std::vector<RootDetails> read_details(const RankInput& rank, const std::vector<EntryPlace>& places,
                                      const Traits& traits, std::vector<std::string>& problems) {
  std::vector<RootDetails> result(places.size());
  const auto file = open_file(rank.json);
  const bool needed = traits.needs_all_files;
  const auto construct = lenient(needed, problems, [&] {
    return dump::read_construct_json(*open_file(rank.directory + "/construct.json"));
  });
  std::optional<dump::StackTable> stacks;
  if (!needed)
    stacks = lenient(needed, problems,
                     [&] { return dump::read_stack_json(*open_file(rank.directory + "/stack.json")); });
  for (std::size_t i = 0; i < places.size(); ++i) {
    const EntryPlace& place = places[i];
    RootDetails& details = result[i];
    dump::read_entry_at(*file, place.offset, place.size, details.entry, place.name);
    if (construct) details.construct = construct->chain(place.name);
    no_stack(details);
    if (needed) find_stack_as_python(rank.directory + "/stack.json", place.name, details);
    if (stacks) find_stack(*stacks, place.name, details);
  }
  return result;
}

}  // namespace msprobe::anomaly
