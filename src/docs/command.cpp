// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "docs/pages.hpp"
#include "report/terminal.hpp"
#include "support/byte_source.hpp"
#include "support/command.hpp"
#include "support/error.hpp"
#include "support/option_list.hpp"
#include "support/output_file.hpp"
#include "support/text.hpp"

namespace msprobe::docs {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{16} << 20;  // of a page

/// The reader's pager takes the place of this program; returns where none can be started.
void open_in_pager(const std::string& path) {
  const char* pager = std::getenv("PAGER");
  if (pager == nullptr || *pager == '\0') {
    ::execlp("less", "less", "--", path.c_str(), nullptr);
    return;
  }
  // It may have arguments, so a shell takes it apart.
  const std::string script = fmt::format("exec {} \"$1\"", pager);
  ::execl("/bin/sh", "sh", "-c", script.c_str(), "sh", path.c_str(), nullptr);
}

class DocsCommand final : public Command {
 public:
  std::string_view name() const override { return "docs"; }
  std::string_view summary() const override { return "List the documents of msprobe, or show one"; }

  void declare(OptionList& options) override {
    options.add("page=PAGE", page_, "The page to show, as in the list; without it all pages are listed")
        .details("On a terminal it is shown by $PAGER, or by `less`; anywhere else it is written as it is.");
    options.add_flag("--path", path_, "Print the path of the page, or of the folder with all of them");
  }

  Outcome run(const Context&) override {
    const std::optional<std::string> folder = find_folder();
    if (!folder) {
      const std::string what = page_.empty() ? "the documents" : "the page " + display(page_);
      throw UsageError(what + " cannot be shown: no documents are installed beside this program",
                       "MSPROBE_DOCS=FOLDER names a folder with docs/, as that of the sources");
    }
    const std::vector<DocsPage> pages = list_pages(*folder);
    if (page_.empty()) {
      print(path_ ? *folder + "\n" : list_text(pages));
      return Outcome::clean;
    }
    const auto found = std::ranges::find(pages, page_, &DocsPage::name);
    if (found == pages.end())
      throw UsageError("there is no page " + display(page_), "'msprobe docs' lists the pages");
    if (path_) {
      print(found->path + "\n");
      return Outcome::clean;
    }
    const std::string text = read_all(*open_file(found->path), kMostBytes);
    if (report::is_terminal(STDOUT_FILENO)) open_in_pager(found->path);
    print(text);
    return Outcome::clean;
  }

 private:
  static void print(const std::string& text) { write_all(STDOUT_FILENO, text, "standard output"); }

  static std::string list_text(const std::vector<DocsPage>& pages) {
    std::size_t width = 0;
    for (const DocsPage& page : pages) width = std::max(width, page.name.size());
    std::string text;
    for (const DocsPage& page : pages) text += fmt::format("{:<{}}  {}\n", page.name, width, page.title);
    return text;
  }

  std::string page_;
  bool path_ = false;
};

}  // namespace

MadeCommand make_command() {
  return std::make_unique<DocsCommand>();
}

}  // namespace msprobe::docs
