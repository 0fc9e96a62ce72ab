// SPDX-License-Identifier: Apache-2.0
// A dump.json as the search for bad values reads it, seen as the dumps of two ranks.
#include <cstddef>
#include <cstdint>

#include "anomaly/entry_probe.hpp"
#include "anomaly/levels.hpp"
#include "anomaly/search.hpp"
#include "dump/dump_json.hpp"
#include "fuzz_input.hpp"
#include "fuzz_target.hpp"
#include "support/log.hpp"

namespace msprobe::anomaly {
namespace {

void search(const ByteSource& file, const AnomalyRules& rules) {
  std::vector<RankInput> ranks(2);
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    ranks[r].number = static_cast<std::int64_t>(r);
    ranks[r].scan = scan_rank(file, rules);
  }
  const Tell nobody = [](Remark, const std::string&) {};
  const std::vector<AnomalyRoot> roots = search_roots(ranks, rules, true, nobody);
  search_roots(ranks, rules, false, nobody);
  for (const AnomalyRoot& root : roots) {
    dump::Entry entry;
    dump::read_entry_at(file, root.entry.offset, root.entry.size, entry, root.entry.name);
  }
}

/// The probe knows of an entry what the tree shows.
void compare_probe(const ByteSource& file) {
  dump::read_values(file, [&](dump::MemberStream& stream, std::string_view name) {
    EntryProbe probe;
    const std::string_view text = stream.value(probe);
    if (!probe.known()) return;
    dump::Entry entry;
    dump::build_entry(text, entry, "memory", name);
    const EntryBadness bad = judge_entry(entry, nullptr);
    if (bad.inputs != probe.badness().inputs || bad.outputs != probe.badness().outputs) __builtin_trap();
  });
}

}  // namespace

FUZZ_TARGET(rank_scan)(const std::uint8_t* data, std::size_t size) {
  static const AnomalyRules rules = default_rules();
  set_log_level(LogLevel::quiet);
  const auto file = fuzz_input(data, size);
  unless_refused([&] {
    compare_probe(*file);
    search(*file, rules);
  });
  for (const AnomalyListing listing : {AnomalyListing::levels, AnomalyListing::statistics}) {
    unless_refused([&] { list_entries(*file, listing, rules); });
  }
}

}  // namespace msprobe::anomaly
