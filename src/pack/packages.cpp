// SPDX-License-Identifier: Apache-2.0
#include "pack/packages.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>

#include "support/ascii.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/folder.hpp"
#include "support/interrupt.hpp"
#include "support/text.hpp"

namespace msprobe::pack {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostHead = std::size_t{64} << 10;  // of a metadata file, which begins with the name
constexpr std::size_t kMostEntries = 200'000;             // of a folder

bool is_executable(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

std::vector<std::string> split_path(const char* list) {
  std::vector<std::string> parts;
  for (const std::string_view part : split(list == nullptr ? "" : list, ":")) {
    if (!part.empty()) parts.emplace_back(part);
  }
  return parts;
}

/// The first bytes of a small text file; empty if there is no such file. A file that cannot be read also
/// gives an empty text, and a line in `problems`.
std::string head_of(const fs::path& path, std::vector<std::string>* problems = nullptr) {
  check_interrupt();
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return {};
  try {
    return first_bytes(*open_file(path.string()), kMostHead);
  } catch (const Error& failure) {
    if (problems != nullptr) problems->emplace_back(failure.what());
    return {};
  }
}

/// The interpreter that a script of pyenv would start: pyenv installs such scripts (shims) under the names of
/// interpreters. Empty if it is unknown.
std::string behind_shim(const fs::path& shim, const Lookup& environment) {
  const fs::path root = shim.parent_path().parent_path();
  std::string versions;
  if (const char* chosen = environment("PYENV_VERSION"); chosen != nullptr) versions = chosen;
  if (versions.empty()) versions = head_of(".python-version");
  if (versions.empty()) versions = head_of(root / "version");
  const std::string version = versions.substr(0, versions.find_first_of(" \t\r\n:"));
  if (version.empty() || version.find('/') != std::string::npos) return {};
  const fs::path path = root / "versions" / version / "bin" / shim.filename();
  return is_executable(path) ? path.string() : std::string();
}

std::optional<std::string> search(const Lookup& environment) {
  const std::vector<std::string> folders = split_path(environment("PATH"));
  for (const char* name : {"python3", "python"}) {
    for (const std::string& folder : folders) {
      const fs::path path = fs::path(folder) / name;
      if (!is_executable(path)) continue;
      if (!head_of(path).starts_with("#!")) return path.string();
      if (std::string real = behind_shim(path, environment); !real.empty()) return real;
    }
  }
  return std::nullopt;
}

std::string trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t\r") - first + 1));
}

/// Calls `visit(key, value)` for each `key<separator>value` line up to the first empty one.
template <typename Visit>
void each_line(std::string_view text, char separator, Visit visit) {
  for (const std::string_view line : split(text, "\n")) {
    if (trimmed(line).empty()) return;
    const std::size_t at = line.find(separator);
    if (at != std::string_view::npos) visit(trimmed(line.substr(0, at)), trimmed(line.substr(at + 1)));
  }
}

/// The content of pyvenv.cfg in a virtual environment.
struct VirtualEnvironment {
  std::string home;
  std::string version;
  bool system_packages = false;
};

std::optional<VirtualEnvironment> read_virtual_environment(const fs::path& prefix) {
  const std::string text = head_of(prefix / "pyvenv.cfg");
  if (text.empty()) return std::nullopt;
  VirtualEnvironment environment;
  each_line(text, '=', [&](const std::string& key, const std::string& value) {
    if (key == "home") environment.home = value;
    if (key == "version" || key == "version_info") environment.version = value;
    if (key == "include-system-site-packages")
      environment.system_packages = value == "true" || value == "True";
  });
  return environment;
}

/// The first two numbers of a version: `3.11` of `3.11.2`.
std::string two_numbers(const std::string& version) {
  const std::size_t first = version.find('.');
  if (first == std::string::npos) return {};
  return version.substr(0, version.find('.', first + 1));
}

bool is_version(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789.") == std::string_view::npos &&
         text.find('.') != std::string_view::npos;
}

/// The version in the name of the folder `lib/python3.11`, if there is exactly one such folder.
std::string version_in(const fs::path& prefix) {
  std::set<std::string> versions;
  std::error_code error;
  for (fs::directory_iterator entry(prefix / "lib", error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with("python") && is_version(std::string_view(name).substr(6)))
      versions.insert(name.substr(6));
  }
  if (error && error != std::errc::no_such_file_or_directory)
    throw IoError(display((prefix / "lib").string()), error.message());
  return versions.size() == 1 ? *versions.begin() : std::string();
}

class FolderList {
 public:
  explicit FolderList(std::vector<std::string>& folders) : folders_(folders) {}
  void add(const fs::path& path) {
    std::error_code error;
    if (!fs::is_directory(path, error)) return;
    const std::string canonical = fs::canonical(path, error).string();
    if (!error && seen_.insert(canonical).second) folders_.push_back(path.string());
  }
  void add_prefix(const fs::path& prefix, const std::string& version) {
    for (const char* lib : {"lib", "lib64"}) add(prefix / lib / ("python" + version) / "site-packages");
  }
  /// Adds the folders of Debian's Python.
  void add_system(const fs::path& prefix, const std::string& version) {
    add(prefix / "local" / "lib" / ("python" + version) / "dist-packages");
    add(prefix / "lib" / "python3" / "dist-packages");
    add(prefix / "lib" / ("python" + version) / "dist-packages");
  }

