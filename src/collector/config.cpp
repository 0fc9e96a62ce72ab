// SPDX-License-Identifier: Apache-2.0
#include "collector/config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "collector/config_keys.hpp"
#include "collector/config_reader.hpp"
#include "dump/names.hpp"
#include "support/ascii.hpp"
#include "support/byte_source.hpp"
#include "support/folder.hpp"
#include "support/text.hpp"

namespace msprobe::collector {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxDepth = 64;
constexpr std::size_t kMaxFile = std::size_t{16} << 20;
constexpr int kLastPort = 65535;

/// True for the name that a dump gives to a call of an API, "Functional.linear.0.forward", or of a module,
/// "Module.fc.Linear.forward.0".
bool is_call_name(std::string_view text, bool module) {
  using dump::Direction;
  const auto name = dump::parse_entry_name(text);
  return name && (name->direction == Direction::forward || name->direction == Direction::backward) &&
         name->is_module == module && name->call_first != module && is_digits(name->call) &&
         name->base.find('.') != name->base.npos;
}

void check_scope(const Config& config, const std::string& where) {
  if (config.scope.empty()) return;
  if (config.scope.size() != 2)
    throw ScopeError(where + ": scope: must hold exactly two names, the first and the last");
  const bool apis = config.level != Level::l0;
  const bool modules = config.level != Level::l1;
  for (const std::string& name : config.scope) {
    if ((apis && is_call_name(name, false)) || (modules && is_call_name(name, true))) continue;
    const std::string api = "an API's, \"Functional.linear.0.forward\"";
    const std::string module = "a module's, \"Module.fc.Linear.forward.0\"";
    const std::string wanted = apis && modules ? api + ", or " + module : apis ? api : module;
    throw ScopeError(where + ": scope: \"" + name + "\" is not a full name of level " +
                     std::string(name_of(config.level)) + ": " + wanted);
  }
}

void read_slice(const ConfigReader& section, const std::string& where, Config& config) {
  const Json* rules = section.find("slice");
  if (rules == nullptr || rules->is_null()) return;
  if (!rules->is_array()) section.fail("slice", "must be a list of objects");
  for (const Json& item : *rules) {
    if (!item.is_object()) section.fail("slice", "must be a list of objects");
    const ConfigReader rule(item, KeyGroup::task, where + ": slice");
    SliceRule read;
    for (const auto& [key, value] : item.items()) {
      const std::int64_t number = rule.integer(key, value);
      if ((key == "dim" || key == "size") && number < 0) rule.fail(key, "must not be negative");
      if (key == "dim")
        read.dim = static_cast<std::uint64_t>(number);
      else if (key == "size")
        read.size = static_cast<std::uint64_t>(number);
      else if (key == "begin")
        read.begin = number;
      else if (key == "end")
        read.end = number;
      else
        rule.fail(key, "is not one of dim, size, begin, end");
    }
    config.slice.push_back(read);
  }
}

void read_data_mode(const ConfigReader& section, Config& config) {
  const std::vector<std::string> modes = section.texts("data_mode");
  if (modes.empty()) return;
  bool named[5] = {};
  for (const std::string& mode : modes) named[section.choice("data_mode", mode)] = true;
  const auto [all, forward, backward, input, output] = std::to_array(named);
  if (all) {
    if (modes.size() > 1) section.fail("data_mode", "\"all\" must stand alone");
    return;
  }
  DataMode& mode = config.data_mode;
  mode.forward = forward || !backward;
  mode.backward = backward || !forward;
  mode.input = input || !output;
  mode.output = output || !input;
  mode.parameter_gradients = backward || !forward;
}

std::int64_t read_limit(const ConfigReader& section, std::string_view key) {
  const Json* value = section.find(key);
  if (value == nullptr || value->is_null()) return 1;
  const std::int64_t number = section.integer(key, *value);
  if (number < -1) section.fail(key, "must be a number of times, or -1 for no limit");
  return number == 0 ? 1 : number;
}

/// Checks where calls are sent to, if another process than the training judges them.
void read_server(const ConfigReader& section) {
  const std::string server = section.text("server");
  const std::string host = section.text("host");
  const Json* given = section.find("port");
  const std::int64_t port = given == nullptr ? -1 : section.integer("port", *given);
  const std::string tls = section.text("tls_path");
  if (port < -1 || port > kLastPort) section.fail("port", fmt::format("must be at most {}", kLastPort));
  const bool has_folder = !section.text("nfs_path").empty();
  if (server.empty() && host.empty() && !has_folder) {
    if (port >= 0) section.fail("port", "needs a host");
    if (!tls.empty()) section.fail("tls_path", "needs a server");
  }
  if (!server.empty()) {
    const std::size_t colon = server.rfind(':');
    const bool has_port =
        colon != std::string::npos && colon > 0 &&
        whole_number<std::uint16_t>(std::string_view(server).substr(colon + 1)).value_or(0) > 0;
    if (!has_port) section.fail("server", "must be a host and a port, such as \"judge:9000\"");
    if (!host.empty()) section.fail("server", "is given besides host: leave out one of them");
    if (has_folder) section.fail("server", "is given besides nfs_path: leave out one of them");
  } else if (!host.empty()) {
    if (port <= 0) section.fail("port", "is missing beside host");
    if (has_folder) section.fail("host", "is given besides nfs_path: leave out one of them");
  }
}

/// Reads the section of task acc_check, which the front end carries out.
void read_online_check(const ConfigReader& section, Config& config) {
  section.texts("white_list");
  section.texts("black_list");
  section.choice("reference");
  section.count("interval");
  section.boolean("compare");
  section.text("error_data_path");
  read_server(section);
  const Json* budget = section.find("budget");
  if (budget != nullptr && !budget->is_null() && !(budget->is_number() && *budget > 0))
    section.fail("budget",
                 "must be a number above 0, the share of time that may be added, or null for no limit");
  const std::vector<std::uint32_t> ranks = section.numbers("rank_list");
  if (config.ranks.empty()) config.ranks = ranks;
}

/// Checks the section of task free_benchmark: which perturbation, where, and the use of the second result.
/// The front end, which makes the calls, reads the keys by setting().
void check_perturbation(const ConfigReader& reader) {
  const auto chosen = [&](std::string_view key) {
    reader.choice(key);
    return reader.word(key);
  };
  const std::string mode = chosen("pert_mode");
  const std::string device = chosen("fuzz_device");
  const std::string stage = chosen("fuzz_stage");
  const bool fixes = chosen("handler_type") == "fix";
  const bool preheat = reader.boolean("if_preheat");
  chosen("fuzz_level");
  reader.count("preheat_step");
  reader.count("max_sample");
  if (mode == "to_cpu" && device != "cpu")
    reader.fail("fuzz_device", "must be \"cpu\" for pert_mode \"to_cpu\", which makes the second call there");
  if (device == "cpu" && mode != "to_cpu")
    reader.fail(
        "fuzz_device",
        "\"cpu\" is for pert_mode \"to_cpu\"; all others call again on the device of the training, \"npu\" "
        "or \"cuda\"");
  if (preheat && mode == "to_cpu")
    reader.fail("if_preheat", "adapts the limit of perturbed calls, but \"to_cpu\" has no limit");
  if (!fixes) return;
  if (mode != "improve_precision" && mode != "to_cpu")
    reader.fail("handler_type", "\"fix\" is for pert_mode \"improve_precision\" or \"to_cpu\"");
  if (stage == "backward") reader.fail("handler_type", "\"fix\" is for fuzz_stage \"forward\"");
  if (preheat) reader.fail("handler_type", "\"fix\" cannot be combined with if_preheat");
}

// summary_mode may list these.
constexpr std::string_view kKernelStatistics[] = {"max",
                                                  "min",
                                                  "mean",
                                                  "l2norm",
                                                  "count",
                                                  "zero count",
                                                  "positive zero count",
                                                  "negative zero count",
                                                  "nan count",
                                                  "positive inf count",
                                                  "negative inf count",
                                                  "hash",
                                                  "md5"};

/// With PyTorch, a single call is dumped, forward or backward. The name of its forward finds it.
void read_call(const ConfigReader& common, const ConfigReader& section, Config& config) {
  if (config.task != Task::tensor) common.fail("task", "must be \"tensor\" at level L2");
  if (!section.texts("scope").empty()) section.fail("scope", "is not for level L2: list names the call");
  config.list = section.texts("list");
  if (config.list.size() != 1 || !is_call_name(config.list[0], false))
    section.fail("list", "must hold one call at level L2, such as \"Functional.linear.0.forward\"");
  constexpr std::string_view kBackward = "backward";
  std::string& name = config.list[0];
  if (name.ends_with(kBackward)) name.replace(name.size() - kBackward.size(), kBackward.size(), "forward");
}

void read_kernel_statistics(const ConfigReader& section) {
  const Json* mode = section.find("summary_mode");
  if (mode == nullptr || !mode->is_array()) {
    section.choice("summary_mode");
    return;
  }
  for (const std::string& name : section.texts("summary_mode")) {
    if (std::ranges::find(kKernelStatistics, name) == std::end(kKernelStatistics))
      section.fail("summary_mode",
                   fmt::format("\"{}\" is not one of {}", display(name), fmt::join(kKernelStatistics, ", ")));
  }
}

/// Reads the section of a task at level L2: the kernels that the runtime of an NPU dumps for the front end.
/// With PyTorch, the name of the call whose kernels are dumped becomes the only name in `config.list`.
void read_kernels(const ConfigReader& common, const ConfigReader& section, Config& config) {
  if (!config.by_runtime) return read_call(common, section, config);
  if (config.task != Task::statistics && config.task != Task::tensor && config.task != Task::overflow_check &&
      config.task != Task::exception_dump)
    common.fail("task", "must be one of statistics, tensor, overflow_check, exception_dump at level L2");
  config.list = section.texts("list");
  const std::vector<std::string> modes = section.texts("data_mode");
  for (const std::string& mode : modes) section.choice("data_mode", mode);
  if (modes.size() > 1) section.fail("data_mode", "must hold one of all, input, output at level L2");
  read_kernel_statistics(section);
  for (const char* key : {"file_format", "device", "precision", "check_mode"}) section.choice(key);
}

/// The group of the keys in the task's section.
KeyGroup place_of(const Config& config) {
  if (config.by_runtime) return KeyGroup::kernels;
  return config.task == Task::free_benchmark ? KeyGroup::free_benchmark
         : config.task == Task::acc_check    ? KeyGroup::acc_check
         : config.task == Task::grad_probe   ? KeyGroup::grad_probe
                                             : KeyGroup::task;
}

void read_section(const ConfigReader& common, const Json& object, const std::string& where, Config& config) {
  if (!object.is_object()) throw FormatError(where, "must be an object");
  const ConfigReader section(object, place_of(config), where);
  if (config.level == Level::l2) return read_kernels(common, section, config);
  if (config.task == Task::grad_probe) {
    config.gradient_probe = read_gradient_probe(object, where);
    return;
  }
  const auto names = [&](std::string_view key) {
    try {
      return section.texts(key);
    } catch (const FormatError& error) {
      throw ScopeError(error.what());
    }
  };
  config.scope = names("scope");
  config.list = names("list");
  check_scope(config, where);
  if (config.task == Task::free_benchmark) return check_perturbation(section);
  if (config.task == Task::acc_check) return read_online_check(section, config);
  read_data_mode(section, config);
  config.summary_mode = static_cast<SummaryMode>(section.choice("summary_mode"));
  config.tensor_list = section.texts("tensor_list");
  read_slice(section, where, config);
  config.request_id = section.text("request_id");
  config.bench_path = section.text("bench_path");
  config.diff_nums = read_limit(section, "diff_nums");
  config.overflow_nums = read_limit(section, "overflow_nums");
}

/// Settles the values that depend on several keys.
void settle(const ConfigReader& common, Config& config) {
  if (config.task == Task::structure && (config.level == Level::l1 || config.level == Level::debug)) {
    config.warnings.push_back("task structure records at level L0 or mix: level mix is used instead of " +
                              std::string(name_of(config.level)));
    config.level = Level::mix;
  }
  if (config.calls_again()) {
    if (config.level != Level::l1 && config.level != Level::l2) {
      config.warnings.push_back("task " + std::string(name_of(config.task)) +
                                " calls operations again: level L1 is used instead of " +
                                std::string(name_of(config.level)));
      config.level = Level::l1;
    }
    config.extra_info = false;
  }
  if (config.task == Task::grad_probe) config.extra_info = false;
  const bool measures = config.task == Task::statistics || config.task == Task::tensor;
  if ((!config.slice.empty() || !config.request_id.empty()) && (!measures || config.level == Level::debug)) {
    config.warnings.push_back(
        "slice and request_id are ignored: they are for tasks statistics and tensor at level L0, L1 "
        "or mix");
    config.slice.clear();
    config.request_id.clear();
  }
  if (!config.tensor_list.empty() && (config.task != Task::statistics || config.level == Level::debug)) {
    config.warnings.push_back("tensor_list is ignored: it is for task statistics at level L0, L1 or mix");
    config.tensor_list.clear();
  }
  const bool rates = (config.level == Level::l1 || config.level == Level::mix) && config.scope.empty() &&
                     config.list.empty();
  if (config.risk_level == RiskLevel::core && !rates && !config.calls_again()) {
    config.warnings.push_back(
        "risk_level has no effect: it is for PyTorch at level L1 or mix, without scope and list");
  }
  if (!config.bench_path.empty()) {
    if (config.task != Task::tensor) common.fail("bench_path", "is for task tensor only");
    if (config.summary_mode != SummaryMode::md5) common.fail("bench_path", "needs summary_mode md5");
    if (!is_folder(config.bench_path))
      common.fail("bench_path", display(config.bench_path) + " is not a folder");
  }
  if (!config.async_dump) return;
  if (!measures) common.fail("async_dump", "is for tasks statistics and tensor only");
  if (config.task == Task::tensor && config.list.empty() && config.level != Level::debug) {
    common.fail("async_dump",
                "with task tensor needs a `list` of what to record: tensors stay in memory until the end of "
                "the step");
  }
  if (config.summary_mode == SummaryMode::md5)
    common.fail(
        "async_dump",
        "cannot be combined with summary_mode md5: set summary_mode to statistics, or async_dump to false");
}

Task read_task(const ConfigReader& common, const std::string& name, const std::string& kernels_of) {
  if (name == "nan_check")
    common.fail("task",
                "\"nan_check\" needs an NPU with torch_npu: it reads a register of the device; task "
                "overflow_check finds NaN and Inf on any device");
  if (name == "diff_check")
    common.fail("task", "\"diff_check\" is not a task: use task tensor with bench_path");
  if (name == "exception_dump" && (kernels_of.empty() || kernels_of == "pytorch"))
    common.fail("task",
                "\"exception_dump\" needs MindSpore on an NPU, whose runtime dumps the operator that raised");
  return static_cast<Task>(common.choice("task", name));
}

/// An absolute path, which stays valid when the program changes its folder. A relative path begins at
/// `folder`, or at the current folder if that is empty.
std::string whole_path(const std::string& path, const std::string& folder) {
  return std::filesystem::absolute(std::filesystem::path(folder) / path).lexically_normal().string();
}

/// Reads section load, which the front end carries out.
void read_load(const Json& section, const std::string& where, Config& config) {
  if (!section.is_object()) throw FormatError(where, "must hold an object");
  const ConfigReader reader(section, KeyGroup::load, where);
  config.loads = true;
  if (reader.text("path").empty()) reader.fail("path", "is missing: the folder of the dump to load from");
  const std::vector<std::string> modules = reader.texts("modules");
  if (modules.empty())
    reader.fail("modules", "is missing: calls such as \"Module.layers.0.Block.forward.0\"");
  for (const std::string& name : modules) {
    const std::size_t number = name.rfind('.') + 1;
    if (!name.starts_with("Module.") || !name.substr(0, number).ends_with(".forward.") ||
        !is_digits(std::string_view(name).substr(number)))
      reader.fail("modules",
                  display(name) + " is not a call of a module, \"Module.<path>.<class>.forward.<number>\"");
  }
  if (std::set<std::string>(modules.begin(), modules.end()).size() != modules.size())
    reader.fail("modules", "names a call twice");
  reader.numbers("step");
  reader.numbers("rank");
  config.loads_only = !reader.boolean("dump_after_load");
}

}  // namespace

