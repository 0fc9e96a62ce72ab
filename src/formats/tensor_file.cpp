// SPDX-License-Identifier: Apache-2.0
#include "formats/tensor_file.hpp"

#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>

#include "formats/npy.hpp"
#include "formats/npz.hpp"
#include "formats/safetensors.hpp"
#include "formats/torch_file.hpp"
#include "support/error.hpp"
#include "support/little_endian.hpp"
#include "support/text.hpp"

namespace msprobe::formats {

namespace {

/// Is the first member of this zip archive an array of NumPy? This distinguishes `.npz` from `.pt` without
/// reading the archive twice.
bool begins_with_array(const ByteSource& file) {
  constexpr std::uint64_t kHeader = 30;
  constexpr std::size_t kNameLength = 26;
  if (file.size() < kHeader) return false;
  std::array<std::byte, kHeader> header{};
  file.read_at(0, header);
  const auto length = load_le<std::uint16_t>(header.data() + kNameLength);
  if (length > file.size() - kHeader) return false;
  return read_text(file, kHeader, length).ends_with(".npy");
}

StoredTensor only_tensor(const TensorSet& set, const ByteSource& file) {
  if (set.size() != 1) {
    throw FormatError(display(file.name()), fmt::format("{} tensors, but one is expected", set.size()));
  }
  return set.tensor(0);
}

}  // namespace

StoredTensor open_tensor(std::shared_ptr<const ByteSource> file) {
  const std::string start = first_bytes(*file, 4);
  if (start.empty()) throw FormatError(display(file->name()), "an empty file");
  if (start == "\x93NUM") return open_npy(std::move(file));
  if (start == "PK\x03\x04" && begins_with_array(*file)) return only_tensor(NpzFile(file), *file);
  // The length of its header comes first, which may look like a pickle.
  if (looks_like_safetensors(*file)) return only_tensor(SafetensorsFile(file), *file);
  // The legacy form is a pickle of protocol 2 or later: PROTO, then the version.
  if (start == "PK\x03\x04" || start.front() == '\x80') return open_torch_tensor(file);
  throw FormatError(display(file->name()), "not a .npy, .npz, .safetensors or .pt file, by its first bytes");
}

}  // namespace msprobe::formats
