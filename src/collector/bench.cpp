// SPDX-License-Identifier: Apache-2.0
#include "collector/bench.hpp"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <system_error>
#include <utility>

#include "dump/dump_json.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::collector {
namespace {

namespace fs = std::filesystem;

/// The folder of the reference: that of the same rank, or the only one for processes without ranks.
std::string reference_folder(const std::string& step_folder, const std::string& leaf) {
  if (!leaf.starts_with("proc")) return step_folder + '/' + leaf;
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator entry(step_folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().filename().string().starts_with("proc")) found.push_back(entry->path().string());
  }
  if (found.size() != 1) throw IoError(display(step_folder), "must contain exactly one folder proc<number>");
  return found[0];
}

using Checksums = std::unordered_map<std::string, std::string>;

/// Adds the checksums of the tensors at and below the node.
void add_checksums(const dump::Entry& entry, dump::Entry::Index node, const std::string& path,
                   Checksums& found) {
  if (const std::string_view md5 = entry.string(node, "md5"); !md5.empty()) {
    found.emplace(path, md5);
    return;
  }
  if (!entry.is_container(node)) return;
  std::size_t index = 0;
  entry.children(node, [&](dump::Entry::Index child) {
    const std::string last =
        entry.is(node, dump::NodeKind::array) ? std::to_string(index++) : std::string(entry.key(child));
    add_checksums(entry, child, path.empty() ? last : path + '.' + last, found);
  });
}

}  // namespace

Bench::Bench(const std::string& path, const std::string& step, const std::string& leaf) {
  const std::string file = reference_folder(path + '/' + step, leaf) + "/dump.json";
  dump::read_dump_json(*open_file(file), [&](std::string_view name, const dump::Entry& entry) {
    Checksums checksums;
    add_checksums(entry, 0, {}, checksums);
    entries_.insert_or_assign(std::string(name), std::move(checksums));
  });
}

bool Bench::differs(const std::string& entry, const std::vector<SeenTensor>& seen) const {
  const auto found = entries_.find(entry);
  if (found == entries_.end()) return false;
  return std::ranges::any_of(seen, [&](const SeenTensor& tensor) {
    const auto wanted = found->second.find(tensor.path);
    return wanted != found->second.end() && wanted->second != tensor.md5;
  });
}

}  // namespace msprobe::collector
