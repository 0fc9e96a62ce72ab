// SPDX-License-Identifier: Apache-2.0
#include "anomaly/details.hpp"

#include <optional>

#include "dump/construct_json.hpp"
#include "dump/member_stream.hpp"
#include "dump/stack_json.hpp"
#include "support/error.hpp"

namespace msprobe::anomaly {
namespace {

using dump::Entry;
using dump::NodeKind;

/// Runs `read`; the error of a missing or broken file goes into `problems`.
template <typename Read>
auto lenient(std::vector<std::string>& problems, Read&& read) -> std::optional<decltype(read())> {
  try {
    return read();
  } catch (const Error& error) {
    problems.emplace_back(error.what());
  }
  return std::nullopt;
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
  // Only forward entries have call stacks in the dump.
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

std::vector<RootDetails> read_details(const RankInput& rank, const std::vector<ScannedEntry>& places,
                                      std::vector<std::string>& problems) {
  std::vector<RootDetails> result(places.size());
  const auto file = open_file(rank.json);
  const auto construct = lenient(
      problems, [&] { return dump::read_construct_json(*open_file(rank.directory + "/construct.json")); });
  const auto stacks =
      lenient(problems, [&] { return dump::read_stack_json(*open_file(rank.directory + "/stack.json")); });
  for (std::size_t i = 0; i < places.size(); ++i) {
    const ScannedEntry& place = places[i];
    RootDetails& details = result[i];
    dump::read_entry_at(*file, place.offset, place.size, details.entry, place.name);
    if (construct) details.construct = construct->chain(place.name);
    no_stack(details);
    if (stacks) find_stack(*stacks, place.name, details);
  }
  return result;
}

}  // namespace msprobe::anomaly
