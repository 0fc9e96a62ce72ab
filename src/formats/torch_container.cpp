// SPDX-License-Identifier: Apache-2.0
#include "formats/torch_container.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "archive/zip_reader.hpp"
#include "formats/limits.hpp"
#include "support/error.hpp"
#include "support/little_endian.hpp"
#include "support/text.hpp"

namespace msprobe::formats {
namespace {

// 0x1950a86a20f9469cfc6c, the number a legacy file starts with, as the pickle spells it.
constexpr std::string_view kLegacyMagic("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 10);
constexpr std::int64_t kLegacyProtocol = 1001;

[[noreturn]] void fail(const std::string& file, const std::string& reason) {
  throw FormatError(display(file), reason);
}

// ("module", class, file, source): a class with its source text. Legacy files have one for each class of a
// module that was saved whole.
bool is_module_id(const Pickle& pickle, PickleRef persistent) {
  const PickleRef id = pickle.persistent_id(persistent);
  if (pickle.kind(id) != PickleKind::tuple || pickle.items(id).empty()) return false;
  const PickleRef type = pickle.items(id)[0];
  return pickle.kind(type) == PickleKind::text && pickle.text(type) == "module";
}

std::uint64_t count_of(const Pickle& pickle, PickleRef ref, const std::string& file) {
  const std::int64_t value = pickle.integer(ref);
  if (value < 0) fail(file, "a storage of negative size");
  return static_cast<std::uint64_t>(value);
}

class ZipContainer final : public TorchContainer {
 public:
  ZipContainer(std::shared_ptr<const ByteSource> file, const PickleLimits& limits)
      : file_(std::move(file)), zip_(file_) {
    if (zip_.entries().empty()) fail(file_->name(), "an empty zip archive, not a PyTorch file");
    // All records are in one folder, named like the file at the time of writing; the first record shows the
    // name.
    const std::string& first = zip_.entries().front().name;
    root_ = first.substr(0, std::min(first.find('/'), first.size())) + '/';
    if (zip_.find(root_ + "constants.pkl") != nullptr) {
      fail(file_->name(), "a TorchScript archive, not a saved tensor");
    }
    const archive::ZipEntry* entry = zip_.find(root_ + "data.pkl");
    if (entry == nullptr) fail(file_->name(), "a zip archive without data.pkl, not a PyTorch file");
    const bool packed = entry->method != archive::ZipMethod::stored;
    if (entry->size > limits.max_bytes ||
        (packed && entry->size > MemoryAllowance::unpacked(file_->size()))) {
      fail(file_->name(), fmt::format("refused: data.pkl of {} bytes", entry->size));
    }
    const auto data = zip_.open(*entry, limits.max_bytes);
    read_byte_order();
    PickleLimits here = limits;
    here.file_size = file_->size();
    pickle_ = load_pickle(*data, 0, here);
    if (pickle_.end() != data->size()) fail(file_->name(), "refused: bytes follow the end of its pickle");
  }

  const Pickle& pickle() const override { return pickle_; }
  bool big_endian() const override { return big_endian_; }

  std::shared_ptr<const ByteSource> storage(const TorchStorageId& id) const override {
    const archive::ZipEntry* entry = zip_.find(root_ + "data/" + id.key);
    if (entry == nullptr) fail(file_->name(), fmt::format("storage {} is not in the file", display(id.key)));
    if (entry->size != id.bytes) {
      fail(file_->name(), fmt::format("storage {} has {} bytes, but the pickle says {}", display(id.key),
                                      entry->size, id.bytes));
    }
    return zip_.open(*entry);
  }

 private:
  void read_byte_order() {
    const archive::ZipEntry* entry = zip_.find(root_ + "byteorder");
    if (entry == nullptr) return;  // PyTorch before 2.1: always little
    constexpr std::uint64_t kLongest = 16;
    const auto source = zip_.open(*entry, kLongest);
    const std::string text = read_all(*source, kLongest);
    if (text != "little" && text != "big") fail(file_->name(), "its byte order is neither little nor big");
    big_endian_ = text == "big";
  }

  std::shared_ptr<const ByteSource> file_;
  archive::ZipReader zip_;
  std::string root_;
  bool big_endian_ = false;
  Pickle pickle_;
};

class LegacyContainer final : public TorchContainer {
 public:
  LegacyContainer(std::shared_ptr<const ByteSource> file, const PickleLimits& limits)
      : file_(std::move(file)) {
    const Pickle magic = load_pickle(*file_, 0, limits);
    const bool is_magic =
        magic.kind(magic.root()) == PickleKind::big_integer && magic.raw(magic.root()) == kLegacyMagic;
    if (!is_magic) fail(file_->name(), "a pickle, but not a PyTorch file: its magic number is missing");
    const Pickle protocol = load_pickle(*file_, magic.end(), limits);
    if (protocol.integer(protocol.root()) != kLegacyProtocol) {
      fail(file_->name(), "a PyTorch file of an unknown protocol");
    }
    const Pickle system = load_pickle(*file_, protocol.end(), limits);
    if (const auto little = system.find(system.root(), "little_endian"))
      big_endian_ = !system.boolean(*little);
    pickle_ = load_pickle(*file_, system.end(), limits);
    const Pickle keys = load_pickle(*file_, pickle_.end(), limits);
    place_storages(keys);
  }

  const Pickle& pickle() const override { return pickle_; }
  bool big_endian() const override { return big_endian_; }

  std::shared_ptr<const ByteSource> storage(const TorchStorageId& id) const override {
    const auto found = places_.find(id.key);
    if (found == places_.end())
      fail(file_->name(), fmt::format("storage {} is not in the file", display(id.key)));
    return slice_source(file_, found->second.offset, found->second.bytes);
  }

 private:
  struct StorageBytes {
    std::uint64_t bytes = 0;
    std::uint64_t item_size = 1;
    std::uint64_t offset = 0;  // 0 until its bytes are found
  };

  // A legacy file stores only element counts with the raw bytes, so the length of each storage comes from the
  // ids in the pickle.
  void place_storages(const Pickle& keys) {
    for (const PickleRef ref : pickle_.persistents()) {
      if (is_module_id(pickle_, ref)) continue;
      const TorchStorageId id = read_storage_id(pickle_, ref, file_->name());
      const std::uint64_t item_size = id.dtype ? tensor::info(*id.dtype).size : 1;
      const auto [at, is_new] =
          places_.try_emplace(id.key, StorageBytes{.bytes = id.bytes, .item_size = item_size});
      if (!is_new && (at->second.bytes != id.bytes || at->second.item_size != item_size)) {
        fail(file_->name(), fmt::format("storage {} has two sizes", display(id.key)));
      }
    }
    std::uint64_t position = keys.end();
    for (const PickleRef ref : keys.items(keys.root())) {
      const auto found = places_.find(keys.text(ref));
      if (found == places_.end() || found->second.offset != 0) {
        fail(file_->name(), "its list of storages does not match its pickle");
      }
      StorageBytes& place = found->second;
      std::array<std::byte, 8> raw{};
      file_->read_at(position, raw);
      if (big_endian_) std::reverse(raw.begin(), raw.end());
      const auto count = load_le<std::uint64_t>(raw.data());
      // The test divides, since the declared count times the item size could overflow.
      if (count != place.bytes / place.item_size) {
        fail(file_->name(), fmt::format("storage {} has {} elements, but the pickle says {}",
                                        display(found->first), count, place.bytes / place.item_size));
      }
      position += raw.size();
      if (place.bytes > file_->size() - position) fail(file_->name(), "truncated: a storage is cut off");
      place.offset = position;
      position += place.bytes;
    }
    const bool all_found = std::ranges::all_of(places_, [](const auto& p) { return p.second.offset != 0; });
    if (!all_found) fail(file_->name(), "its list of storages does not match its pickle");
    if (position != file_->size()) fail(file_->name(), "refused: bytes follow its last storage");
  }

  std::shared_ptr<const ByteSource> file_;
  bool big_endian_ = false;
  Pickle pickle_;
  std::map<std::string, StorageBytes, std::less<>> places_;
};

}  // namespace

TorchStorageId read_storage_id(const Pickle& pickle, PickleRef persistent, const std::string& file) {
  // ("storage", class, key, location, count) and, in legacy files, None or (key, offset, count) of a part.
  const auto id = pickle.items(pickle.persistent_id(persistent));
  if (id.size() < 5 || id.size() > 6 || pickle.text(id[0]) != "storage") {
    fail(file, "its pickle refers to something that is not a storage");
  }
  const PickleGlobal& type = pickle.global(id[1]);
  TorchStorageId result;
  result.class_name = type.full_name();
  // Devices have their own storage classes in their own modules (torch.cuda.FloatStorage).
  const bool from_torch =
      type.module == "torch" || type.module.starts_with("torch.") || type.module.starts_with("torch_npu");
  const bool untyped = type.name == "UntypedStorage";
  if (from_torch && !untyped) result.dtype = tensor::dtype_from_storage_class(type.name);
  if (!from_torch || (!untyped && !result.dtype)) {
    fail(file, fmt::format("{} is not supported", display(result.class_name)));
  }
  result.key = pickle.text(id[2]);
  const std::uint64_t item_size = result.dtype ? tensor::info(*result.dtype).size : 1;
  const std::uint64_t count = count_of(pickle, id[4], file);
  if (__builtin_mul_overflow(count, item_size, &result.bytes))
    fail(file, "a storage of more bytes than 64 bits can count");
  result.view_bytes = result.bytes;
  if (id.size() == 6 && pickle.kind(id[5]) != PickleKind::none) {
    const auto view = pickle.items(id[5]);
    if (view.size() != 3) fail(file, "a storage view is malformed");
    const std::uint64_t offset = count_of(pickle, view[1], file);
    const std::uint64_t length = count_of(pickle, view[2], file);
    if (offset > count || length > count - offset) fail(file, "a storage view reaches beyond its storage");
    result.view_offset = offset * item_size;
    result.view_bytes = length * item_size;
  }
  return result;
}

std::unique_ptr<TorchContainer> open_torch_container(std::shared_ptr<const ByteSource> file,
                                                     const PickleLimits& limits) {
  if (first_bytes(*file, 4) == "PK\x03\x04") return std::make_unique<ZipContainer>(std::move(file), limits);
  return std::make_unique<LegacyContainer>(std::move(file), limits);
}

}  // namespace msprobe::formats
