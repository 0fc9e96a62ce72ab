// SPDX-License-Identifier: Apache-2.0
#include "dump/saved_arrays.hpp"

#include <filesystem>

#include "dump/tree.hpp"
#include "support/interrupt.hpp"
#include "support/text.hpp"

namespace msprobe::dump {
namespace {

/// 1 of `x.1.npy`, 5 of `tag2_5.npy`; 0 of other names. `mark` is the last thing ahead of the number.
std::int64_t id_of(std::string_view name, char mark) {
  name.remove_suffix(4);
  const std::size_t at = name.rfind(mark);
  if (at == std::string_view::npos) return mark == '.' ? number_after(name, "").value_or(0) : 0;
  return number_after(name.substr(at + 1), "").value_or(0);
}

class SavedFinder {
 public:
  explicit SavedFinder(SavedSearch& search) : search_(search) {}

  void run(const std::string& data) {
    for (const std::string& tag : list(data).folders) {
      SavedArrays arrays;
      const std::string tag_folder = data + "/" + tag;
      numbered(tag_folder, list(tag_folder), "step", [&](const std::string& step, std::int64_t step_number) {
        numbered(step, list(step), "rank", [&](const std::string& rank, std::int64_t rank_number) {
          const Listing listing = list(rank);
          add(rank, listing, '_', {step_number, rank_number, 0, 0}, arrays);
          numbered(rank, listing, "micro_step", [&](const std::string& micro, std::int64_t number) {
            add(micro, list(micro), '.', {step_number, rank_number, number, 0}, arrays);
          });
        });
      });
      if (!arrays.empty()) search_.tags.emplace(tag, std::move(arrays));
    }
    if (!search_.problem.empty()) search_.tags.clear();
  }

 private:
  /// Nothing is in a folder that cannot be read.
  Listing list(const std::string& folder) {
    check_interrupt();
    std::error_code error;
    Listing listing = list_folder(folder, error);
    if (error && search_.problem.empty()) {
      search_.problem = display(folder) + ": " + error.message();
      search_.unreadable = true;
    }
    return listing;
  }

  template <typename Visit>
  static void numbered(const std::string& folder, const Listing& listing, std::string_view prefix,
                       Visit&& visit) {
    for (const std::string& name : listing.folders) {
      if (const auto number = number_after(name, prefix)) visit(folder + "/" + name, *number);
    }
  }

  static void add(const std::string& folder, const Listing& listing, char mark, SavedKey key,
                  SavedArrays& arrays) {
    for (const std::string& name : listing.files) {
      if (!name.ends_with(".npy")) continue;
      key[3] = id_of(name, mark);
      arrays.insert_or_assign(key, folder + "/" + name);
    }
  }

  SavedSearch& search_;
};

}  // namespace

SavedSearch find_saved_arrays(const std::string& root) {
  SavedSearch search;
  std::error_code ignored;
  if (std::filesystem::is_directory(root + "/data", ignored)) SavedFinder(search).run(root + "/data");
  return search;
}

}  // namespace msprobe::dump
