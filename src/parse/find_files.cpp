// SPDX-License-Identifier: Apache-2.0
#include "parse/find_files.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>

#include "support/error.hpp"
#include "support/folder.hpp"
#include "support/interrupt.hpp"
#include "support/text.hpp"

namespace msprobe::parse {
namespace {

namespace fs = std::filesystem;

/// Is the file one that collectors write beside dumps, or a list that msprobe writes itself?
bool is_note(const std::string& name) {
  constexpr std::array<std::string_view, 10> kEndings = {".csv", ".json", ".txt",  ".log",  ".md",
                                                         ".yml", ".yaml", ".xlsx", ".html", ".tmp"};
  return std::ranges::any_of(kEndings, [&](std::string_view ending) { return name.ends_with(ending); });
}

std::optional<fs::path> real_path(const fs::path& path) {
  std::error_code error;
  fs::path result = fs::canonical(path, error);
  if (error) return std::nullopt;
  return result;
}

class InputFinder {
 public:
  InputFinder(InputFiles& found, bool recursive, const std::string& output)
      : found_(found), recursive_(recursive), real_root_(real_path(found.root)), output_(real_path(output)) {}

  void run() {
    std::vector<std::string> folders = {""};
    while (!folders.empty()) {
      const std::string folder = std::move(folders.back());
      folders.pop_back();
      list(folder, folders);
    }
    std::ranges::sort(found_.names);
    std::ranges::sort(found_.skipped);
  }

 private:
  void list(const std::string& folder, std::vector<std::string>& folders) {
    std::error_code error;
    fs::directory_iterator entries(fs::path(found_.root) / folder, error);
    if (error) {
      if (folder.empty()) throw IoError(display(found_.root), error.message());
      return refuse(folder, error.message());
    }
    while (entries != fs::directory_iterator()) {
      check_interrupt();
      const std::string name = entries->path().filename().string();
      add(folder.empty() ? name : folder + "/" + name, folders);
      entries.increment(error);
      if (error) return refuse(folder.empty() ? "." : folder, error.message());
    }
  }

  void add(const std::string& name, std::vector<std::string>& folders) {
    const fs::path path = fs::path(found_.root) / name;
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0) return refuse(name, std::generic_category().message(errno));
    if (S_ISLNK(status.st_mode)) {
      const auto target = real_path(path);
      if (!target) return refuse(name, "a broken symbolic link");
      const bool inside = real_root_ && is_beneath(*target, *real_root_);
      const bool cached = !found_.cache.empty() && is_beneath(*target, fs::path(found_.cache) / "blobs");
      if (!inside && !cached) return refuse(name, "refused: a symbolic link leads outside the folder");
      if (!inside) found_.blobs.emplace(name, target->lexically_relative(found_.cache).string());
      if (::stat(path.c_str(), &status) != 0) return refuse(name, std::generic_category().message(errno));
      if (S_ISDIR(status.st_mode)) return;
    }
    if (S_ISDIR(status.st_mode)) {
      if (recursive_ && !(output_ && real_path(path) == output_)) folders.push_back(name);
      return;
    }
    if (!S_ISREG(status.st_mode)) return refuse(name, "not a regular file");
    if (is_note(name)) {
      found_.skipped.push_back(name);
      return;
    }
    found_.identities.emplace(status.st_dev, status.st_ino);
    found_.names.push_back(name);
  }

  void refuse(const std::string& name, const std::string& reason) {
    found_.refused.push_back({name, reason});
  }

  InputFiles& found_;
  bool recursive_;
  std::optional<fs::path> real_root_;
  std::optional<fs::path> output_;
};

}  // namespace

std::string InputFiles::path(const std::string& name) const {
  if (root == ".") return name;
  return root.ends_with('/') ? root + name : root + "/" + name;
}

std::shared_ptr<const ByteSource> InputFiles::open(const std::string& name) const {
  // A file that the user named is opened wherever it is, even through a link.
  if (single && name == names.front()) return open_file(path(name));
  const auto blob = blobs.find(name);
  return blob == blobs.end() ? open_file_beneath(root, name) : open_file_beneath(cache, blob->second);
}

InputFiles find_files(const std::string& path, bool recursive, const std::string& output) {
  InputFiles found;
  struct stat status {};
  const bool exists = !path.empty() && ::stat(path.c_str(), &status) == 0;
  if (!exists || !(S_ISREG(status.st_mode) || S_ISDIR(status.st_mode))) {
    throw IoError(display(path), exists ? "neither a file nor a folder" : "No such file or directory");
  }
  if (S_ISREG(status.st_mode)) {
    const fs::path file(path);
    found.single = true;
    found.root = file.has_parent_path() ? file.parent_path().string() : ".";
    found.names = {file.filename().string()};
    found.identities.emplace(status.st_dev, status.st_ino);
    return found;
  }
  found.root = path;
  found.cache = cache_of_snapshot(path);
  InputFinder(found, recursive, output).run();
  if (found.names.empty() && found.refused.empty()) {
    std::error_code ignored;
    const std::vector<std::string> folders =
        recursive ? std::vector<std::string>() : list_folder(path, ignored).folders;
    if (folders.empty() && found.skipped.empty()) {
      throw IoError(display(path), "this folder is empty, or cannot be read");
    }
    std::string message = display(path) + ": this folder has no tensor files";
    const std::string below =
        recursive ? std::string()
                  : folder_below(path, [](const std::string& file) { return !is_note(file); });
    if (!below.empty()) message += ", but in " + display(below);
    if (folders.empty()) message += ", but .csv, .json and the like";
    if (!folders.empty()) message += "; -r also converts files in subfolders";
    throw IoError(message);
  }
  return found;
}

}  // namespace msprobe::parse
