// SPDX-License-Identifier: Apache-2.0
#include "precheck/acc_check/online_case.hpp"

#include <algorithm>
#include <cstdint>
#include <span>

#include "precheck/acc_check/error_data.hpp"
#include "support/error.hpp"
#include "support/json_writer.hpp"
#include "support/output_file.hpp"
#include "support/version.hpp"

namespace msprobe::precheck {
namespace {

// The most bytes of tensors that are saved for a training, whose calls may come from another machine.
constexpr std::uint64_t kMostSaved = std::uint64_t{16} << 30;

void write_json(const std::string& path, const std::string& text) {
  OutputFile file(path);
  file.write(text);
  file.commit();
}

std::string dump_text(const std::vector<SavedCall>& calls, const std::string& tensor_folder) {
  JsonWriter json({.indent = 1});
  json.open_object();
  json.member("task", "tensor");
  json.member("level", "L1");
  json.member("framework", "pytorch");
  json.member("recorder", std::string("msprobe ") + kVersion);
  json.member("dump_data_dir", tensor_folder);
  json.open_object("data");
  for (const SavedCall& call : calls) {
    json.key(call.name + ".forward");
    json.raw(call.forward);
  }
  for (const SavedCall& call : calls) {
    if (call.backward.empty()) continue;
    json.key(call.name + ".backward");
    json.raw(call.backward);
  }
  json.close();
  json.close();
  return json.take() + '\n';
}

std::string stack_text(const std::vector<SavedCall>& calls) {
  JsonWriter json({.indent = 1});
  json.open_object();
  std::size_t number = 0;
  for (const SavedCall& call : calls) {
    json.open_list(std::to_string(number++));
    json.value(std::vector<std::string>{call.name + ".forward"});
    json.value(call.frames);
    json.close();
  }
  json.close();
  return json.take() + '\n';
}

}  // namespace

void OnlineCases::save(const std::string& place, const SavedCall& call, const ReceivedTensors& tensors) {
  if (saved_ >= kMostSaved) throw IoError(folder_, "holds 16 GiB of calls that are wrong: no more are saved");
  if (place != place_) calls_.clear();
  place_ = place;
  const std::string folder = folder_ + '/' + place;
  const std::string tensor_folder = folder + "/dump_tensor_data";
  create_directories(tensor_folder);
  for (const auto& [name, stored] : tensors.all()) {
    const std::vector<std::uint64_t> shape(stored.shape.begin(), stored.shape.end());
    const std::uint64_t size = static_cast<std::uint64_t>(stored.numel()) * tensor::info(stored.dtype).size;
    saved_ += size;
    const ByteSource& bytes = *stored.storage;
    save_tensor(tensor_folder + '/' + name, stored.dtype, shape, size,
                [&bytes](std::uint64_t at, std::span<std::byte> out) {
                  bytes.read_at(at, out);
                  return true;
                });
  }
  calls_.insert(std::ranges::upper_bound(calls_, call.order, {}, &SavedCall::order), call);
  write_json(folder + "/stack.json", stack_text(calls_));
  write_json(folder + "/dump.json", dump_text(calls_, tensor_folder));
  if (first_dump_.empty()) first_dump_ = folder + "/dump.json";
}

}  // namespace msprobe::precheck
