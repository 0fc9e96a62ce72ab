// SPDX-License-Identifier: Apache-2.0
#include "support/output_folder.hpp"

#include <filesystem>

#include "support/error.hpp"
#include "support/folder.hpp"
#include "support/output_file.hpp"
#include "support/text.hpp"

namespace msprobe {

void check_output_folder(const std::string& folder) {
  namespace fs = std::filesystem;
  fs::path path(folder);
  std::error_code error;
  while (!path.empty() && !path_exists(path) && path != path.parent_path()) {
    if (fs::is_symlink(path, error)) throw IoError(display(path.string()), "is a dangling symbolic link");
    path = path.parent_path();
  }
  if (path.empty()) path = ".";
  if (!is_folder(path)) throw IoError(display(path.string()), "is not a directory");
  path /= "msprobe";
  while (is_folder(path)) path += "_";  // a clone may be there
  try {
    check_output(path.string());
  } catch (const IoError& refusal) {
    throw IoError(display(folder), std::string("no file can be written there: ") + refusal.what());
  }
}

}  // namespace msprobe
