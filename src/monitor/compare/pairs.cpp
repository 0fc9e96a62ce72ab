// SPDX-License-Identifier: Apache-2.0
#include "monitor/compare/pairs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "support/error.hpp"
#include "support/parallel.hpp"
#include "support/progress.hpp"
#include "support/text.hpp"
#include "support/wrapper_names.hpp"

namespace msprobe::monitor {
namespace {

using RankPair = std::pair<const RankFolder*, const RankFolder*>;

bool is_first_layout(const RankFolder& rank) {
  return !rank.time.empty();
}

/// The name without `module.` of DistributedDataParallel at its beginning, and without the parts that other
/// wrappers add anywhere.
std::string plain_name(std::string_view name) {
  std::string plain;
  for (bool first = true; !name.empty();) {
    const std::size_t dot = std::min(name.find('.'), name.size());
    const std::string_view component = name.substr(0, dot);
    name.remove_prefix(std::min(dot + 1, name.size()));
    if (is_wrapper_component(component) || (first && component == "module" && !name.empty())) continue;
    if (!first) plain += '.';
    plain += component;
    first = false;
  }
  return plain;
}

std::string key_of(const Track& track, const std::string& name) {
  std::string key = track.quantity;
  for (const auto& number : {track.stage, track.micro_step})
    key += '/' + (number ? std::to_string(*number) : "");
  return key + '/' + name;
}

template <typename NameOf>
void pair_by(TrackPairs& group, std::vector<bool>& taken, const NameOf& name_of) {
  std::unordered_map<std::string, std::size_t> known;
  for (std::size_t i = 0; i < group.b.tracks.size(); ++i) {
    if (!taken[i]) known.try_emplace(key_of(group.b.tracks[i], name_of(group.b.tracks[i])), i);
  }
  for (auto& [ours, theirs] : group.pairs) {
    if (theirs) continue;
    const auto found = known.find(key_of(group.a.tracks[*ours], name_of(group.a.tracks[*ours])));
    if (found == known.end() || taken[found->second]) continue;
    theirs = found->second;
    taken[found->second] = true;
  }
}

void pair_tracks(TrackPairs& group) {
  std::vector<bool> taken(group.b.tracks.size());
  for (std::size_t i = 0; i < group.a.tracks.size(); ++i) group.pairs.emplace_back(i, std::nullopt);
  pair_by(group, taken, [](const Track& track) { return track.name; });
  if (std::find(taken.begin(), taken.end(), false) != taken.end()) {
    pair_by(group, taken, [](const Track& track) { return plain_name(track.name); });
  }
  for (std::size_t i = 0; i < taken.size(); ++i) {
    if (!taken[i]) group.pairs.emplace_back(std::nullopt, i);
  }
}

/// The prefixes of both runs, without duplicates.
std::vector<std::string> prefixes_of(const RankPair& ranks) {
  std::vector<std::string> prefixes = ranks.first->prefixes();
  if (ranks.second == nullptr) return prefixes;
  if (is_first_layout(*ranks.first) != is_first_layout(*ranks.second)) {
    throw FormatError(
        display(ranks.first->path) + " and " + display(ranks.second->path) +
        " are of TrainerMon and of TrainerMonitorV2, whose names and times of measurement differ");
  }
  for (std::string& prefix : ranks.second->prefixes()) {
    if (std::find(prefixes.begin(), prefixes.end(), prefix) == prefixes.end())
      prefixes.push_back(std::move(prefix));
  }
  return prefixes;
}

/// Without a second run, the second member of each pair is null. `alone` receives the ranks without a
/// partner.
std::vector<RankPair> pair_ranks(const MonitorTree& a, const MonitorTree* b, std::vector<RankPair>& alone) {
  std::vector<RankPair> pairs;
  if (b != nullptr && a.ranks.size() == 1 && b->ranks.size() == 1) return {{&a.ranks[0], &b->ranks[0]}};
  const auto with_number = [](const MonitorTree& tree, std::int64_t number) {
    const auto found =
        std::ranges::find_if(tree.ranks, [&](const RankFolder& rank) { return rank.rank == number; });
    return found == tree.ranks.end() ? nullptr : &*found;
  };
  for (const RankFolder& rank : a.ranks) {
    const RankFolder* partner = b == nullptr ? nullptr : with_number(*b, rank.rank);
    (b != nullptr && partner == nullptr ? alone : pairs).emplace_back(&rank, partner);
  }
  if (b == nullptr) return pairs;
  for (const RankFolder& rank : b->ranks) {
    if (with_number(a, rank.rank) == nullptr) alone.emplace_back(nullptr, &rank);
  }
  return pairs;
}

}  // namespace

std::vector<std::pair<std::size_t, std::size_t>> common_steps(const std::vector<std::int64_t>& a,
                                                              const std::vector<std::int64_t>& b) {
  std::vector<std::pair<std::size_t, std::size_t>> common;
  for (std::size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    if (a[i] == b[k]) common.emplace_back(i, k);
    const bool behind = a[i] <= b[k];
    k += b[k] <= a[i];
    i += behind;
  }
  return common;
}

std::vector<std::string> visit_pairs(const MonitorTree& a, const MonitorTree* b, const TakesStatistic& takes,
                                     Progress* progress, const std::function<void(TrackPairs&)>& visit,
                                     const std::function<void(const LoneRank&)>& visit_alone) {
  std::vector<RankPair> alone;
  const std::vector<RankPair> ranks = pair_ranks(a, b, alone);
  std::vector<std::pair<const RankPair*, std::string>> groups;
  for (const RankPair& pair : ranks) {
    for (std::string& prefix : prefixes_of(pair)) groups.emplace_back(&pair, std::move(prefix));
  }
  if (progress != nullptr) progress->begin("reading series", groups.size(), "groups");
  for (const auto& [pair, prefix] : groups) {
    TrackPairs group;
    group.rank = pair->first->rank;
    group.first_layout = is_first_layout(*pair->first);
    parallel_for(2, [&, ranks_of = pair, which = std::string_view(prefix)](std::size_t side) {
      const RankFolder* rank = side == 0 ? ranks_of->first : ranks_of->second;
      if (rank != nullptr) (side == 0 ? group.a : group.b) = read_tracks(*rank, which, takes);
    });
    pair_tracks(group);
    visit(group);
    if (progress != nullptr) progress->advance();
  }
  if (progress != nullptr) progress->end();
  std::vector<std::string> sentences;
  for (const auto& [in_a, in_b] : alone) {
    const RankFolder& rank = in_a != nullptr ? *in_a : *in_b;
    sentences.push_back(
        fmt::format("rank {} is only in the {} run", rank.rank, in_a != nullptr ? "first" : "second"));
    if (rank.files.empty()) visit_alone({rank.rank, {}});
    for (const std::string& prefix : rank.prefixes())
      visit_alone({rank.rank, read_tracks(rank, prefix, takes)});
  }
  return sentences;
}

}  // namespace msprobe::monitor
