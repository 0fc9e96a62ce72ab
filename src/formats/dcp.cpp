// SPDX-License-Identifier: Apache-2.0
#include "formats/dcp.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <utility>

#include "formats/limits.hpp"
#include "formats/unpickler.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::formats {
namespace {

using Integers = std::vector<std::int64_t>;

class MetadataReader {
 public:
  explicit MetadataReader(const ByteSource& file)
      : name_(file.name()), pickle_(load_pickle(file)), allowance_(file.size()) {
    allowance_.take(pickle_.memory());
    if (pickle_.end() != file.size()) fail("refused: bytes follow the end of its pickle");
  }

  DcpMetadata run() {
    const auto root = record(pickle_.root());
    const auto tensors = root ? member(*root, "state_dict_metadata") : std::nullopt;
    const auto storage = root ? member(*root, "storage_data") : std::nullopt;
    if (!tensors || !storage)
      fail("not the metadata of a distributed checkpoint: required members are missing");
    read_places(*storage);
    DcpMetadata metadata;
    const auto pairs = pickle_.pairs(*tensors);
    for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
      std::string name(pickle_.text(pairs[i]));
      charge(name.size(), 0);
      const auto description = record(pairs[i + 1]);
      if (!description) fail(fmt::format("{} is not described", display(name)));
      const auto size = member(*description, "size");
      const auto chunks = member(*description, "chunks");
      if (!size || !chunks) {
        metadata.objects.push_back(std::move(name));
        continue;
      }
      metadata.tensors.push_back(tensor(std::move(name), *description, *size, *chunks));
    }
    metadata.pickle = std::move(pickle_);
    return metadata;
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const { throw FormatError(display(name_), reason); }

  // A few bytes can refer again to a tensor or a place that occurs elsewhere.
  void charge(std::size_t text_size, std::size_t numbers) {
    if (!allowance_.take_tensor(text_size, numbers))
      fail("refused: more tensors and storage entries than a file of this size can hold");
  }

  /// The members of a dataclass, or of a plain dict.
  std::optional<PickleRef> record(PickleRef ref) const {
    if (pickle_.kind(ref) == PickleKind::dict) return ref;
    if (pickle_.kind(ref) != PickleKind::object) return {};
    const PickleObject& object = pickle_.object(ref);
    if (object.state == kNoPickleRef) return kNoPickleRef;  // an object without members, such as bytes
    if (pickle_.kind(object.state) == PickleKind::dict) return object.state;
    // A frozen dataclass with slots: (None, members).
    if (pickle_.kind(object.state) == PickleKind::tuple) {
      const auto parts = pickle_.items(object.state);
      if (parts.size() == 2 && pickle_.kind(parts[1]) == PickleKind::dict) return parts[1];
    }
    return {};
  }

  std::optional<PickleRef> member(PickleRef dict, std::string_view name) const {
    if (dict == kNoPickleRef) return {};
    return pickle_.find(dict, name);
  }

  Integers integers(PickleRef ref) const {
    const auto items = pickle_.items(ref);
    if (items.size() > kMaxRank) fail(fmt::format("refused: a tensor of {} dimensions", items.size()));
    Integers values;
    for (const PickleRef item : items) values.push_back(pickle_.integer(item));
    return values;
  }

  std::uint64_t count(PickleRef ref) const {
    const std::int64_t value = pickle_.integer(ref);
    if (value < 0) fail("a storage entry at a negative offset");
    return static_cast<std::uint64_t>(value);
  }

  void read_places(PickleRef storage) {
    const auto pairs = pickle_.pairs(storage);
    for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
      const auto index = record(pairs[i]);
      const auto info = record(pairs[i + 1]);
      const auto name = index ? member(*index, "fqn") : std::nullopt;
      if (!name || !info) fail("one of its storage entries is malformed");
      const auto offset = member(*index, "offset");
      const auto file = member(*info, "relative_path");
      const auto begin = member(*info, "offset");
      const auto length = member(*info, "length");
      if (!file || !begin || !length) fail("one of its storage entries is malformed");
      DcpPlace place;
      place.file = pickle_.text(*file);
      place.offset = count(*begin);
      place.length = count(*length);
      const auto transforms = member(*info, "transform_descriptors");
      if (transforms && pickle_.kind(*transforms) != PickleKind::none &&
          !pickle_.items(*transforms).empty()) {
        place.problem = "its bytes are transformed (for example compressed), which is not supported";
      }
      Integers key;
      if (offset && pickle_.kind(*offset) != PickleKind::none) key = integers(*offset);
      charge(pickle_.text(*name).size() + place.file.size(), key.size());
      places_[{std::string(pickle_.text(*name)), std::move(key)}] = std::move(place);
    }
  }

  std::optional<tensor::DType> dtype_of(PickleRef description) const {
    const auto properties = member(description, "properties");
    if (!properties || pickle_.kind(*properties) != PickleKind::object) return {};
    const PickleRef state = pickle_.object(*properties).state;
    if (state == kNoPickleRef) return {};
    std::optional<PickleRef> dtype;
    if (pickle_.kind(state) == PickleKind::tuple && !pickle_.items(state).empty())
      dtype = pickle_.items(state)[0];
    if (pickle_.kind(state) == PickleKind::dict) dtype = pickle_.find(state, "dtype");
    if (!dtype || pickle_.kind(*dtype) != PickleKind::global) return {};
    const PickleGlobal& global = pickle_.global(*dtype);
    return global.module == "torch" ? tensor::dtype_from_torch(global.name) : std::nullopt;
  }

  DcpTensor tensor(std::string name, PickleRef description, PickleRef size, PickleRef chunks) {
    DcpTensor tensor;
    tensor.name = std::move(name);
    tensor.size = integers(size);
    const auto dtype = dtype_of(description);
    if (dtype) {
      tensor.dtype = *dtype;
    } else {
      tensor.problem = "its element type is not supported";
    }
    std::map<std::pair<Integers, Integers>, bool> seen;
    for (const PickleRef ref : pickle_.items(chunks)) {
      const auto members = record(ref);
      const auto offsets = members ? member(*members, "offsets") : std::nullopt;
      const auto sizes = members ? member(*members, "sizes") : std::nullopt;
      if (!offsets || !sizes) fail(fmt::format("a chunk of {} is malformed", display(tensor.name)));
      DcpChunk chunk;
      chunk.offsets = integers(*offsets);
      chunk.sizes = integers(*sizes);
      if (chunk.offsets.size() != tensor.size.size() || chunk.sizes.size() != tensor.size.size()) {
        tensor.problem = "one of its chunks has a different number of dimensions";
        break;
      }
      // Every rank that holds a copy may have announced it.
      if (!seen.try_emplace({chunk.offsets, chunk.sizes}, true).second) continue;
      const auto place = places_.find({tensor.name, chunk.offsets});
      if (place == places_.end()) {
        chunk.problem = "one of its chunks is not in any file";
      } else {
        static_cast<DcpPlace&>(chunk) = place->second;
      }
      charge(chunk.file.size(), 4 * tensor.size.size());
      tensor.chunks.push_back(std::move(chunk));
    }
    return tensor;
  }

  std::string name_;
  Pickle pickle_;
  MemoryAllowance allowance_;
  std::map<std::pair<std::string, Integers>, DcpPlace> places_;
};

}  // namespace

DcpMetadata read_dcp_metadata(const ByteSource& file) {
  return MetadataReader(file).run();
}

}  // namespace msprobe::formats
