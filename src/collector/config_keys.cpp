// SPDX-License-Identifier: Apache-2.0
#include "collector/config_keys.hpp"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>

#include "support/text.hpp"

namespace msprobe::collector {
namespace {

constexpr std::int64_t kMany = 1'000'000;

constexpr std::string_view kPrecisions[] = {"low", "high"};
constexpr std::string_view kRisks[] = {"ALL", "CORE", "FOCUS"};
constexpr std::string_view kDataModes[] = {"all", "forward", "backward", "input", "output"};
constexpr std::string_view kSummaryModes[] = {"statistics", "md5", "xor"};
constexpr std::string_view kPerturbations[] = {"improve_precision", "add_noise", "bit_noise",
                                               "change_value",      "no_change", "to_cpu"};
constexpr std::string_view kDevices[] = {"npu", "cuda", "cpu"};
constexpr std::string_view kStages[] = {"forward", "backward"};
constexpr std::string_view kHandlers[] = {"check", "fix"};
constexpr std::string_view kFuzzLevels[] = {"L1"};
constexpr std::string_view kReferences[] = {"cpu", "device"};
constexpr std::string_view kGradientLevels[] = {"L0", "L1", "L2"};
constexpr std::string_view kKernelModes[] = {"all", "input", "output"};
constexpr std::string_view kKernelSummaries[] = {"statistics", "md5"};
constexpr std::string_view kKernelFormats[] = {"npy", "bin"};
constexpr std::string_view kMeasuringDevices[] = {"host", "device"};
constexpr std::string_view kCheckModes[] = {"all", "aicore", "atomic"};

constexpr ConfigKey kCommonKeys[] = {
    {"task", R"("statistics")", kTaskNames},
    {"dump_path", R"("")"},
    {"level", R"("L1")", kLevelNames},
    {"step", "[]"},
    {"rank", "[]"},
    {"extra_info", "true"},
    {"async_dump", "false"},
    {"precision", R"("low")", kPrecisions},
    {"risk_level", R"("FOCUS")", kRisks},
    {"dump_enable", "null"},
    {"support_wrap_ops", "null"},
    {"operations", "null"},
    {"custom_op_namespaces", R"(["_C_ascend"])"},
    {"hard_links", "true"},
    {"write_buffer_mb", "256", {}, 0, kMany},
    {"load", "null"},
    {"python_compatible", "false"},
};
constexpr ConfigKey kTaskKeys[] = {
    {"scope", "[]"},         {"list", "[]"},
    {"tensor_list", "[]"},   {"data_mode", R"(["all"])", kDataModes},
    {"slice", "[]"},         {"summary_mode", R"("statistics")", kSummaryModes},
    {"request_id", R"("")"}, {"bench_path", R"("")"},
    {"diff_nums", "1"},      {"overflow_nums", "1"},
};
constexpr ConfigKey kLoadKeys[] = {
    {"path", R"("")"}, {"modules", "null"}, {"step", "[]"}, {"rank", "[]"}, {"dump_after_load", "false"},
};
constexpr ConfigKey kPerturbationKeys[] = {
    {"scope", "[]"},
    {"list", "[]"},
    {"pert_mode", R"("improve_precision")", kPerturbations},
    {"fuzz_device", R"("npu")", kDevices},
    {"fuzz_stage", R"("forward")", kStages},
    {"handler_type", R"("check")", kHandlers},
    {"if_preheat", "false"},
    {"preheat_step", "15", {}, 1, kMany},
    {"max_sample", "20", {}, 1, kMany},
    {"fuzz_level", R"("L1")", kFuzzLevels},
};
constexpr ConfigKey kOnlineCheckKeys[] = {
    {"scope", "[]"},
    {"list", "[]"},
    {"white_list", "[]"},
    {"black_list", "[]"},
    {"reference", R"("cpu")", kReferences},
    {"budget", "0.2"},
    {"interval", "1", {}, 1, kMany},
    {"compare", "false"},
    {"error_data_path", R"("")"},
    {"rank_list", "[]"},
    {"nfs_path", R"("")"},
    {"server", R"("")"},
    {"host", R"("")"},
    {"port", "-1"},
    {"tls_path", R"("")"},
};
constexpr ConfigKey kGradientKeys[] = {
    {"grad_level", R"("L1")", kGradientLevels},
    {"param_list", "[]"},
    {"bounds", "[-1, 0, 1]"},
};

constexpr ConfigKey kKernelKeys[] = {
    {"list", "[]"},
    {"data_mode", R"(["all"])", kKernelModes},
    {"summary_mode", R"("statistics")", kKernelSummaries},
    {"file_format", R"("npy")", kKernelFormats},
    {"device", R"("host")", kMeasuringDevices},
    {"precision", R"("high")", kPrecisions},
    {"check_mode", R"("all")", kCheckModes},
};

// The sections of tasks that the collector does not record.
constexpr std::string_view kOtherSections[] = {"nan_check", "diff_check", "run_ut"};

struct Ineffective {
  std::string_view key;
  std::string_view why;
};
constexpr Ineffective kCommonIneffective[] = {
    {"seed", "seed_all() seeds"},
    {"is_deterministic", "seed_all(mode=True) asks for deterministic algorithms"},
    {"rm_dropout", "seed_all(rm_dropout=True) does that"},
    {"enable_dataloader", "start(), stop() and step() define a step"},
    {"acl_config", "level L2 writes the configuration of the runtime itself"},
};
constexpr Ineffective kSectionIneffective[] = {
    {"file_format",
     "it is for level L2 of MindSpore; tensors are saved as .pt by PyTorch's front end and as .npy by "
     "MindSpore's"},
    {"device", "it is for level L2 of MindSpore; statistics are computed on the device of the tensor"},
    {"stat_cal_mode",
     "it is for MindSpore's static graphs; statistics are computed on the device of the tensor"},
    {"precision", "it belongs beside the section, not in it"},
    {"check_mode", "it is for level L2 of MindSpore; task overflow_check checks every result"},
    {"backward_input", "level L2 takes the gradients of the training"},
    {"white_list", "it is for task acc_check; list selects what is recorded"},
    {"black_list", "it is for task acc_check; list selects what is recorded"},
    {"error_data_path", "it is for task acc_check"},
};

// The keys by which releases 8.x send operations of a running training to another host.
constexpr std::string_view kOnline[] = {"online_run_ut", "online_run_ut_recompute",
                                        "is_online",     "is_benchmark_device",
                                        "nfs_path",      "tls_path",
                                        "host",          "port",
                                        "rank_list"};

constexpr std::size_t kMostLines = 20;
constexpr std::size_t kLongest = 64;  // longer keys are not compared with known ones

bool holds(KeyGroup place, std::string_view key) {
  return std::ranges::find(keys_of(place), key, &ConfigKey::name) != keys_of(place).end();
}

std::vector<std::string_view> names_of(KeyGroup place) {
  std::vector<std::string_view> names;
  for (const ConfigKey& key : keys_of(place)) names.push_back(key.name);
  return names;
}

std::vector<std::string_view> sections() {
  std::vector<std::string_view> names(kTaskNames.begin(), kTaskNames.end());
  names.insert(names.end(), std::begin(kOtherSections), std::end(kOtherSections));
  return names;
}

class Notes {
 public:
  Notes(std::string file, std::vector<std::string>& lines) : file_(std::move(file)), lines_(lines) {}

