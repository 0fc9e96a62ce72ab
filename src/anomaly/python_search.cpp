// SPDX-License-Identifier: Apache-2.0
// The Python tool's way to search, mistakes included (docs/differences.md, N1 to N9).
#include <algorithm>
#include <map>
#include <set>

#include "anomaly/search.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::anomaly {
namespace {

using dump::CommCall;
using dump::GroupState;
using dump::kDst;
using dump::kNoRank;
using dump::kSrc;
using dump::RankArgument;

enum class Role : std::uint8_t { link, source, destination };

const std::set<std::string, std::less<>> kNamesSource = {"recv", "irecv", "recv_object_list", "broadcast",
                                                         "scatter"};
const std::set<std::string, std::less<>> kNamesDestination = {"send", "isend", "send_object_list", "gather"};

bool is_directed(std::string_view operation) {
  return kNamesSource.contains(operation) || kNamesDestination.contains(operation);
}

Role opposite(Role role) {
  if (role == Role::link) return role;
  return role == Role::source ? Role::destination : Role::source;
}

struct Node {
  std::size_t rank = 0;   // index
  std::size_t index = 0;  // in the chain of its rank
  const CommNode* comm = nullptr;
  std::string count;
  Role role = Role::link;
  std::uint32_t layer = 0;
  bool connected = false;
  bool resolved = false;               // partners are known
  std::vector<std::int64_t> partners;  // ranks, sorted
  std::vector<std::size_t> edges;
  std::vector<const Suspect*> compute;
  bool pruned = false;

  bool has_bad() const { return comm->bad.arguments != 0 || comm->bad.outputs != 0; }
  bool is_anomaly() const { return comm->bad.inputs == 0 && comm->bad.outputs != 0; }
};

struct Candidate {
  std::size_t rank = 0;
  const Suspect* compute = nullptr;
  const CommNode* comm = nullptr;
  std::uint32_t layer = 0;
  std::uint32_t sub_layer = 0;
};

class PythonSearch {
 public:
  PythonSearch(const std::vector<RankInput>& ranks, const Tell& tell) : ranks_(ranks), tell_(tell) {}