std::string_view name_of(Task task) {
  return kTaskNames[static_cast<std::size_t>(task)];
}

std::string_view name_of(Level level) {
  return kLevelNames[static_cast<std::size_t>(level)];
}

std::string Config::setting(std::string_view key) const {
  const auto text_of = [](const std::vector<std::string>& lines) {
    return Json(lines).dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  if (key == "warnings") return text_of(warnings);
  const Json all = Json::parse(text);
  const Json* place = &all;
  constexpr std::string_view kSection = "section.";
  if (key.starts_with(kSection)) {
    place = &all.at("section");
    key.remove_prefix(kSection.size());
  }
  const auto found = place->find(std::string(key));
  return found == place->end() ? "null" : found->dump();
}

void Config::set_dump_path(const std::string& path, const std::string& folder) {
  root = whole_path(path, folder);
  while (root.size() > 1 && root.back() == '/') root.pop_back();
  Json all = Json::parse(text);
  all["dump_path"] = root;
  text = all.dump(-1, ' ', false, Json::error_handler_t::replace);
  dump_path = path;
}

bool Config::wants_tensor_folder() const {
  if (level == Level::l2) return false;
  return task == Task::tensor || task == Task::overflow_check ||
         (task == Task::statistics && level != Level::debug && !tensor_list.empty());
}

bool Config::reads_elements() const {
  return summary_mode != SummaryMode::statistics || !slice.empty() || !request_id.empty();
}

bool Config::wants_files(std::string_view entry) const {
  if (task == Task::tensor || task == Task::overflow_check) return true;
  if (task != Task::statistics || level == Level::debug) return false;
  return std::ranges::any_of(
      tensor_list, [&](const std::string& item) { return entry.find(item) != std::string_view::npos; });
}

bool Config::has_structure(bool module) const {
  return extra_info && (level == Level::mix || (level == Level::l0 && module));
}

Config parse_config(std::string_view text, const std::string& name, const ConfigOverrides& overrides) {
  check_utf8(text, name);
  const Json root = [&] {
    try {
      return Json::parse(text, [&](int depth, Json::parse_event_t, Json&) {
        if (depth > kMaxDepth) throw FormatError(name, "nested too deeply");
        return true;
      });
    } catch (const Json::exception& error) {
      // The text is "[json.exception...] parse error at line 1, column 2: ...".
      const std::string_view why = error.what();
      throw FormatError(
          name, "not valid JSON: " + std::string(why.substr(std::min(why.find("line "), why.size()))));
    }
  }();
  if (!root.is_object()) throw FormatError(name, "must hold an object");
  const ConfigReader common(root, KeyGroup::common, name);

  Config config;
  const std::string task = overrides.task ? *overrides.task : common.word("task");
  config.task = read_task(common, task, overrides.kernels_of);
  const std::string level = overrides.level ? *overrides.level : common.word("level");
  if (level == "L2" && overrides.kernels_of.empty()) {
    common.fail("level",
                "\"L2\" needs an NPU: the kernels' data are dumped by its runtime; levels L0, L1, mix and "
                "debug record on any device");
  }
  config.level = static_cast<Level>(common.choice("level", level));
  if (config.task == Task::exception_dump && config.level != Level::l2)
    common.fail("level", "must be \"L2\" for task exception_dump");
  config.by_runtime = config.level == Level::l2 && overrides.kernels_of != "pytorch";
  if (const Json* load = common.find("load")) read_load(*load, name + ": load", config);
  config.dump_path = overrides.dump_path ? *overrides.dump_path : common.text("dump_path");
  if (config.dump_path.empty() && config.loads_only) config.dump_path = ".";
  if (config.dump_path.empty()) common.fail("dump_path", "is missing: it names the folder of the dump");
  if (config.dump_path.size() > kMaxDumpPath) common.fail("dump_path", "is longer than 4096 bytes");

  config.ranks = common.numbers("rank");
  config.steps = overrides.step ? common.numbers("step", Json::parse(*overrides.step, nullptr, false))
                                : common.numbers("step");
  config.extra_info = common.boolean("extra_info");
  config.async_dump = common.boolean("async_dump");
  config.high_precision = common.choice("precision") == 1;
  const Json* risk = common.find("risk_level");
  config.risk_level = risk != nullptr && risk->is_null()
                          ? RiskLevel::all
                          : static_cast<RiskLevel>(common.choice("risk_level"));
  if (common.find("dump_enable") != nullptr) config.dump_enable = common.boolean("dump_enable");
  config.python_compatible = common.boolean("python_compatible");
  config.hard_links = common.boolean("hard_links");
  config.write_buffer = common.count("write_buffer_mb");
  config.custom_op_namespaces = common.texts("custom_op_namespaces");

  const Json* section = common.find(task);
  const Json none = Json::object();
  read_section(common, section == nullptr ? none : *section, name + ": " + task, config);
  std::ranges::move(keys_without_effect(root, task, place_of(config), name),
                    std::back_inserter(config.warnings));
  if (!config.bench_path.empty()) config.bench_path = whole_path(config.bench_path, overrides.folder);
  settle(common, config);

  Json all = root;
  if (config.loads)
    all["load"]["path"] = whole_path(all["load"]["path"].get<std::string>(), overrides.folder);
  all["task"] = name_of(config.task);
  all["level"] = name_of(config.level);
  all["dump_path"] = config.dump_path;
  all["step"] = config.steps;
  all["custom_op_namespaces"] = config.custom_op_namespaces;
  Json& settings = all["section"] = section == nullptr ? none : *section;
  if (config.calls_again() && config.level != Level::l2) {
    const bool online = config.task == Task::acc_check;
    for (const ConfigKey& key : keys_of(online ? KeyGroup::acc_check : KeyGroup::free_benchmark)) {
      const std::string setting(key.name);
      // A null that was set means "no limit"; a missing key means the default.
      if (online ? !settings.contains(setting) : settings[setting].is_null())
        settings[setting] = Json::parse(key.fallback);
    }
  }
  try {
    config.text = all.dump();
  } catch (const Json::exception&) {
    throw FormatError(name, "holds text that is not UTF-8");
  }
  config.set_dump_path(config.dump_path, overrides.folder);
  return config;
}

Config read_config(const std::string& path, const ConfigOverrides& overrides) {
  if (!path.ends_with(".json")) throw IoError(path, "the configuration's name must end in .json");
  return parse_config(read_all(*open_file(path), kMaxFile), path, overrides);
}

}  // namespace msprobe::collector
