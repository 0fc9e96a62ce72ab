// SPDX-License-Identifier: Apache-2.0
#include "precheck/op_generate/case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "dump/entry.hpp"
#include "dump/member_stream.hpp"
#include "formats/tensor_writer.hpp"
#include "precheck/acc_check/error_data.hpp"
#include "precheck/calls/not_rebuilt.hpp"
#include "precheck/calls/plan.hpp"
#include "precheck/calls/request.hpp"
#include "precheck/op_generate/case_script.hpp"
#include "precheck/runner/fused_references.hpp"
#include "precheck/runner/mindspore_runner.hpp"
#include "precheck/runner/op_runner.hpp"
#include "precheck/runner/shared_file.hpp"
#include "precheck/standards/standards.hpp"
#include "support/ascii.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/json_writer.hpp"
#include "support/output_file.hpp"
#include "support/text.hpp"
#include "support/version.hpp"

namespace msprobe::precheck {
namespace {

namespace fs = std::filesystem;
using dump::Entry;

constexpr std::uint64_t kMaxExtract = std::uint64_t{64} << 20;
constexpr std::size_t kMaxCaseName = 200;
constexpr std::array<std::string_view, 12> kJudgedTypes{
    "float16",    "bfloat16",      "float32",     "float64",         "complex32",       "complex64",
    "complex128", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"};

/// Checks the name of a case, which is also the name of its folder.
void check_case_name(const std::string& name) {
  const auto fits = [](char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '.'; };
  const bool plain = std::ranges::all_of(name, fits);
  if (name.empty() || !plain || name.front() == '.')
    throw UsageError(
        fmt::format("'{}' is not the name of an operation, such as Functional.softmax.0", display(name)));
  if (name.size() > kMaxCaseName)
    throw UsageError(fmt::format("the name of the operation has more than {} characters", kMaxCaseName));
}

struct CaseSource {
  std::shared_ptr<const ByteSource> json;
  CallPlan plan;
};

/// Makes a dump of single entries, as releases 8.x extract them.
std::shared_ptr<const ByteSource> extracted_dump(const std::string& path) {
  const std::string text = read_all(*open_file(path), kMaxExtract);
  const Entry entry = dump::read_json(text, path);
  if (!entry.is(0, dump::NodeKind::object)) throw FormatError(path, "it is not a JSON object");
  const Entry::Index data = entry.find(0, "data");
  const bool whole = entry.is(data, dump::NodeKind::object);
  if (whole) return memory_source(text, path);
  std::string dump = "{\"framework\": ";
  append_json_string(dump, entry.string(0, "framework"));
  return memory_source(dump + ", \"data\": " + text + "}", path);
}

CaseSource open_case_source(const CaseRequest& request) {
  CaseSource source;
  const bool extracted = request.dump_json.empty();
  const std::string& path = extracted ? request.extract : request.dump_json;
  source.json = extracted ? extracted_dump(path) : open_file(path);
  source.plan = plan_calls(*source.json, {}, false, request.framework);
  if (!source.plan.has_data) throw FormatError(path, "it has no member 'data', so it is not a dump.json");
  if (request.data == CaseData::random) source.plan.tensor_directory.clear();
  return source;
}

const PlannedCall& find_call(const CaseSource& source, const std::string& api) {
  std::vector<std::string_view> names;
  for (const PlannedCall& call : source.plan.calls) {
    if (call.name == api) return call;
    names.push_back(call.name);
  }
  const std::string_view best = nearest_of(names, api, 4);
  throw FormatError(source.json->name(),
                    fmt::format("no operation '{}'{}", display(api),
                                best.empty() ? "" : fmt::format("; did you mean '{}'?", display(best))));
}

void write_text(const std::string& path, std::string_view text) {
  OutputFile file(path);
  file.write(text);
  file.commit();
}

std::string entries_text(const std::string& name, const Entry& forward, const Entry* backward) {
  std::string text = "{\n    ";
  append_json_string(text, name + ".forward");
  text += ": ";
  dump::append_json(text, forward, 0, 1, 4);
  if (backward != nullptr) {
    text += ",\n    ";
    append_json_string(text, name + ".backward");
    text += ": ";
    dump::append_json(text, *backward, 0, 1, 4);
  }
  text += "\n}\n";
  return text;
}

std::string case_text(const std::string& name, Framework framework, const CaseRequest& wanted,
                      const CallRequest& request) {
  const Standards& standards = Standards::built_in();
  JsonWriter json({.indent = 1});
  json.open_object();
  json.member("msprobe", kVersion);
  json.member("name", name);
  json.member("framework", framework == Framework::mindspore ? "mindspore" : "pytorch");
  json.member("iterations", wanted.iterations);
  json.member("synthetic", request.synthetic);
  json.member("input_scale", request.input_scale);
  json.open_object("limits");
  const auto limits = [&](std::string_view type, const TypeLimits& of) {
    json.key(type);
    json.list(of.units_warning, of.units_error);
  };
  limits("other", standards.type("other"));
  for (const std::string_view type : kJudgedTypes) limits(type, standards.type(type));
  json.close();
  json.member("wrong_share", standards.limits().wrong_share);
  // The request names a tensor by its offset in the bytes.
  json.open_object("tensors");
  for (const RequestTensor& tensor : request.tensors)
    json.member(std::to_string(tensor.offset), input_file_name(name, tensor));
  json.close();
  json.key("request");
  json.raw(request.json);
  json.close();
  return json.take() + '\n';
}

void check_can_be_stored(const std::string& name, const CallRequest& request) {
  for (const RequestTensor& tensor : request.tensors) {
    if (formats::written_dtype(formats::OutputFormat::pt, tensor.dtype) != tensor.dtype)
      throw Error(
          fmt::format("{}: tensors of {} cannot be written as .pt", name, tensor::info(tensor.dtype).name));
  }
}

/// Removes the folder of a case that could not be completed.
class FolderGuard {
 public:
  explicit FolderGuard(std::string folder) : folder_(std::move(folder)) {
    std::error_code error;
    fresh_ = !fs::exists(fs::symlink_status(folder_, error));
  }
  FolderGuard(const FolderGuard&) = delete;
  FolderGuard& operator=(const FolderGuard&) = delete;
  ~FolderGuard() {
    std::error_code error;
    if (fresh_) fs::remove_all(folder_, error);
  }
  void keep() { fresh_ = false; }

 private:
  std::string folder_;
  bool fresh_ = false;
};

}  // namespace

WrittenCase write_case(const CaseRequest& wanted, const std::string& output) {
  check_case_name(wanted.api);
  const CaseSource source = open_case_source(wanted);
  const PlannedCall& call = find_call(source, wanted.api);
  const auto refuse = [&](const std::string& reason) {
    throw FormatError(source.json->name(), fmt::format("{}: {}", call.name, reason));
  };
  if (!call.skip.empty()) refuse(call.skip);
  if (wanted.needs_backward && !call.backward) refuse("it has no backward");
  Entry forward;
  Entry backward;
  dump::read_entry_at(*source.json, call.forward.offset, call.forward.size, forward, call.name);
  const bool with_backward = wanted.backward && call.backward.has_value();
  if (with_backward)
    dump::read_entry_at(*source.json, call.backward->offset, call.backward->size, backward, call.name);
  RequestOptions options;
  options.framework = source.plan.framework;
  options.real_data_only = wanted.data == CaseData::real;
  options.seed = wanted.seed;
  SharedFile payload;
  CallRequest request;
  try {
    request = RequestBuilder(tensors_in_folder(source.plan.tensor_directory), options)
                  .build(0, call, forward, with_backward ? &backward : nullptr, payload);
  } catch (const NotRebuilt& reason) {
    refuse(reason.what());
  }
  if (wanted.needs_backward && !request.backward.wanted) refuse(request.backward.skip);
  check_can_be_stored(call.name, request);

  const std::string folder = output + '/' + call.name;
  FolderGuard guard(folder);
  save_inputs(folder + "/tensors", call.name, request, payload);
  const std::string entries = entries_text(call.name, forward, with_backward ? &backward : nullptr);
  write_text(folder + "/entries.json", entries);
  const bool mindspore = source.plan.framework == Framework::mindspore;
  write_text(folder + "/op_runner.py", kOpRunner);
  if (mindspore) write_text(folder + "/mindspore_runner.py", kMindsporeRunner);
  if (mindspore || call.api.type == "NPU") write_text(folder + "/fused_references.py", kFusedReferences);
  write_text(folder + "/case.json", case_text(call.name, source.plan.framework, wanted, request));
  write_text(folder + "/run.py", kCaseScript);
  if (!wanted.extract.empty() && !wanted.dump_json.empty()) {
    std::error_code error;
    if (fs::equivalent(wanted.extract, wanted.dump_json, error))
      throw UsageError("extract_api_path is the dump itself, which would be overwritten");
    write_text(wanted.extract, entries);
  }
  guard.keep();
  return {folder, request.tensors.size(), request.backward.wanted, request.synthetic};
}

}  // namespace msprobe::precheck