 private:
  std::vector<std::string>& folders_;
  std::set<std::string> seen_;
};

/// The metadata file of a folder's entry, if its name is that of an installed package; else empty.
fs::path metadata_of(const fs::path& entry) {
  const std::string name = entry.filename().string();
  if (name.ends_with(".dist-info")) return entry / "METADATA";
  if (name.ends_with(".egg-info")) return is_folder(entry) ? entry / "PKG-INFO" : entry;
  if (name.ends_with(".egg")) return entry / "EGG-INFO" / "PKG-INFO";
  return {};
}

}  // namespace

Interpreter find_interpreter(const std::string& path, const Lookup& environment) {
  Interpreter interpreter;
  if (path.empty()) {
    const auto found = search(environment);
    if (!found) throw IoError("no python3 or python on the PATH to list packages of");
    interpreter.path = *found;
  } else {
    if (!is_executable(path)) throw IoError(display(path), "is not an executable Python interpreter");
    interpreter.path = path;
  }
  std::error_code error;
  const fs::path real = fs::canonical(interpreter.path, error);
  if (error) throw IoError(display(interpreter.path), error.message());
  const fs::path prefix = fs::absolute(interpreter.path).parent_path().parent_path();
  const fs::path base = real.parent_path().parent_path();
  const auto virtual_environment = read_virtual_environment(prefix);

  // The version comes from the name python3.11 that the other names link to, or from the files around it.
  const std::string real_name = real.filename().string();
  if (real_name.starts_with("python") && is_version(std::string_view(real_name).substr(6)))
    interpreter.version = real_name.substr(6);
  if (interpreter.version.empty() && virtual_environment)
    interpreter.version = two_numbers(virtual_environment->version);
  if (interpreter.version.empty()) interpreter.version = version_in(virtual_environment ? prefix : base);
  const std::string& version = interpreter.version;

  FolderList folders(interpreter.folders);
  for (const std::string& folder : split_path(environment("PYTHONPATH"))) folders.add(folder);
  if (virtual_environment) folders.add_prefix(prefix, version);
  if (!virtual_environment || virtual_environment->system_packages) {
    if (const char* home = environment("HOME"); home != nullptr && environment("PYTHONNOUSERSITE") == nullptr)
      folders.add(fs::path(home) / ".local" / "lib" / ("python" + version) / "site-packages");
    const fs::path system = virtual_environment && !virtual_environment->home.empty()
                                ? fs::path(virtual_environment->home).parent_path()
                                : base;
    folders.add_prefix(system, version);
    folders.add_system(system, version);
  }
  return interpreter;
}

std::vector<Package> packages_of(const Interpreter& interpreter, std::vector<std::string>& problems) {
  std::vector<Package> packages;
  std::set<std::string> seen;
  for (const std::string& folder : interpreter.folders) {
    std::vector<fs::path> entries;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
      check_interrupt();
      if (entries.size() == kMostEntries) break;
      if (fs::path metadata = metadata_of(entry->path()); !metadata.empty())
        entries.push_back(std::move(metadata));
    }
    if (error) problems.push_back(display(folder) + ": " + error.message());
    std::ranges::sort(entries);
    for (const fs::path& metadata : entries) {
      Package package;
      each_line(head_of(metadata, &problems), ':', [&](const std::string& key, const std::string& value) {
        if (key == "Name" && package.name.empty()) package.name = value;
        if (key == "Version" && package.version.empty()) package.version = value;
      });
      if (package.name.empty() || !seen.insert(normalized_name(package.name)).second) continue;
      packages.push_back(std::move(package));
    }
  }
  return packages;
}

std::string package_list(const std::vector<Package>& packages) {
  std::string out;
  for (const Package& package : packages) out += package.name + "=" + package.version + "\n";
  return out;
}

std::string normalized_name(std::string_view name) {
  std::string out;
  for (const char c : lower_case(name)) {
    const bool dash = c == '-' || c == '_' || c == '.';
    if (!dash || !out.ends_with('-')) out += dash ? '-' : c;
  }
  return out;
}

}  // namespace msprobe::pack
