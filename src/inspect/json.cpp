// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <nlohmann/json.hpp>

#include "inspect/facts.hpp"

namespace msprobe::inspect {
namespace {

using Json = nlohmann::ordered_json;

/// JSON has no words for these; the other results of msprobe spell them so.
Json number(double value) {
  if (std::isnan(value)) return "Nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return value;
}

Json of(const tensor::Statistics& statistics) {
  return {{"max", number(statistics.max)},
          {"min", number(statistics.min)},
          {"mean", number(statistics.mean())},
          {"norm", number(statistics.norm())},
          {"nan", statistics.nan},
          {"pos_inf", statistics.pos_inf},
          {"neg_inf", statistics.neg_inf},
          {"zero", statistics.zero},
          {"denormal", statistics.denormal}};
}

Json of(const TensorFacts& tensor) {
  Json json = {{"name", tensor.name}};
  if (!tensor.dtype.empty()) {
    json["dtype"] = tensor.dtype;
    json["shape"] = tensor.shape;
  }
  if (!tensor.problem.empty()) {
    json["problem"] = tensor.problem;
    return json;
  }
  json["strides"] = tensor.strides;
  json["offset"] = tensor.offset;
  json["elements"] = tensor.elements;
  json["bytes"] = tensor.bytes;
  if (tensor.big_endian) json["big_endian"] = true;
  if (tensor.conjugate) json["conjugate"] = true;
  if (tensor.negative) json["negative"] = true;
  if (tensor.statistics) {
    json["statistics"] = of(*tensor.statistics);
    json["first"] = tensor.first;
  }
  return json;
}

Json pairs(const std::vector<std::pair<std::string, std::string>>& values) {
  Json json = Json::object();
  for (const auto& [name, value] : values) json[name] = value;
  return json;
}

Json of(const FileFacts& file) {
  Json json = {{"container", file.container}, {"size", file.size}};
  if (!file.holds.empty()) json["holds"] = file.holds;
  if (!file.values.empty()) json["values"] = pairs(file.values);
  if (!file.metadata.empty()) json["metadata"] = pairs(file.metadata);
  json["tensors"] = Json::array();
  for (const TensorFacts& tensor : file.tensors) json["tensors"].push_back(of(tensor));
  if (file.has_pickle) {
    json["globals"] = Json::array();
    for (const GlobalFacts& global : file.globals) {
      Json& entry = json["globals"].emplace_back();
      entry = {{"name", global.name},
               {"rating", formats::rating_name(global.rating)},
               {"called", global.called},
               {"offset", global.offset}};
      if (!global.where.empty()) entry["where"] = global.where;
    }
  }
  return json;
}

Json of(const RankFacts& rank) {
  Json json = {{"label", rank.label}, {"json", rank.json}};
  if (!rank.problem.empty()) json["problem"] = rank.problem;
  json.update({{"task", rank.task},
               {"level", rank.level},
               {"framework", rank.framework},
               {"entries", rank.entries},
               {"tensors", rank.tensors},
               {"types", rank.types},
               {"directions", rank.directions},
               {"named_files", rank.named_files},
               {"files", rank.files},
               {"absent", rank.absent},
               {"missing_count", rank.missing_count},
               {"missing_files", rank.missing_files},
               {"stray_count", rank.stray_count},
               {"stray_files", rank.stray_files}});
  return json;
}

Json of(const TreeFacts& tree) {
  Json json = {{"kind", tree.kind}, {"steps", Json::array()}};
  for (const StepFacts& step : tree.steps) {
    Json ranks = Json::array();
    for (const RankFacts& rank : step.ranks) ranks.push_back(of(rank));
    json["steps"].push_back(
        {{"label", step.label}, {"missing_ranks", step.missing_ranks}, {"ranks", std::move(ranks)}});
  }
  return json;
}

Json of(const CheckpointFacts& found) {
  return {{"format", found.format},
          {"parameters", found.parameters},
          {"elements", found.elements},
          {"bytes", found.bytes},
          {"types", found.types},
          {"warnings", found.warnings},
          {"unreadable_count", found.unreadable_count},
          {"unreadable", found.unreadable}};
}

Json of(const PathFacts& facts) {
  Json json = {{"path", facts.path}};
  if (facts.file) json["file"] = of(*facts.file);
  if (facts.checkpoint) json["checkpoint"] = of(*facts.checkpoint);
  if (facts.tree) json["dump"] = of(*facts.tree);
  json["problems"] = facts.problems;
  return json;
}

}  // namespace

std::string to_json(const std::vector<PathFacts>& facts) {
  Json json;
  if (facts.size() == 1) {
    json = of(facts.front());
  } else {
    json = Json::array();
    for (const PathFacts& each : facts) json.push_back(of(each));
  }
  // Names that are not UTF-8 lose the bytes that are not; everything else is refused by readers of JSON.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace msprobe::inspect
