// SPDX-License-Identifier: Apache-2.0
#include "collector/bench.hpp"

#include <filesystem>
#include <system_error>
#include <utility>

#include "dump/dump_json.hpp"
#include "dump/recorded_call.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::collector {
namespace {

namespace fs = std::filesystem;

/// The folder of the reference: that of the same rank; of processes without ranks the only one.
std::string reference_folder(const std::string& step_folder, const std::string& leaf) {
  if (!leaf.starts_with("proc")) return step_folder + '/' + leaf;
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator entry(step_folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().filename().string().starts_with("proc")) found.push_back(entry->path().string());
  }
  if (found.size() != 1)
    throw IoError(display(step_folder), "bench_path must contain exactly one folder proc<number>");
  return found[0];
}

}  // namespace

Bench::Bench(const std::string& path, const std::string& step, const std::string& leaf) {
  const std::string file = reference_folder(path + '/' + step, leaf) + "/dump.json";
  dump::read_dump_json(*open_file(file), [&](std::string_view name, const dump::Entry& entry) {
    if (!entry.is(0, dump::NodeKind::object)) return;
    Reference reference;
    for (const bool output : {false, true}) {
      const dump::Entry::Index list = entry.find(0, output ? "output" : "input_args");
      if (!entry.is(list, dump::NodeKind::array)) continue;
      std::uint64_t index = 0;
      entry.children(list, [&](dump::Entry::Index item) {
        const std::uint64_t place = index++;
        const dump::TensorRecord record = dump::read_tensor(entry, item);
        if (record.type != "torch.Tensor") return;
        (output ? reference.outputs : reference.inputs)
            .emplace(place, Tensor{std::string(entry.string(item, "md5")),
                                   record.shape.value_or(std::vector<std::int64_t>())});
      });
    }
    entries_.insert_or_assign(std::string(name), std::move(reference));
  });
}

bool Bench::differs(const std::string& entry, const std::vector<SeenTensor>& seen) const {
  const auto found = entries_.find(entry);
  if (found == entries_.end()) return false;
  const Reference& reference = found->second;
  std::size_t same_inputs = 0;
  bool other_output = false;
  for (const SeenTensor& tensor : seen) {
    const auto& side = tensor.output ? reference.outputs : reference.inputs;
    const auto wanted = side.find(tensor.index);
    if (wanted == side.end()) continue;
    const bool same = wanted->second.md5 == tensor.md5;
    if (tensor.output) {
      other_output = other_output || (!same && wanted->second.shape == tensor.shape);
    } else if (!same) {
      return false;
    } else {
      ++same_inputs;
    }
  }
  return other_output && same_inputs == reference.inputs.size();
}

}  // namespace msprobe::collector
