// SPDX-License-Identifier: Apache-2.0
#include "compare/sinks/data_mapping.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <unordered_map>
#include <unordered_set>

#include "compare/dump_tree/rank_rows.hpp"
#include "compare/sinks/advice.hpp"
#include "compare/sinks/tables.hpp"
#include "dump/names.hpp"
#include "dump/side.hpp"
#include "pairing/mapping_file.hpp"
#include "pairing/names.hpp"
#include "support/log.hpp"
#include "tensor/dtype.hpp"

namespace msprobe::compare {
namespace {

using dump::Api;
using dump::Side;
using pairing::kUnmatched;

/// An entry without any partner, and the facts that distinguish it.
struct LooseEntry {
  std::uint32_t api = 0;
  std::string signature;  // direction, and suffix, shape and kind of each row
  std::string_view call;
  std::string base;
};

std::string_view suffix_of(const Side& side, const dump::Item& item) {
  const std::string_view entry = side.text(side.apis[item.api].name);
  const std::string_view name = side.name(item);
  return name.starts_with(entry) ? name.substr(entry.size()) : name;
}

/// torch.float32 and BFloat16 are of one kind; each other text is a separate kind.
std::string kind_of(std::string_view dtype) {
  if (!tensor::dtype_from_name(dtype)) return std::string(dtype);
  const std::string_view name = dtype.substr(dtype.starts_with("torch.") ? 6 : 0);
  const char first = name.empty() ? '?' : static_cast<char>(name.front() | 0x20);
  const bool number = first == 'i' || first == 'u';
  return number ? "integer" : name == "bool" || name == "Bool" ? "bool" : first == 'c' ? "complex" : "float";
}

std::vector<LooseEntry> loose_entries(const Side& side, const std::vector<bool>& used) {
  const pairing::NameMapping no_table;
  std::vector<LooseEntry> list;
  for (std::uint32_t i = 0; i < side.apis.size(); ++i) {
    const Api& api = side.apis[i];
    if (used[i] || api.count == 0) continue;
    const std::string_view name = side.text(api.name);
    const auto parsed = dump::parse_entry_name(name);
    if (!parsed) continue;
    LooseEntry loose{i, {}, parsed->call, pairing::to_pytorch(parsed->base, no_table)};
    loose.signature = std::to_string(static_cast<int>(parsed->direction));
    for (const std::uint32_t k : api.items()) {
      const dump::Item& item = side.items[k];
      loose.signature += '\n';
      loose.signature += suffix_of(side, item);
      loose.signature += '\t';
      loose.signature += side.text(item.shape);
      loose.signature += '\t';
      loose.signature += kind_of(side.text(item.dtype));
    }
    list.push_back(std::move(loose));
  }
  return list;
}

std::string_view last_parts(std::string_view base, int count) {
  std::size_t at = base.size();
  if (count == 0) return {};
  for (; count > 0 && at != std::string_view::npos; --count)
    at = at == 0 ? std::string_view::npos : base.rfind('.', at - 1);
  return at == std::string_view::npos ? base : base.substr(at + 1);
}

/// The longest subsequence of pairs with rising golden places.
std::vector<std::pair<std::size_t, std::size_t>> rising(
    const std::vector<std::pair<std::size_t, std::size_t>>& pairs) {
  constexpr std::size_t kNoPlace = static_cast<std::size_t>(-1);
  std::vector<std::size_t> tails;  // by length: the pair that ends the lowest sequence
  std::vector<std::size_t> before(pairs.size(), kNoPlace);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto at =
        std::lower_bound(tails.begin(), tails.end(), pairs[i].second,
                         [&](std::size_t tail, std::size_t place) { return pairs[tail].second < place; });
    if (at != tails.begin()) before[i] = *(at - 1);
    if (at == tails.end()) {
      tails.push_back(i);
    } else {
      *at = i;
    }
  }
  std::vector<std::pair<std::size_t, std::size_t>> out;
  for (std::size_t i = tails.empty() ? kNoPlace : tails.back(); i != kNoPlace; i = before[i])
    out.push_back(pairs[i]);
  std::reverse(out.begin(), out.end());
  return out;
}

/// Pairs entries in several passes, from strict to lenient.
class Proposer {
 public:
  Proposer(const std::vector<LooseEntry>& target, const std::vector<LooseEntry>& golden)
      : target_(target), golden_(golden), partner_(target.size(), kUnmatched), used_(golden.size(), false) {}

  /// For each entry of `target`, the place of its partner among `golden`, or kUnmatched.
  const std::vector<std::uint32_t>& run() {
    // First pairs modules that share three parts of their path under another root, then two parts; then the
    // same class or operation; then any similar entry.
    for (const int parts : {3, 2, 1, 0}) {
      pass([&](const LooseEntry& one) {
        const std::string_view call = parts > 1 ? one.call : std::string_view();
        return fmt::format("{}\n{}\n{}", last_parts(one.base, parts), call, one.signature);
      });
    }
    return partner_;
  }

