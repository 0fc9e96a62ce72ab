// SPDX-License-Identifier: Apache-2.0
#include "formats/npz.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "formats/npy.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::formats {
namespace {

constexpr std::string_view kSuffix = ".npy";

}  // namespace

NpzFile::NpzFile(std::shared_ptr<const ByteSource> file) : file_name_(file->name()), zip_(std::move(file)) {
  names_.reserve(zip_.entries().size());
  for (const archive::ZipEntry& entry : zip_.entries()) {
    std::string_view name = entry.name;
    if (name.ends_with(kSuffix)) name.remove_suffix(kSuffix.size());
    names_.emplace_back(name);
  }
  // `a` and `a.npy` are two members, but one name.
  std::vector<std::string_view> sorted(names_.begin(), names_.end());
  std::ranges::sort(sorted);
  const auto twin = std::adjacent_find(sorted.begin(), sorted.end());
  if (twin != sorted.end()) {
    throw FormatError(display(file_name_), fmt::format("refused: two arrays are named {}", display(*twin)));
  }
}

StoredTensor NpzFile::tensor(std::size_t index) const {
  return open_npy(zip_.open(entry(index)));
}

}  // namespace msprobe::formats
