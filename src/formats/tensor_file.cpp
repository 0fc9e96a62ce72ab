// SPDX-License-Identifier: Apache-2.0
#include "formats/tensor_file.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "formats/npy.hpp"
#include "formats/torch_file.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::formats {

StoredTensor open_tensor(std::shared_ptr<const ByteSource> file) {
  std::array<char, 4> bytes{};
  const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), file->size()));
  if (length == 0) throw FormatError(display(file->name()), "an empty file");
  file->read_at(0, std::as_writable_bytes(std::span(bytes).first(length)));
  const std::string_view start(bytes.data(), length);
  if (start == "\x93NUM") return open_npy(std::move(file));
  // The legacy form is a pickle of protocol 2 or later: PROTO, then the version.
  if (start == "PK\x03\x04" || start.front() == '\x80') return open_torch_tensor(std::move(file));
  throw FormatError(display(file->name()), "neither a .npy nor a .pt file, by its first bytes");
}

}  // namespace msprobe::formats
