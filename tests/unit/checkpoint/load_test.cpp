// SPDX-License-Identifier: Apache-2.0
// Checkpoints that lie, and what the rich one holds. Honest ones are in tests/cli/golden_ckpt.py.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/loaders.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "tensor/convert.hpp"
#include "unit/checkpoint/memory_tensor.hpp"
#include "unit/formats/pt_builder.hpp"
#include "unit/support/scratch_directory.hpp"
#include "unit/support/source_root.hpp"

namespace msprobe::checkpoint::load_test {
namespace {

namespace fs = std::filesystem;

fs::path data_folder() {
  return test::in_source("tests/data");
}

class Scratch : public test::ScratchDirectory {
 public:
  void copy(const fs::path& from, const std::string& name) const {
    fs::create_directories(fs::path(*this / name).parent_path());
    fs::copy(from, *this / name, fs::copy_options::recursive);
  }
};

std::string complaint(const std::string& path, const CheckpointLoadOptions& options = {}) {
  try {
    load(path, options);
  } catch (const Error& error) {
    const std::string message = error.what();
    CHECK(message.find('\n') == std::string::npos);
    return message;
  }
  return {};
}

#define CHECK_COMPLAINS(path, words)                                                       \
  do {                                                                                     \
    const std::string message_ = complaint(path);                                          \
    CHECK_MESSAGE(message_.find(words) != std::string::npos, "got: '" << message_ << "'"); \
  } while (false)

const CheckpointEntry& find(const Checkpoint& checkpoint, const std::string& name) {
  const auto found = std::find_if(checkpoint.entries.begin(), checkpoint.entries.end(),
                                  [&](const CheckpointEntry& entry) { return entry.parameter.name == name; });
  REQUIRE_MESSAGE(found != checkpoint.entries.end(), name);
  return *found;
}

std::string read_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// A safetensors file of one float32 tensor with one element.
std::string safetensors(const std::string& name) {
  std::string header = "{\"" + name + "\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";
  std::string length(8, '\0');
  length[0] = static_cast<char>(header.size());
  return length + header + "abcd";
}

/// Everything that is inside a parameter, as float.
std::vector<float> values_of(const Parameter& parameter) {
  ParameterReader reader(parameter);
  const auto count = static_cast<std::size_t>(reader.remaining());
  std::vector<std::byte> raw(count * tensor::info(parameter.dtype).size);
  reader.read(raw);
  std::vector<double> wide(count);
  tensor::to_double(parameter.dtype, raw, wide);
  return {wide.begin(), wide.end()};
}

}  // namespace

TEST_CASE("everything that a real rank file may hold is decoded, element by element") {
  const fs::path golden = data_folder() / "golden" / "ckpt";
  const Checkpoint rich = load((golden / "checkpoints" / "rich").string(), {});
  const nlohmann::json expected = nlohmann::json::parse(read_text(golden / "rich_expected" / "tensors.json"));
  std::size_t tensors = 0;
  for (const auto& [name, tensor] : expected.items()) {
    CAPTURE(name);
    if (!tensor.is_object()) continue;  // extra state
    ++tensors;
    const CheckpointEntry& entry = find(rich, name);
    CHECK(entry.problem.empty());
    CHECK(tensor::info(entry.parameter.dtype).name == tensor["dtype"].get<std::string>());
    CHECK(entry.parameter.shape == tensor["shape"].get<Shape>());
    CHECK(values_of(entry.parameter) == tensor["values_f32"].get<std::vector<float>>());
  }
  CHECK(rich.entries.size() == tensors);
  CHECK(rich.architecture.heads == 4);
  // Every global of the pickle was met, none was more than a name.
  const nlohmann::json pickle = nlohmann::json::parse(read_text(golden / "rich_expected" / "pickle.json"));
  CHECK(!pickle.empty());
}

TEST_CASE("optimizer state is left out unless asked for, and then known by its rank") {
  const std::string rich = (data_folder() / "golden" / "ckpt" / "checkpoints" / "rich").string();
  const Checkpoint with = load(rich, {.optimizer = true, .allow_partial = false});
  CHECK(with.entries.size() > load(rich, {}).entries.size());
  CHECK(std::any_of(with.entries.begin(), with.entries.end(), [](const CheckpointEntry& entry) {
    return entry.parameter.name.starts_with("mp_rank_00.optimizer.");
  }));
}

TEST_CASE("names in an index do not lead out of the folder") {
  const Scratch scratch;
  scratch.put("secret.safetensors", safetensors("w"));
  const auto index = [&](const std::string& file) {
    scratch.put("in/model.safetensors.index.json", nlohmann::json({{"weight_map", {{"w", file}}}}).dump());
    return scratch / "in";
  };
  CHECK(!complaint(index("../secret.safetensors")).empty());
  CHECK(!complaint(index(scratch / "secret.safetensors")).empty());
  CHECK(!complaint(index("..")).empty());
  CHECK(!complaint(index("")).empty());
  fs::create_directory_symlink(scratch.path(), scratch / "in/link");
  CHECK(!complaint(index("link/secret.safetensors")).empty());
  // Model caches store their files as links in the folder itself.
  fs::create_symlink(scratch / "secret.safetensors", scratch / "in/plain.safetensors");
  CHECK(complaint(index("plain.safetensors")).empty());
}

TEST_CASE("an index that does not fit its files") {
  const Scratch scratch;
  scratch.put("a.safetensors", safetensors("w"));
  scratch.put("model.safetensors.index.json",
              R"({"weight_map": {"w": "a.safetensors", "gone": "a.safetensors"}})");
  const Checkpoint checkpoint = load(scratch.path(), {});
  CHECK(find(checkpoint, "w").problem.empty());
  CHECK(find(checkpoint, "gone").problem.find("although the index places it here") != std::string::npos);
  for (const char* text :
       {"", "[]", "{}", R"({"weight_map": 3})", R"({"weight_map": {"w": 3}})", "{\"weight_map\": {"}) {
    scratch.put("model.safetensors.index.json", text);
    CHECK_COMPLAINS(scratch.path(), "model.safetensors.index.json: ");
  }
  const std::string deep(200'000, '[');
  scratch.put("model.safetensors.index.json", deep);
  CHECK_COMPLAINS(scratch.path(), "an index without a weight_map");
}

TEST_CASE("metadata that sends a reader out of its folder or beyond a file") {
  const Scratch scratch;
  const fs::path real = data_folder() / "ckpt" / "real" / "dcp4";
  scratch.copy(real, "dcp");
  const std::string metadata = read_text(real / ".metadata");
  const auto replaced = [&](const std::string& from, const std::string& to) {
    REQUIRE(from.size() == to.size());
    std::string text = metadata;
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
      text.replace(at, from.size(), to);
    }
    CHECK(text != metadata);
    scratch.put("dcp/.metadata", text);
    const Checkpoint checkpoint = load(scratch / "dcp", {});
    return static_cast<std::size_t>(
        std::count_if(checkpoint.entries.begin(), checkpoint.entries.end(),
                      [](const CheckpointEntry& entry) { return !entry.problem.empty(); }));
  };
  CHECK(replaced("__1_0.distcp", "../_0.distcp") > 0);
  CHECK(replaced("__1_0.distcp", "/_1_0.distcp") > 0);
  CHECK(replaced("__1_0.distcp", "__9_0.distcp") > 0);
  // A link out of the folder.
  scratch.put("outside", read_text(real / "__1_0.distcp"));
  fs::remove(scratch / "dcp/__1_0.distcp");
  fs::create_symlink(scratch / "outside", scratch / "dcp/__1_0.distcp");
  scratch.put("dcp/.metadata", metadata);
  const Checkpoint linked = load(scratch / "dcp", {});
  CHECK(std::any_of(linked.entries.begin(), linked.entries.end(),
                    [](const CheckpointEntry& e) { return !e.problem.empty(); }));
  // A file that is shorter than the metadata says is noticed when it is read.
  fs::remove(scratch / "dcp/__1_0.distcp");
  scratch.put("dcp/__1_0.distcp", read_text(real / "__1_0.distcp").substr(0, 1000));
  const Checkpoint cut = load(scratch / "dcp", {});
  std::size_t failures = 0;
  for (const CheckpointEntry& entry : cut.entries) {
    try {
      values_of(entry.parameter);
    } catch (const FormatError&) {
      ++failures;
    }
  }
  CHECK(failures > 0);
}

TEST_CASE("metadata that claims any number of layers costs nothing") {
  using formats::pickled;
  using Numbers = std::vector<std::int64_t>;
  const auto text = [](const std::string& value) { return pickled(value); };
  const auto tensor = [&](std::int64_t layers) {
    const std::string properties = "ca\nB\n)\x81}" + text("dtype") + "ctorch\nfloat32\nsb";
    const std::string chunk = "}" + text("offsets") + pickled(Numbers{0, 0}) + "s" + text("sizes") +
                              pickled(Numbers{layers, 1}) + "s";
    return "}" + text("properties") + properties + "s" + text("size") + pickled(Numbers{layers, 1}) + "s" +
           text("chunks") + "(" + chunk + "ls";
  };
  const auto place = [&](const std::string& name) {
    const std::string key =
        "ca\nB\n)\x81}" + text("fqn") + text(name) + "s" + text("offset") + pickled(Numbers{0, 0}) + "sb";
    return key + "}" + text("relative_path") + text("x.distcp") + "s" + text("offset") + pickled(0) + "s" +
           text("length") + pickled(1) + "s" + "s";
  };
  std::string tensors;
  std::string places;
  for (const auto& [name, layers] : {std::pair<std::string, std::int64_t>{"decoder.layers.a.w", 5},
                                     {"decoder.layers.b.w", std::int64_t{1} << 40},
                                     {"decoder.layers.c.w", 100'000},
                                     {"decoder.layers.d.w", 100'000}}) {
    tensors += text(name) + tensor(layers) + "s";
    places += place(name);
  }
  const Scratch scratch;
  scratch.put("common.pt", "");
  scratch.put("x.distcp", "x");
  scratch.put(".metadata", "\x80\x02}" + text("state_dict_metadata") + "}" + tensors + "s" +
                               text("storage_data") + "}" + places + "s.");
  const Checkpoint checkpoint = load(scratch.path(), {});
  // A small parameter is taken apart; one that is too large stays whole, as does one that exceeds the sum.
  CHECK(find(checkpoint, "decoder.layers.4.a.w").problem.empty());
  CHECK(find(checkpoint, "decoder.layers.b.w").parameter.shape == Shape{std::int64_t{1} << 40, 1});
  CHECK(checkpoint.entries.size() == 5 + 1 + 100'000 + 1);
}

TEST_CASE("folders that are no checkpoint, or half of one") {
  const Scratch scratch;
  CHECK_COMPLAINS(scratch / "missing", "No such file or directory");
  CHECK_COMPLAINS(scratch.path(), "no checkpoint here");
  scratch.put("latest_checkpointed_iteration.txt", "7\n");
  CHECK_COMPLAINS(scratch.path(), "iter_0000007: not found");
  scratch.put("latest_checkpointed_iteration.txt", "../../etc");
  CHECK_COMPLAINS(scratch.path(), "must be a number or 'release'");
  scratch.put("latest_checkpointed_iteration.txt", std::string(5000, '7'));
  CHECK_COMPLAINS(scratch.path(), "latest_checkpointed_iteration.txt: ");
  fs::remove(scratch / "latest_checkpointed_iteration.txt");
  scratch.put("mp_rank_00/model_optim_rng.pt", "rubbish");
  CHECK_COMPLAINS(scratch.path(), "mp_rank_00/model_optim_rng.pt: ");
  scratch.put("mp_rank_00_x/model_optim_rng.pt", "");
  CHECK_COMPLAINS(scratch.path(), "is not the name of a rank");
  fs::remove_all(scratch / "mp_rank_00_x");
  scratch.put("mp_rank_00_001/model_optim_rng.pt", "");
  CHECK_COMPLAINS(scratch.path(), "do not belong to the same layout");
  fs::remove_all(scratch / "mp_rank_00_001");
  fs::remove_all(scratch / "mp_rank_00");
  scratch.put("a.pt", "");
  scratch.put("b.pt", "");
  CHECK_COMPLAINS(scratch.path(), "several checkpoints here: name one of a.pt, b.pt, …");
}

TEST_CASE("a rank that is not there is an error, or its parameters are marked") {
  const Scratch scratch;
  const fs::path real = data_folder() / "ckpt" / "real" / "megatron_core" / "iter_0000010";
  scratch.copy(real, "iter");
  fs::remove(scratch / "iter/mp_rank_01_000/model_optim_rng.pt");
  CHECK_COMPLAINS(scratch / "iter", "mp_rank_01_000/model_optim_rng.pt: No such file");
  const Checkpoint partial = load(scratch / "iter", {.optimizer = false, .allow_partial = true});
  CHECK(find(partial, "embedding.word_embeddings.weight").problem == "mp_rank_01_000 has no part of it");
  CHECK(find(partial, "output_layer.weight").problem.empty());
  // Without all of a stage the layers after it cannot be numbered.
  fs::remove_all(scratch / "iter/mp_rank_00_000");
  CHECK(complaint(scratch / "iter", {.optimizer = false, .allow_partial = true}).find("pipeline stage 0") !=
        std::string::npos);
}

TEST_CASE("what looks like a checkpoint") {
  const fs::path data = data_folder();
  for (const char* yes :
       {"golden/ckpt/checkpoints/tp1pp1", "golden/ckpt/checkpoints/tp1pp1/iter_0000005", "ckpt/real/dcp4",
        "ckpt/real/sharded", "ckpt/real/plain.pt", "ckpt/mindspore.ckpt"}) {
    CHECK(looks_like_checkpoint((data / yes).string()));
  }
  for (const char* no : {"golden/ckpt/checkpoints", "missing", "golden/ckpt/README.md"}) {
    CHECK(!looks_like_checkpoint((data / no).string()));
  }
}

TEST_CASE("names that can do harm are reported, classes of numbers are not") {
  const fs::path golden = data_folder() / "golden" / "ckpt" / "checkpoints";
  const Checkpoint malicious = load((golden / "malicious").string(), {});
  REQUIRE(malicious.warnings.size() == 1);
  CHECK(malicious.warnings[0].find("its pickle names posix.system") != std::string::npos);
  CHECK(values_of(find(malicious, "w").parameter) == std::vector<float>{1, 1});
  CHECK(load((golden / "rich").string(), {}).warnings.empty());
}

}  // namespace msprobe::checkpoint::load_test
