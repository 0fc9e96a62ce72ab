// SPDX-License-Identifier: Apache-2.0
#include "collector/config_keys.hpp"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>

#include "support/text.hpp"

namespace msprobe::collector {
namespace {

constexpr std::string_view kCommonKeys[] = {"task",
                                            "dump_path",
                                            "level",
                                            "step",
                                            "rank",
                                            "extra_info",
                                            "async_dump",
                                            "precision",
                                            "risk_level",
                                            "dump_enable",
                                            "custom_op_namespaces",
                                            "python_compatible",
                                            "hard_links",
                                            "write_buffer_mb",
                                            "support_wrap_ops",
                                            "load"};

// Sections of tasks, of which only that of the task in use counts.
constexpr std::string_view kSections[] = {"statistics",     "tensor",         "structure", "overflow_check",
                                          "acc_check",      "exception_dump", "nan_check", "diff_check",
                                          "free_benchmark", "grad_probe",     "run_ut"};

constexpr std::string_view kPerturbationKeys[] = {"scope",        "list",       "fuzz_device", "pert_mode",
                                                  "handler_type", "fuzz_level", "fuzz_stage",  "if_preheat",
                                                  "preheat_step", "max_sample"};

constexpr std::string_view kLoadKeys[] = {"path", "modules", "step", "rank", "dump_after_load"};

constexpr std::string_view kGradientKeys[] = {"grad_level", "param_list", "bounds"};

constexpr std::string_view kSectionKeys[] = {"scope",       "list",         "data_mode",  "summary_mode",
                                             "tensor_list", "slice",        "request_id", "bench_path",
                                             "diff_nums",   "overflow_nums"};

struct Ineffective {
  std::string_view key;
  std::string_view why;
};
constexpr Ineffective kCommonIneffective[] = {
    {"seed", "seed_all() seeds"},
    {"is_deterministic", "seed_all(mode=True) asks for deterministic algorithms"},
    {"rm_dropout", "seed_all(rm_dropout=True) does that"},
    {"enable_dataloader", "start(), stop() and step() say what a step is"},
    {"acl_config", "it is for the runtime of an NPU"},
};
constexpr Ineffective kSectionIneffective[] = {
    {"file_format", "tensors are saved as .pt by PyTorch's front end and as .npy by MindSpore's"},
    {"device", "statistics are computed where a tensor lies"},
    {"stat_cal_mode", "statistics are computed where a tensor lies"},
    {"precision", "it stands beside the section, not in it"},
    {"check_mode", "task overflow_check looks at every result"},
    {"backward_input", "it is for replaying single kernels on an NPU"},
    {"white_list", "it is for task acc_check; list selects what is recorded"},
    {"black_list", "it is for task acc_check; list selects what is recorded"},
    {"error_data_path", "it is for task acc_check"},
};

constexpr std::size_t kMostLines = 20;
constexpr std::size_t kLongest = 64;  // of a key that is worth a comparison

bool holds(std::span<const std::string_view> keys, std::string_view key) {
  return std::ranges::find(keys, key) != keys.end();
}

class Notes {
 public:
  Notes(std::string file, KeysWithoutEffect& found) : file_(std::move(file)), found_(found) {}

  /// `section`: empty for a key beside the sections.
  void add(std::string_view section, std::string_view key, const std::string& text) {
    if (found_.lines.size() >= kMostLines) return;
    const std::string shown = display(key.substr(0, kLongest));
    const std::string in(section);
    found_.lines.push_back(file_ + ": " + (in.empty() ? in : in + ": ") + '"' + shown + "\" " + text);
    found_.names.push_back(in.empty() ? shown : in + '.' + shown);
  }