 private:
  template <typename MakeKey>
  void pass(MakeKey&& key) {
    std::unordered_map<std::string, std::vector<std::size_t>> waiting;
    for (std::size_t i = golden_.size(); i-- > 0;) {
      if (!used_[i]) waiting[key(golden_[i])].push_back(i);
    }
    std::vector<std::pair<std::size_t, std::size_t>> pairs;
    for (std::size_t i = 0; i < target_.size(); ++i) {
      if (partner_[i] != kUnmatched) continue;
      const auto found = waiting.find(key(target_[i]));
      if (found == waiting.end() || found->second.empty()) continue;
      pairs.emplace_back(i, found->second.back());
      found->second.pop_back();
    }
    for (const auto& [i, g] : rising(pairs)) {
      partner_[i] = static_cast<std::uint32_t>(g);
      used_[g] = true;
    }
  }

  const std::vector<LooseEntry>& target_;
  const std::vector<LooseEntry>& golden_;
  std::vector<std::uint32_t> partner_;
  std::vector<bool> used_;
};

class MappingProposal final : public KeepingSink<NamePairs> {
 public:
  MappingProposal(const std::string& path, Existing existing) : path_(path), existing_(existing) {}

  void begin(const TaskPlan& plan) override {
    check_output(path_, existing_);
    KeepingSink::begin(plan);
  }
  void take(std::size_t task, const std::shared_ptr<const Rows>& rows, TaskSummary& /*summary*/) override {
    kept_[task] = suggest_pairs(rows->of_entries()->result());
  }
  void end(CompareReport& report) override {
    if (write_suggestion(kept_, path_, existing_)) {
      report.tasks.front().files.push_back(path_);
    } else {
      log_warning("--suggest-mapping: nothing to suggest, no file written");
    }
  }

 private:
  std::string path_;
  Existing existing_;
};

void write_data_mapping(const verdict::RankResult& result, const std::string& path) {
  OutputFile file(path);
  std::string text;
  std::unordered_set<std::string_view> written;
  for (const pairing::Pair& row : result.rows) {
    if (!row.has_target()) continue;
    const std::string_view name = result.target.name(result.target_item(row));
    if (!written.insert(name).second) continue;
    const std::uint32_t golden = row.has_golden() ? row.golden : row.candidate;
    pairing::append_mapping_line(
        text, name,
        golden == kUnmatched ? std::string_view("N/A") : result.golden.name(result.golden.items[golden]));
    constexpr std::size_t kWritten = std::size_t{1} << 20;
    if (text.size() < kWritten) continue;
    file.write(text);
    text.clear();
  }
  file.write(text);
  file.commit();
}

class DataMapping final : public Sink {
 public:
  DataMapping(const std::string& directory, const std::string& time) : directory_(directory), time_(time) {}

  void begin(const TaskPlan& plan) override { plan_ = &plan; }
  void take(std::size_t index, const std::shared_ptr<const Rows>& rows, TaskSummary& summary) override {
    const std::string path = result_stem(directory_, plan_->tasks[index], "data_mapping", time_) + ".yaml";
    create_directories(std::filesystem::path(path).parent_path().string());
    write_data_mapping(rows->of_entries()->result(), path);
    summary.files.push_back(path);
  }

 private:
  std::string directory_;
  std::string time_;
  const TaskPlan* plan_ = nullptr;
};

}  // namespace

NamePairs suggest_pairs(const verdict::RankResult& result) {
  const Side& target = result.target;
  const Side& golden = result.golden;
  NamePairs pairs;
  for (const pairing::Pair& row : result.rows) {
    if (!row.matched()) continue;
    const std::string_view from = target.name(result.target_item(row));
    const std::string_view to = golden.name(result.golden_item(row));
    if (from != to) pairs.emplace_back(from, to);
  }
  const PairedEntries paired = paired_entries(result);
  const std::vector<LooseEntry> from = loose_entries(target, paired.target);
  const std::vector<LooseEntry> to = loose_entries(golden, paired.golden);
  Proposer proposer(from, to);
  const std::vector<std::uint32_t>& partners = proposer.run();
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (partners[i] == kUnmatched) continue;
    // Equal signatures mean that the rows agree in number and order.
    const Api& a = target.apis[from[i].api];
    const Api& b = golden.apis[to[partners[i]].api];
    for (std::uint32_t k = 0; k < std::min(a.count, b.count); ++k)
      pairs.emplace_back(target.name(target.items[a.first + k]), golden.name(golden.items[b.first + k]));
  }
  return pairs;
}

bool write_suggestion(const std::vector<NamePairs>& ranks, const std::string& path, Existing existing) {
  std::unordered_set<std::string_view> written;
  std::string text = "# Suggested by `msprobe compare --suggest-mapping`; review it, then use it with -dm.\n";
  for (const NamePairs& pairs : ranks) {
    for (const auto& [from, to] : pairs) {
      if (written.insert(from).second) pairing::append_mapping_line(text, from, to);
    }
  }
  if (written.empty()) return false;
  OutputFile file(path, existing);
  file.write(text);
  file.commit();
  return true;
}

std::unique_ptr<Sink> mapping_proposal_sink(const std::string& path, Existing existing) {
  return std::make_unique<MappingProposal>(path, existing);
}

std::unique_ptr<Sink> data_mapping_sink(const std::string& directory, const std::string& time) {
  return std::make_unique<DataMapping>(directory, time);
}

}  // namespace msprobe::compare
