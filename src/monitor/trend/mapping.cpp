// SPDX-License-Identifier: Apache-2.0
#include "dump/entry.hpp"
#include "dump/member_stream.hpp"
#include "monitor/trend/trend.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::monitor {

NameMapping read_name_mapping(const std::string& path) {
  using dump::NodeKind;
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 20;
  const dump::Entry entry = dump::read_json(read_all(*open_file(path), kMostBytes), path);
  if (!entry.is(0, NodeKind::object))
    throw FormatError(display(path), "is not an object of names and their replacements");
  NameMapping mapping;
  entry.children(0, [&](dump::Entry::Index child) {
    if (!entry.is(child, NodeKind::string) || entry.key(child).empty())
      throw FormatError(display(path),
                        "'" + display(entry.key(child)) + "' has a replacement that is not text");
    mapping.emplace_back(entry.key(child), entry.text(child));
  });
  return mapping;
}

std::string mapped_name(const NameMapping& mapping, std::string_view name) {
  constexpr std::size_t kMostLetters = std::size_t{64} << 10;
  std::string text(name);
  for (const auto& [from, to] : mapping) {
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
      text.replace(at, from.size(), to);
      if (text.size() > kMostLetters)
        throw FormatError("--mapping: the name '" + display(name.substr(0, 80)) + "' grows beyond 64 KiB");
    }
  }
  return text;
}

}  // namespace msprobe::monitor