  std::vector<Root> run() {
    tell_(Remark::progress, "Start searching anomaly node before communication.");
    std::vector<Root> roots;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const RankScan& scan = ranks_[r].scan;
      if (scan.entries == 0)
        tell_(Remark::warning, "Rank " + std::to_string(ranks_[r].number) + " has no dump data!");
      if (!scan.suspects.empty() && scan.suspects[0].interval == 0)
        roots.push_back(root_of(r, scan.suspects[0], Phase::before));
    }
    if (!roots.empty()) return roots;
    tell_(Remark::progress, "Start searching anomaly node during communication.");
    make_nodes();
    connect();
    prune();
    search(roots);
    if (!roots.empty()) return roots;
    tell_(Remark::progress, "Start searching anomaly node after communication.");
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const RankScan& scan = ranks_[r].scan;
      const auto behind = std::ranges::find_if(
          scan.suspects, [&](const Suspect& suspect) { return suspect.interval == scan.comms.size(); });
      if (!scan.comms.empty() && behind != scan.suspects.end())
        roots.push_back(root_of(r, *behind, Phase::after));
    }
    return roots;
  }

 private:
  static Root root_of(std::size_t rank, const Suspect& suspect, Phase phase) {
    Root root;
    root.rank = rank;
    root.phase = phase;
    root.entry = suspect.place;
    root.inputs = suspect.inputs;
    root.outputs = suspect.outputs;
    root.sub_layer = suspect.sub_layer;
    return root;
  }

  std::string id(const Node& node) const {
    return std::to_string(ranks_[node.rank].number) + "." + node.comm->place.name;
  }

  [[noreturn]] void fail(const Node& node, const std::string& python) const {
    throw FormatError(display(ranks_[node.rank].json),
                      display(node.comm->place.name) + ": the Python tool fails here: " + python);
  }

  void make_nodes() {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      first_.push_back(nodes_.size());
      const RankScan& scan = ranks_[r].scan;
      auto suspect = scan.suspects.begin();
      for (std::size_t i = 0; i < scan.comms.size(); ++i) {
        Node node;
        node.rank = r;
        node.index = i;
        node.comm = &scan.comms[i];
        node.layer = static_cast<std::uint32_t>(i);
        node.count = call_count(node);
        node.role = resolve_role(node);
        for (; suspect != scan.suspects.end() && suspect->interval <= i; ++suspect)
          node.compute.push_back(&*suspect);
        nodes_.push_back(std::move(node));
      }
    }
    first_.push_back(nodes_.size());
  }

  std::string call_count(const Node& node) const {
    const std::string& name = node.comm->place.name;
    std::size_t at = 0;
    std::size_t dots[3];
    for (std::size_t& dot : dots) {
      dot = name.find('.', at);
      if (dot == std::string::npos)
        throw FormatError(display(ranks_[node.rank].json), "invalid op_name: " + display(name));
      at = dot + 1;
    }
    return name.substr(dots[1] + 1, dots[2] - dots[1] - 1);
  }

  Role resolve_role(const Node& node) const {
    const CommCall& call = node.comm->call;
    const std::int64_t own = ranks_[node.rank].number;
    for (const Role named : {Role::source, Role::destination}) {
      const std::size_t first = named == Role::source ? kSrc : kDst;
      for (std::size_t k = first; k < first + 2; ++k) {
        const RankArgument& argument = call.keywords[k];
        if (argument.state == RankArgument::State::no_object)
          fail(node, "a keyword argument has no attribute 'get'");
        if (argument.state == RankArgument::State::absent || argument.state == RankArgument::State::empty)
          continue;
        return argument.is_rank() && argument.value == own ? named : opposite(named);
      }
    }
    if (!is_directed(node.comm->operation)) return Role::link;
    if (!call.odd_argument.empty())
      fail(node, "AttributeError: '" + call.odd_argument + "' object has no attribute 'get'");
    if (call.integers.empty()) return Role::link;
    const Role named = kNamesSource.contains(node.comm->operation) ? Role::source : Role::destination;
    return call.integers[0] == own ? named : opposite(named);
  }

  const std::vector<std::int64_t>& partners(Node& node) const {
    if (node.resolved) return node.partners;
    node.resolved = true;
    const CommCall& call = node.comm->call;
    for (const std::size_t first : {kDst, kSrc}) {
      for (std::size_t k = first; k < first + 2; ++k) {
        const RankArgument& argument = call.keywords[k];
        if (argument.state == RankArgument::State::absent) continue;
        if (argument.is_rank()) node.partners.push_back(argument.value);
        if (argument.state == RankArgument::State::other) node.partners.push_back(kNoRank);
        break;
      }
    }
    if (node.partners.empty()) node.partners = call.integers;
    if (call.group == GroupState::no_object) fail(node, "AttributeError: 'group' has no attribute 'get'");
    if (call.group == GroupState::without_ranks) fail(node, "TypeError: 'NoneType' object is not iterable");
    if (call.group == GroupState::ranks)
      node.partners.insert(node.partners.end(), call.group_ranks->begin(), call.group_ranks->end());
    std::ranges::sort(node.partners);
    node.partners.erase(std::unique(node.partners.begin(), node.partners.end()), node.partners.end());
    return node.partners;
  }

  /// The nodes of a rank by API, in chain order; one with the API and count of another takes its place.
  using Index = std::map<std::string, std::vector<std::size_t>, std::less<>>;

  std::vector<Index> make_index() const {
    std::vector<Index> index(ranks_.size());
    std::vector<std::map<std::pair<std::string, std::string>, std::size_t>> slots(ranks_.size());
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      const Node& node = nodes_[n];
      std::vector<std::size_t>& list = index[node.rank][node.comm->operation];
      const auto [slot, inserted] =
          slots[node.rank].try_emplace({node.comm->operation, node.count}, list.size());
      if (inserted) {
        list.push_back(n);
      } else {
        list[slot->second] = n;
      }
    }
    return index;
  }

  void connect() {
    const std::vector<Index> index = make_index();
    std::map<std::int64_t, std::size_t> rank_index;
    for (std::size_t r = 0; r < ranks_.size(); ++r) rank_index.emplace(ranks_[r].number, r);
    for (std::size_t r = 0; r + 1 < ranks_.size(); ++r) {
      std::set<std::size_t> seen;
      for (std::size_t n = first_[r]; n < first_[r + 1]; ++n) {
        std::vector<std::size_t> others;
        const std::vector<std::int64_t>& expected = partners(nodes_[n]);
        for (const std::int64_t number : expected) {
          const auto found = rank_index.find(number);
          if (found != rank_index.end() && found->second > r) others.push_back(found->second);
        }
        if (expected.empty()) {
          for (std::size_t other = r + 1; other < ranks_.size(); ++other) others.push_back(other);
        }
        bool found = nodes_[n].connected;
        for (const std::size_t other : others) found = join_first(n, index[other], seen) || found;
        if (!found)
          tell_(Remark::progress,
                "Cannot find connected communication node for \"" + display(id(nodes_[n])) + "\".");
      }
    }
  }

  /// Joins the first fitting node of another rank.
  bool join_first(std::size_t n, const Index& index, std::set<std::size_t>& seen) {
    Node& node = nodes_[n];
    const auto list = index.find(dump::partner_operation(node.comm->operation));
    if (list == index.end()) return false;
    const std::int64_t own = ranks_[node.rank].number;
    for (const std::size_t other : list->second) {
      Node& candidate = nodes_[other];
      if (seen.contains(other) || candidate.role != opposite(node.role)) continue;
      const std::vector<std::int64_t>& expected = partners(candidate);
      const bool any = expected.empty() && !is_directed(candidate.comm->operation);
      if (!any && !std::binary_search(expected.begin(), expected.end(), own)) continue;
      seen.insert(other);
      candidate.layer = node.layer;
      node.connected = candidate.connected = true;
      node.edges.push_back(other);
      candidate.edges.push_back(n);
      return true;
    }
    return false;
  }

  void prune() {
    std::string removed;
    for (Node& node : nodes_) {
      node.pruned = !node.has_bad() && node.compute.empty();
      if (node.pruned) removed += (removed.empty() ? "" : ", ") + id(node);
    }
    tell_(Remark::detail, "After pruning, following nodes are removed: [" + display(removed) + "]");
  }

  /// All that can be reached from a node over its edges, by rank and place in the chain.
  std::vector<std::size_t> members(std::size_t start) const {
    std::set<std::size_t> found{start};
    std::vector<std::size_t> open{start};
    while (!open.empty()) {
      const std::size_t n = open.back();
      open.pop_back();
      for (const std::size_t other : nodes_[n].edges) {
        if (!nodes_[other].pruned && found.insert(other).second) open.push_back(other);
      }
    }
    return {found.begin(), found.end()};
  }

  void judge_group(const std::vector<std::size_t>& group, std::vector<Candidate>& candidates) const {
    for (const std::size_t n : group) {
      const Node& node = nodes_[n];
      if (node.role == Role::destination || node.comm->bad.arguments == 0) continue;
      for (const Suspect* suspect : node.compute)
        candidates.push_back({node.rank, suspect, nullptr, node.layer, suspect->sub_layer});
    }
    for (const std::size_t n : group) {
      const Node& node = nodes_[n];
      if (node.is_anomaly())
        candidates.push_back({node.rank, nullptr, node.comm, node.layer, node.comm->sub_layer});
    }
  }

  void search(std::vector<Root>& roots) const {
    std::vector<std::vector<std::size_t>> queues(ranks_.size());
    std::vector<std::size_t> heads(ranks_.size(), 0);
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      if (!nodes_[n].pruned) queues[nodes_[n].rank].push_back(n);
    }
    for (auto& queue : queues) {
      std::ranges::stable_sort(
          queue, [&](std::size_t a, std::size_t b) { return nodes_[a].layer < nodes_[b].layer; });
    }
    std::set<std::size_t> seen;
    for (bool any = true; any;) {
      any = false;
      std::vector<std::vector<std::size_t>> groups;
      std::set<std::size_t> grouped;
      for (std::size_t r = 0; r < queues.size(); ++r) {
        while (heads[r] < queues[r].size() && seen.contains(queues[r][heads[r]])) ++heads[r];
        if (heads[r] == queues[r].size()) continue;
        any = true;
        const std::size_t n = queues[r][heads[r]++];
        if (!groups.empty() && !grouped.contains(n)) continue;
        groups.push_back(members(n));
        grouped.insert(groups.back().begin(), groups.back().end());
      }
      std::vector<Candidate> candidates;
      for (const auto& group : groups) {
        seen.insert(group.begin(), group.end());
        judge_group(group, candidates);
      }
      if (candidates.empty()) continue;
      const Candidate& first =
          *std::ranges::min_element(candidates, [](const Candidate& a, const Candidate& b) {
            return std::pair(a.layer, a.sub_layer) < std::pair(b.layer, b.sub_layer);
          });
      roots.push_back(to_root(first));
      return;
    }
  }

  static Root to_root(const Candidate& candidate) {
    Root root;
    if (candidate.compute != nullptr) {
      root = root_of(candidate.rank, *candidate.compute, Phase::during);
    } else {
      root.rank = candidate.rank;
      root.kind = RootKind::communication;
      root.phase = Phase::during;
      root.entry = candidate.comm->place;
      root.outputs = candidate.comm->bad.outputs;
    }
    root.layer = candidate.layer;
    root.sub_layer = candidate.sub_layer;
    return root;
  }

  const std::vector<RankInput>& ranks_;
  const Tell& tell_;
  std::vector<Node> nodes_;
  std::vector<std::size_t> first_;  // of each rank in nodes_
};

}  // namespace

std::vector<Root> search_as_python(const std::vector<RankInput>& ranks, const Tell& tell) {
  return PythonSearch(ranks, tell).run();
}

}  // namespace msprobe::anomaly
