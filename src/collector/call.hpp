// SPDX-License-Identifier: Apache-2.0
// Names of called functions and modules, and the entry names that are made of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace msprobe::collector {

/// A name and the parts of it that are used often, as views into `text`.
struct Name {
  std::string text;              // "Module.layers.0.Layer"
  std::string_view path;         // "Module.layers.0"
  std::string_view parent_path;  // "Module.layers"
};

/// The number of a name, the same for the whole process. Names are never forgotten.
std::uint32_t intern(std::string_view text);
/// Throws std::out_of_range for a number that intern() did not return. Takes no lock.
const Name& name_of(std::uint32_t id);

/// Locks the table of names for a fork: no other thread may hold it meanwhile.
void lock_names();
void unlock_names();

/// One call, in one direction.
struct CollectedCall {
  std::uint32_t name = 0;
  std::uint32_t number = 0;
  bool module = false;
  bool backward = false;
  bool operator==(const CollectedCall&) const = default;
};

/// "Functional.relu.0.forward", "Module.fc.Linear.forward.0".
void append_entry_name(std::string& out, const CollectedCall& call);

/// The parent of a call in construct.json: a module's call of the same direction, a name without a number
/// (optimizer, clip_grad), or nothing (0). It is one number, so that events can carry it.
class Parent {
 public:
  Parent() = default;
  explicit Parent(std::uint64_t code) : code_(code) {}
  static Parent module(std::uint32_t name, std::uint32_t number) {
    return Parent((std::uint64_t{name} + 1) << 32 | number);
  }
  static Parent pseudo(std::uint32_t name) { return module(name, kPseudo); }

  std::uint64_t code() const { return code_; }
  bool none() const { return code_ == 0; }
  bool is_pseudo() const { return !none() && static_cast<std::uint32_t>(code_) == kPseudo; }
  std::uint32_t name() const { return static_cast<std::uint32_t>((code_ >> 32) - 1); }
  std::uint32_t number() const { return static_cast<std::uint32_t>(code_); }

 private:
  static constexpr std::uint32_t kPseudo = UINT32_MAX;
  std::uint64_t code_ = 0;
};

}  // namespace msprobe::collector
