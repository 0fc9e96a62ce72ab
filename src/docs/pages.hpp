// SPDX-License-Identifier: Apache-2.0
// Finds the documents that were installed with the program.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace msprobe::docs {

struct DocsPage {
  std::string name;   // path below docs/ without .md, or `skill`, as users type it
  std::string title;  // its first heading
  std::string path;
};

/// The folder of the documents: $MSPROBE_DOCS, ../share/doc/msprobe beside the program, or the sources around
/// a build folder.
std::optional<std::string> find_folder();

/// The pages below `folder`, sorted by name.
std::vector<DocsPage> list_pages(const std::string& folder);

}  // namespace msprobe::docs
