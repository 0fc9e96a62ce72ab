// SPDX-License-Identifier: Apache-2.0
#include "precheck/acc_check/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "dump/entry.hpp"
#include "dump/member_stream.hpp"
#include "precheck/calls/operator_policy.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/folder.hpp"
#include "support/text.hpp"

namespace msprobe::precheck {
namespace {

using dump::Entry;
using dump::NodeKind;
using Node = Entry::Index;

constexpr std::uint64_t kMaxConfig = std::uint64_t{1} << 20;
constexpr std::array<std::string_view, 2> kSections{"acc_check", "run_ut"};
// These keys do not affect how operations are called.
constexpr std::array<std::string_view, 2> kSilent{"task", "precision"};
// Keys of the online mode of releases 8.x. A default file has them, too, with is_online false.
constexpr std::array<std::string_view, 7> kOnline{"is_online", "is_benchmark_device", "nfs_path", "host",
                                                  "port",      "rank_list",           "tls_path"};

class CheckConfigReader {
 public:
  CheckConfigReader(const std::string& path, const Entry& entry) : path_(path), entry_(entry) {}

  CheckConfig read(Node section) {
    CheckConfig config;
    std::vector<std::string_view> online;
    entry_.children(section, [&](Node child) {
      const std::string_view key = entry_.key(child);
      if (key == "white_list") {
        read_operation_names(entry_, child, key, path_, config.lists.white);
      } else if (key == "black_list") {
        read_operation_names(entry_, child, key, path_, config.lists.black);
      } else if (key == "error_data_path") {
        folder(child, config);
      } else if (std::find(kOnline.begin(), kOnline.end(), key) != kOnline.end()) {
        online.push_back(key);
      } else if (std::find(kSilent.begin(), kSilent.end(), key) == kSilent.end()) {
        config.warnings.push_back(fmt::format("{}: '{}' is not a key of this section", path_, display(key)));
      }
    });
    if (entry_.flag(section, "is_online"))
      config.warnings.push_back(fmt::format(
          "{}: task acc_check of the recorder judges a running training, or sends it to --listen: no "
          "effect of {}",
          path_, fmt::join(online, ", ")));
    return config;
  }

 private:
  void folder(Node node, CheckConfig& config) const {
    if (!entry_.is(node, NodeKind::string)) throw FormatError(path_, "error_data_path must be text");
    config.error_data_path = entry_.text(node);
    if (!is_folder(config.error_data_path))
      throw FormatError(path_,
                        fmt::format("error_data_path: {} does not exist", display(config.error_data_path)));
  }

  const std::string& path_;
  const Entry& entry_;
};

}  // namespace

void read_operation_names(const Entry& entry, Node list, std::string_view key, const std::string& where,
                          std::set<std::string, std::less<>>& into) {
  const auto fail = [&](const std::string& reason) { throw FormatError(where, reason); };
  if (!entry.is(list, NodeKind::array)) fail(fmt::format("{} must be a list", key));
  entry.children(list, [&](Node child) {
    if (!entry.is(child, NodeKind::string)) fail(fmt::format("{}: every element must be text", key));
    const std::string_view name = entry.text(child);
    if (!listable_names().contains(name)) {
      const std::vector<std::string_view> known(listable_names().begin(), listable_names().end());
      const std::string_view best = nearest_of(known, name, 3);
      fail(fmt::format("{}: '{}' is not an operation that is recorded{}", key, display(name),
                       best.empty() ? "" : fmt::format("; did you mean '{}'?", best)));
    }
    into.emplace(name);
  });
}

CheckConfig read_check_config(const std::string& path, std::string_view section) {
  const Entry entry = dump::read_json(read_all(*open_file(path), kMaxConfig), path);
  if (!entry.is(0, NodeKind::object)) throw FormatError(path, "it is not a JSON object");
  Node found = entry.find(0, section);
  for (const std::string_view other : kSections) {
    if (found == Entry::kNone) found = entry.find(0, other);
  }
  if (found == Entry::kNone) throw FormatError(path, fmt::format("it has no section '{}'", section));
  if (!entry.is(found, NodeKind::object)) throw FormatError(path, "the section is not a JSON object");
  return CheckConfigReader(path, entry).read(found);
}

}  // namespace msprobe::precheck
