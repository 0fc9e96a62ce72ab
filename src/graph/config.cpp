// SPDX-License-Identifier: Apache-2.0
#include "graph/config.hpp"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "graph/pair/result_members.hpp"
#include "support/json_writer.hpp"

namespace msprobe::graph {
namespace {

// Users of the Python tool know these words.
constexpr std::string_view kUnmatchedWords = "比对过程中节点未匹配上";

struct LevelWords {
  std::string_view pass;
  std::string_view differs;
};
LevelWords words_of_levels(ComparedBy task) {
  constexpr std::string_view kStatistics =
      "此节点所有输入输出的统计量误差, 颜色越深代表调试侧与标杆侧的偏差越大";
  constexpr std::string_view kTensors =
      "此节点所有输入输出的 tensor 误差, 颜色越深代表调试侧与标杆侧的偏差越大";
  if (task == ComparedBy::md5)
    return {"与标杆相比, 此节点所有输入输出的md5值相同", "与标杆相比, 此节点任意输入输出的md5值不同"};
  return task == ComparedBy::tensors ? LevelWords{kTensors, kTensors} : LevelWords{kStatistics, kStatistics};
}

void put_level(JsonWriter& json, std::string_view color, std::string_view range, std::string_view words,
               std::string_view level) {
  json.open_object(color);
  json.key("value");
  json.raw(range);
  json.member("description", words);
  json.member("accuracy_level", level);
  json.close();
}

std::string node_colors_of(ComparedBy task) {
  JsonWriter json;
  json.open_object();
  if (task != ComparedBy::structure) {
    const LevelWords words = words_of_levels(task);
    put_level(json, "#FFFCF3", "[0, 0.3]", words.pass, "pass");
    put_level(json, "#FFDC7F", "[0.3, 0.6]", words.differs, "warning");
    put_level(json, "#FF704D", "[0.6, 1]", words.differs, "error");
  }
  put_level(json, "#C7C7C7", "[]", kUnmatchedWords, "unmatched node");
  json.close();
  return json.take();
}

std::string list_of(const std::set<std::int64_t>& numbers) {
  JsonWriter json;
  json.value(numbers);
  return json.take();
}

}  // namespace

std::string_view task_name(ComparedBy task) {
  static constexpr std::array<std::string_view, 4> kNames = {"summary", "md5", "all", "structure"};
  return kNames[static_cast<std::size_t>(task)];
}

std::string tool_tip_of(ComparedBy task) {
  static constexpr std::array<std::string_view, dump::kStatistics> kDifferenceTips = {
      "NPU与标杆API统计信息比对，最大值的差值", "NPU与标杆API统计信息比对，最小值的差值",
      "NPU与标杆API统计信息比对，平均值的差值", "NPU与标杆API统计信息比对，2范数（平方根）的差值"};
  JsonWriter json;
  json.open_object();
  if (task == ComparedBy::statistics) {
    for (std::size_t i = 0; i < kDifferenceNames.size(); ++i)
      json.member(kDifferenceNames[i], kDifferenceTips[i]);
  } else if (task == ComparedBy::md5) {
    json.member("md5", "数据MD5信息，用于比较两个数据信息是否完全一致");
  } else {
    for (const std::string_view key : kMetricNames) json.member(key, "");
  }
  json.close();
  return json.take();
}

void write_config(const GraphExtent& extent, bool overflow_check, const database::OutputDatabase& output) {
  const std::string tip = extent.task ? tool_tip_of(*extent.task) : "";
  const database::Statement add = output.prepare("INSERT INTO tb_config VALUES ('1',?,?,?,?,?,?,?,?)");
  database::Values(output, add)
      .text(std::string_view(extent.task ? "compare" : "build"))
      .text(extent.task ? task_name(*extent.task) : std::string_view())
      .text(extent.task ? std::optional<std::string_view>(tip) : std::nullopt)
      .number(std::int64_t{extent.micro_steps})
      .number(std::int64_t{overflow_check})
      .text(extent.task ? node_colors_of(*extent.task) : "null")
      .text(list_of(extent.ranks))
      .text(list_of(extent.steps))
      .run();
}

}  // namespace msprobe::graph
