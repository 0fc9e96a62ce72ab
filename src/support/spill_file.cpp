// SPDX-License-Identifier: Apache-2.0
#include "support/spill_file.hpp"

#include <filesystem>

namespace msprobe {
namespace {

/// Returns an empty text for the folder of temporary files.
std::string folder_for(const std::string& output) {
  if (output == "-") return {};
  const std::string folder = std::filesystem::path(output).parent_path().string();
  return folder.empty() ? "." : folder;
}

}  // namespace

SpillFile::Piece SpillFile::add(std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  if (!file_) file_.emplace(OutputFile::unnamed(folder_for(output_)));
  const Piece piece = {file_->size(), bytes.size()};
  file_->write(bytes);
  return piece;
}

std::string SpillFile::read(const Piece& piece) {
  std::string bytes(piece.size, '\0');
  const std::lock_guard lock(mutex_);
  file_.value().read_at(piece.offset, bytes);
  return bytes;
}

}  // namespace msprobe
