// SPDX-License-Identifier: Apache-2.0
#include "dump/data_size.hpp"

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>

#include "dump/side.hpp"
#include "support/folder.hpp"

namespace msprobe::dump {

std::uint64_t estimated_data_bytes(const RankDump& rank) {
  constexpr std::size_t kLooked = 64;
  const std::string folder = tensor_directory_of(rank);
  std::error_code error;
  const Listing listing = list_folder(folder, error);
  if (error || listing.files.empty()) return 0;
  // The sample is spread over all names, because neighbours often have the same size.
  const std::size_t looked = std::min(kLooked, listing.files.size());
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < looked; ++i) {
    const std::string& name = listing.files[i * listing.files.size() / looked];
    const std::uintmax_t size = std::filesystem::file_size(folder + "/" + name, error);
    if (!error) bytes += size;
  }
  return bytes / looked * listing.files.size();
}

}  // namespace msprobe::dump
