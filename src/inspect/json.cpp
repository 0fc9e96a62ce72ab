// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <optional>
#include <unordered_map>
#include <utility>

#include "inspect/facts.hpp"
#include "support/json_writer.hpp"

namespace msprobe::inspect {
namespace {

/// The text is written in pieces, since it may be much longer than the file.
class JsonReport : public JsonWriter {
 public:
  using Write = std::function<void(const std::string&)>;

  // Bytes in names that are not UTF-8 are dropped: readers of JSON refuse anything else.
  explicit JsonReport(const Write& write)
      : JsonWriter({.indent = 2, .text = JsonText::utf8}), write_(write) {}

  void hand_on() {
    constexpr std::size_t kPiece = std::size_t{64} << 10;
    if (mark().size >= kPiece) write_(take());
  }

 private:
  const Write& write_;
};

/// JSON has no words for NaN and infinity; msprobe's other results spell them in this way, too.
void number(JsonWriter& json, std::string_view name, double value) {
  if (std::isfinite(value)) {
    json.member(name, value);
  } else {
    json.member(name, std::isnan(value) ? "Nan" : value < 0 ? "-inf" : "inf");
  }
}

void write(JsonWriter& json, const tensor::Statistics& statistics,
           const std::optional<formats::IntegerRange>& range) {
  json.open_object();
  if (range) {
    json.key("max");
    json.raw(range->max);
    json.key("min");
    json.raw(range->min);
  } else {
    number(json, "max", statistics.max);
    number(json, "min", statistics.min);
  }
  number(json, "mean", statistics.mean());
  number(json, "norm", statistics.norm());
  json.member("nan", statistics.nan);
  json.member("pos_inf", statistics.pos_inf);
  json.member("neg_inf", statistics.neg_inf);
  json.member("zero", statistics.zero);
  json.member("denormal", statistics.denormal);
  json.close();
}

void write(JsonWriter& json, const TensorFacts& tensor) {
  json.open_object();
  json.member("name", tensor.name);
  if (!tensor.dtype.empty()) {
    json.member("dtype", tensor.dtype);
    json.member("shape", tensor.shape);
  }
  if (!tensor.problem.empty()) {
    json.member("problem", tensor.problem);
    json.close();
    return;
  }
  if (!tensor.whole.empty()) {
    json.member("part_of", tensor.whole);
    json.member("part_begins_at", tensor.begin);
  }
  json.member("strides", tensor.strides);
  json.member("offset", tensor.offset);
  json.member("elements", tensor.elements);
  json.member("bytes", tensor.bytes);
  if (tensor.big_endian) json.member("big_endian", true);
  if (tensor.conjugate) json.member("conjugate", true);
  if (tensor.negative) json.member("negative", true);
  if (tensor.statistics) {
    json.key("statistics");
    write(json, *tensor.statistics, tensor.range);
    json.member("first", tensor.first);
  }
  json.close();
}

/// If several members have one name, the last value takes the place of the first one.
std::vector<std::pair<std::string_view, std::string_view>> without_twins(
    const std::vector<std::pair<std::string, std::string>>& values) {
  std::vector<std::pair<std::string_view, std::string_view>> single;
  std::unordered_map<std::string_view, std::size_t> place;
  for (const auto& [name, value] : values) {
    const auto [at, fresh] = place.try_emplace(name, single.size());
    if (fresh) single.emplace_back(name, value);
    single[at->second].second = value;
  }
  return single;
}

void write(JsonReport& json, const FileFacts& file) {
  json.open_object();
  json.member("container", file.container);
  json.member("size", file.size);
  if (!file.holds.empty()) json.member("holds", file.holds);
  if (!file.values.empty()) json.member("values", without_twins(file.values));
  if (!file.metadata.empty()) json.member("metadata", file.metadata);
  json.open_list("tensors");
  for (const TensorFacts& tensor : file.tensors) {
    write(json, tensor);
    json.hand_on();
  }
  json.close();
  if (file.has_pickle) {
    json.open_list("globals");
    for (const GlobalFacts& global : file.globals) {
      json.open_object();
      json.member("name", global.name);
      json.member("rating", formats::rating_name(global.rating));
      json.member("called", global.called);
      json.member("offset", global.offset);
      if (!global.where.empty()) json.member("where", global.where);
      json.close();
    }
    json.close();
  }
  if (!file.contents.empty()) {
    json.open_list("contents");
    for (const ContentFacts& content : file.contents) {
      json.open_object();
      json.member("what", content.what);
      json.member("rating", formats::rating_name(content.rating));
      if (!content.where.empty()) json.member("where", content.where);
      json.close();
    }
    json.close();
  }
  json.close();
}

void write(JsonWriter& json, const RankFacts& rank) {
  json.open_object();
  json.member("label", rank.label);
  json.member("json", rank.json);
  if (!rank.problem.empty()) json.member("problem", rank.problem);
  json.member("task", rank.task);
  json.member("level", rank.level);
  json.member("framework", rank.framework);
  json.member("entries", rank.entries);
  json.member("tensors", rank.tensors);
  json.member("types", rank.types);
  json.member("directions", rank.directions);
  json.member("named_files", rank.named_files);
  json.member("files", rank.files);
  json.member("absent", rank.absent);
  json.member("missing_count", rank.missing_count);
  json.member("missing_files", rank.missing_files);
  json.member("stray_count", rank.stray_count);
  json.member("stray_files", rank.stray_files);
  json.close();
}

void write(JsonWriter& json, const TreeFacts& tree) {
  json.open_object();
  json.member("kind", tree.kind);
  json.open_list("steps");
  for (const StepFacts& step : tree.steps) {
    json.open_object();
    json.member("label", step.label);
    json.member("missing_ranks", step.missing_ranks);
    json.open_list("ranks");
    for (const RankFacts& rank : step.ranks) write(json, rank);
    json.close();
    json.close();
  }
  json.close();
  json.close();
}

void write(JsonWriter& json, const CheckpointFacts& found) {
  json.open_object();
  json.member("format", found.format);
  json.member("parameters", found.parameters);
  json.member("elements", found.elements);
  json.member("bytes", found.bytes);
  json.member("types", found.types);
  json.member("warnings", found.warnings);
  json.member("unreadable_count", found.unreadable_count);
  json.member("unreadable", found.unreadable);
  json.close();
}

void write(JsonReport& json, const RatedFolder& folder) {
  json.open_object();
  json.member("files", folder.files);
  json.member("bytes", folder.bytes);
  json.member("ok", folder.ok);
  json.member("unknown", folder.unknown);
  json.member("dangerous", folder.dangerous);
  json.member("unfinished", folder.unfinished);
  json.open_list("listed");
  for (const RatedFile& file : folder.listed) {
    json.open_object();
    json.member("path", file.path);
    json.member("rating", formats::rating_name(file.rating));
    json.member("reasons", file.reasons);
    json.member("reason_count", file.reason_count);
    if (!file.problem.empty()) json.member("problem", file.problem);
    json.close();
    json.hand_on();
  }
  json.close();
  json.close();
}

void write(JsonReport& json, const PathFacts& facts) {
  json.open_object();
  json.member("path", facts.path);
  if (facts.file) {
    json.key("file");
    write(json, *facts.file);
  }
  if (facts.checkpoint) {
    json.key("checkpoint");
    write(json, *facts.checkpoint);
  }
  if (facts.tree) {
    json.key("dump");
    write(json, *facts.tree);
  }
  if (facts.rated) {
    json.key("rated");
    write(json, *facts.rated);
  }
  if (!facts.warnings.empty()) json.member("warnings", facts.warnings);
  json.member("problems", facts.problems);
  json.close();
}

}  // namespace

void to_json(const std::vector<PathFacts>& facts, const JsonReport::Write& write_piece) {
  JsonReport json(write_piece);
  if (facts.size() == 1) {
    write(json, facts.front());
  } else {
    json.open_list();
    for (const PathFacts& each : facts) write(json, each);
    json.close();
  }
  write_piece(json.take() + "\n");
}

}  // namespace msprobe::inspect
