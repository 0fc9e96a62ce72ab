// SPDX-License-Identifier: Apache-2.0
#include "graph/vis/vis_words.hpp"

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

namespace msprobe::graph {
namespace {

constexpr std::size_t kLevels = 5;
constexpr std::array<std::string_view, kLevels> kLevelColors = {"#FFFCF3", "#FFEDBE", "#FFDC7F", "#FFC62E",
                                                                "#FF704D"};
constexpr std::string_view kUnmatchedColor = "#C7C7C7";

// Users of the Python tool know these words.
constexpr std::string_view kErrorWords =
    "此节点所有输入输出的统计量相对误差, 值越大代表测量值与标杆值的偏差越大, 相对误差计算方式:"
    "|(测量值-标杆值)/标杆值|";
constexpr std::string_view kRatioWords =
    "此节点所有输入的最小双千分之一和所有输出的最小双千分之一的差值的绝对值, 代表双千指标的变化情况, "
    "值越大代表测量值与标杆值的偏差越大, 双千分之一指标计算方式："
    "Tensor中的元素逐个与对应的标杆数据对比，相对误差小于千分之一的比例占总元素个数的比例，比例越接近1越好";
constexpr std::string_view kSameWords = "与标杆相比, 此节点所有输入输出的md5值相同";
constexpr std::string_view kOtherWords = "与标杆相比, 此节点任意输入输出的md5值不同";
constexpr std::string_view kAloneWords = "比对过程中节点未匹配上";

using Bounds = std::vector<std::string_view>;

void put_range(JsonWriter& json, std::string_view color, const Bounds& bounds, std::string_view words) {
  json.open_object(color);
  json.open_list("value");
  for (const std::string_view bound : bounds) json.raw(bound);
  json.close();
  json.member("description", words);
  json.close();
}

}  // namespace

void put_vis_colors(JsonWriter& json, ComparedBy task) {
  static constexpr std::array<std::string_view, kLevels + 1> kErrors = {"0", "0.2", "0.4", "0.6", "0.8", "1"};
  static constexpr std::array<std::string_view, kLevels + 1> kRatios = {"0",    "0.05", "0.1",
                                                                        "0.15", "0.2",  "1"};
  json.open_object();
  if (task == ComparedBy::md5) {
    put_range(json, kLevelColors.front(), {"1", "1"}, kSameWords);
    put_range(json, kLevelColors.back(), {"0", "0"}, kOtherWords);
  } else if (task != ComparedBy::structure) {
    const bool tensors = task == ComparedBy::tensors;
    const auto& bounds = tensors ? kRatios : kErrors;
    for (std::size_t i = 0; i < kLevels; ++i)
      put_range(json, kLevelColors[i], {bounds[i], bounds[i + 1]}, tensors ? kRatioWords : kErrorWords);
  }
  put_range(json, kUnmatchedColor, {}, kAloneWords);
  json.close();
}

std::string vis_tool_tip(ComparedBy task) {
  if (task == ComparedBy::statistics || task == ComparedBy::md5) return tool_tip_of(task);
  JsonWriter json;
  json.open_object();
  json.member("One Thousandth Err Ratio",
              "Tensor中的元素逐个与对应的标杆数据对比，相对误差小于千分之一的比例占总元素个数的比例，比例越接"
              "近1越好");
  json.member("Five Thousandths Err Ratio",
              "Tensor中的元素逐个与对应的标杆数据对比，相对误差小于千分之五的比例占总元素个数的比例，比例越接"
              "近1越好");
  json.member("Cosine",
              "通过计算两个向量的余弦值来判断其相似度，数值越接近于1说明计算出的两个张量越相似，实际可接受阈"
              "值为大于0.99。"
              "在计算中可能会存在nan，主要由于可能会出现其中一个向量为0");
  json.member("MaxAbsErr", "当最大绝对误差越接近0表示其计算的误差越小，实际可接受阈值为小于0.001");
  json.member("MaxRelativeErr",
              "当最大相对误差越接近0表示其计算的误差越小。当dump数据中存在0或Nan时，"
              "比对结果中最大相对误差则出现inf或Nan的情况，属于正常现象");
  json.close();
  return json.take();
}

}  // namespace msprobe::graph