  /// `section` is empty for a key outside the sections.
  void add(std::string_view section, std::string_view key, const std::string& text) {
    if (lines_.size() >= kMostLines) return;
    const std::string shown = display(key.substr(0, kLongest));
    const std::string in(section);
    lines_.push_back(file_ + ": " + (in.empty() ? in : in + ": ") + '"' + shown + "\" " + text);
  }

 private:
  std::string file_;
  std::vector<std::string>& lines_;
};

const Ineffective* find_ineffective(std::span<const Ineffective> known, std::string_view key) {
  const auto found = std::ranges::find(known, key, &Ineffective::key);
  return found == known.end() ? nullptr : &*found;
}

/// Keys that users use for remarks.
bool is_remark(std::string_view key) {
  return key.empty() || key.front() == '_' || key.front() == '#' || key.starts_with("//");
}

std::string unknown(std::span<const std::string_view> keys, std::string_view key) {
  const std::size_t limit = std::min<std::size_t>(3, key.size() / 2) + 1;
  const std::string near(key.size() > kLongest ? "" : nearest_of(keys, key, limit));
  return "is not a key and has no effect" + (near.empty() ? "" : ": did you mean \"" + near + "\"?");
}

bool is_empty(const nlohmann::ordered_json& value) {
  return value.empty() /* null, too */ || (value.is_string() && value.get_ref<const std::string&>().empty());
}

/// Notes the keys in a section that has other keys than the tasks that record calls.
void note_own_keys(const nlohmann::ordered_json& section, std::string_view task, KeyGroup place,
                   Notes& notes) {
  for (const auto& [key, value] : section.items()) {
    if (holds(place, key) || is_remark(key)) continue;
    if (place == KeyGroup::acc_check && key == "is_benchmark_device") {
      if (!value.is_null())
        notes.add(task, key,
                  "has no effect: references are computed where `reference` or the server's -d says");
    } else if (place == KeyGroup::acc_check && key == "is_online") {
      if (value == false)
        notes.add(task, key, "false has no effect: task acc_check judges a running training");
    } else if (place == KeyGroup::kernels && holds(KeyGroup::task, key)) {
      if (!is_empty(value)) notes.add(task, key, "has no effect at level L2 of MindSpore");
    } else {
      notes.add(task, key, unknown(names_of(place), key));
    }
  }
}

void note_section(const nlohmann::ordered_json& section, std::string_view task, KeyGroup place,
                  Notes& notes) {
  if (place != KeyGroup::task) return note_own_keys(section, task, place, notes);
  std::string online;
  for (const auto& [key, value] : section.items()) {
    if (std::ranges::find(kOnline, key) != std::end(kOnline)) {
      online += (online.empty() ? "" : ", ") + key;
    } else if (const Ineffective* known = find_ineffective(kSectionIneffective, key)) {
      notes.add(task, key, "has no effect: " + std::string(known->why));
    } else if (holds(KeyGroup::common, key)) {
      notes.add(task, key, "has no effect here: it belongs beside the section, not in it");
    } else if (key == "overflow_nums" && task != "overflow_check") {
      notes.add(task, key, "has no effect: it is for task overflow_check");
    } else if (key == "diff_nums" && !section.contains("bench_path")) {
      notes.add(task, key, "has no effect: it is for task tensor with bench_path");
    } else if (task == "structure" && (key == "data_mode" || key == "summary_mode")) {
      notes.add(task, key, "has no effect: task structure records no values");
    } else if (!holds(KeyGroup::task, key) && !is_remark(key)) {
      notes.add(task, key, unknown(names_of(KeyGroup::task), key));
    }
  }
  // One line for all of them: these keys belong together, and a default file has them, switched off.
  const auto is_on = [&](const char* key) {
    const auto found = section.find(key);
    return found != section.end() && *found == true;
  };
  if (is_on("online_run_ut") || is_on("is_online"))
    notes.add(
        task, online,
        "has no effect: it is task acc_check that judges operations of a running training, or sends them to "
        "another host");
}

/// Notes keys in the section of another task. A default file has all these sections, with empty values.
void note_other_section(const nlohmann::ordered_json& section, std::string_view its_task,
                        std::string_view task, Notes& notes) {
  constexpr std::string_view kChoosing[] = {"scope", "list", "tensor_list", "request_id", "bench_path"};
  for (const std::string_view key : kChoosing) {
    const auto found = section.find(std::string(key));
    if (found == section.end() || is_empty(*found)) continue;
    const std::string its(task);
    notes.add(its_task, key, "has no effect: the task is " + its + ", whose section is \"" + its + "\"");
  }
}

}  // namespace

std::span<const ConfigKey> keys_of(KeyGroup place) {
  switch (place) {
    case KeyGroup::common:
      return kCommonKeys;
    case KeyGroup::task:
      return kTaskKeys;
    case KeyGroup::load:
      return kLoadKeys;
    case KeyGroup::free_benchmark:
      return kPerturbationKeys;
    case KeyGroup::acc_check:
      return kOnlineCheckKeys;
    case KeyGroup::kernels:
      return kKernelKeys;
    case KeyGroup::grad_probe:
      break;
  }
  return kGradientKeys;
}

std::vector<std::string> keys_without_effect(const nlohmann::ordered_json& root, std::string_view task,
                                             KeyGroup place, const std::string& name) {
  std::vector<std::string> lines;
  Notes notes(name, lines);
  const std::vector<std::string_view> known_sections = sections();
  for (const auto& [key, value] : root.items()) {
    const bool is_section = std::ranges::find(known_sections, key) != known_sections.end();
    if (is_section || holds(KeyGroup::common, key) || is_remark(key)) continue;
    if (const Ineffective* known = find_ineffective(kCommonIneffective, key)) {
      notes.add({}, key, "has no effect: " + std::string(known->why));
    } else if (holds(KeyGroup::task, key) || find_ineffective(kSectionIneffective, key) != nullptr) {
      notes.add({}, key, "has no effect here: it belongs in the section \"" + std::string(task) + "\"");
    } else {
      std::vector<std::string_view> keys = names_of(KeyGroup::common);
      keys.insert(keys.end(), known_sections.begin(), known_sections.end());
      notes.add({}, key, unknown(keys, key));
    }
  }
  for (const std::string_view section : known_sections) {
    const auto content = root.find(std::string(section));
    if (content == root.end() || !content->is_object()) continue;
    if (section == task) {
      note_section(*content, task, place, notes);
    } else {
      note_other_section(*content, section, task, notes);
    }
  }
  if (const auto load = root.find("load"); load != root.end() && load->is_object())
    note_own_keys(*load, "load", KeyGroup::load, notes);
  return lines;
}

}  // namespace msprobe::collector