 private:
  std::string file_;
  KeysWithoutEffect& found_;
};

const Ineffective* find_ineffective(std::span<const Ineffective> known, std::string_view key) {
  const auto found = std::ranges::find(known, key, &Ineffective::key);
  return found == known.end() ? nullptr : &*found;
}

/// Keys that someone uses for remarks.
bool is_remark(std::string_view key) {
  return key.empty() || key.front() == '_' || key.front() == '#' || key.starts_with("//");
}

std::string unknown(std::span<const std::string_view> keys, std::string_view key) {
  const std::size_t limit = std::min<std::size_t>(3, key.size() / 2) + 1;
  const std::string near(key.size() > kLongest ? "" : nearest_of(keys, key, limit));
  return "is no key and has no effect" + (near.empty() ? "" : ": did you mean \"" + near + "\"?");
}

void note_section(const nlohmann::ordered_json& section, std::string_view task, Notes& notes) {
  if (task == "free_benchmark" || task == "grad_probe") {
    const std::span<const std::string_view> keys =
        task == "grad_probe" ? std::span<const std::string_view>(kGradientKeys) : kPerturbationKeys;
    for (const auto& [key, value] : section.items()) {
      if (!holds(keys, key) && !is_remark(key)) notes.add(task, key, unknown(keys, key));
    }
    return;
  }
  for (const auto& [key, value] : section.items()) {
    if (const Ineffective* known = find_ineffective(kSectionIneffective, key)) {
      notes.add(task, key, "has no effect: " + std::string(known->why));
    } else if (holds(kCommonKeys, key)) {
      notes.add(task, key, "has no effect here: it stands beside the section, not in it");
    } else if (key == "overflow_nums" && task != "overflow_check") {
      notes.add(task, key, "has no effect: it is for task overflow_check");
    } else if (key == "diff_nums" && !section.contains("bench_path")) {
      notes.add(task, key, "has no effect without bench_path");
    } else if (task == "structure" && (key == "data_mode" || key == "summary_mode")) {
      notes.add(task, key, "has no effect: task structure records no values");
    } else if (!holds(kSectionKeys, key) && !is_remark(key)) {
      notes.add(task, key, unknown(kSectionKeys, key));
    }
  }
}

/// Of a section of another task: a default file has all of them, empty.
void note_other_section(const nlohmann::ordered_json& section, std::string_view its_task,
                        std::string_view task, Notes& notes) {
  constexpr std::string_view kChoosing[] = {"scope", "list", "tensor_list", "request_id", "bench_path"};
  for (const std::string_view key : kChoosing) {
    const auto found = section.find(std::string(key));
    if (found == section.end() || found->is_null() || found->empty() || *found == "") continue;
    const std::string its(task);
    notes.add(its_task, key, "has no effect: the task is " + its + ", whose section is \"" + its + "\"");
  }
}

}  // namespace

KeysWithoutEffect keys_without_effect(const nlohmann::ordered_json& root, std::string_view task,
                                      const std::string& name) {
  KeysWithoutEffect found;
  Notes notes(name, found);
  for (const auto& [key, value] : root.items()) {
    if (holds(kCommonKeys, key) || holds(kSections, key) || is_remark(key)) continue;
    if (const Ineffective* known = find_ineffective(kCommonIneffective, key)) {
      notes.add({}, key, "has no effect: " + std::string(known->why));
    } else if (holds(kSectionKeys, key) || find_ineffective(kSectionIneffective, key) != nullptr) {
      notes.add({}, key, "has no effect here: it belongs into the section \"" + std::string(task) + "\"");
    } else {
      std::vector<std::string_view> keys(std::begin(kCommonKeys), std::end(kCommonKeys));
      keys.insert(keys.end(), std::begin(kSections), std::end(kSections));
      notes.add({}, key, unknown(keys, key));
    }
  }
  for (const std::string_view section : kSections) {
    const auto content = root.find(std::string(section));
    if (content == root.end() || !content->is_object()) continue;
    if (section == task) {
      note_section(*content, task, notes);
    } else {
      note_other_section(*content, section, task, notes);
    }
  }
  if (const auto load = root.find("load"); load != root.end() && load->is_object()) {
    for (const auto& [key, value] : load->items()) {
      if (!holds(kLoadKeys, key) && !is_remark(key)) notes.add("load", key, unknown(kLoadKeys, key));
    }
  }
  return found;
}

}  // namespace msprobe::collector
