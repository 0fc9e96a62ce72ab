// SPDX-License-Identifier: Apache-2.0
// Builds one section of an entry. A builder belongs to one thread until it is committed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/entry_store.hpp"
#include "collector/step.hpp"
#include "collector/tensor_record.hpp"
#include "collector/value_writer.hpp"
#include "msprobe/collector.h"

namespace msprobe::collector {

class Session;

class Builder {
 public:
  struct Target {
    std::uint64_t serial = 0;  // of the step
    std::shared_ptr<const RecordRules> rules;
    std::uint64_t entry = 0;
    int place = 0;                     // of the member
    std::string key;                   // of the member; empty: the entry is this value
    std::string stem;                  // of the names of tensor files
    int level = 0;                     // of the value
    bool list = false;                 // the value is a list, already open
    bool object = false;               // the value is an object, already open
    bool indexed = true;               // names of files continue with the place in the value
    bool files = false;                // tensors are saved
    bool keep_files = false;           // until it is known whether they are needed
    bool close_entry = false;          // nothing else will be added to the entry
    std::uint64_t gradient_entry = 0;  // gets the same value with gaps for its leaves
  };
  Builder(Session& session, Target target);

  msprobe_status open(const char* key, bool object);
  msprobe_status close();
  msprobe_status add_null(const char* key);
  msprobe_status add_bool(const char* key, const char* type, bool value);
  msprobe_status add_int(const char* key, const char* type, std::int64_t value);
  msprobe_status add_double(const char* key, const char* type, double value);
  msprobe_status add_text(const char* key, const char* type, std::string_view value);
  msprobe_status add_json(const char* key, std::string_view json);
  msprobe_status add_tensor(const char* key, const msprobe_tensor& tensor, std::shared_ptr<const Owner> owner,
                            std::uint64_t* slot);
  msprobe_status commit();

  bool orphaned() const;

 private:
  /// The same value with gaps for the gradients of its leaves.
  struct GradientCopy {
    explicit GradientCopy(int level) : writer(level) {}
    ValueWriter writer;
    std::vector<MemberText::TextGap> gaps;
    std::vector<GradientLeaf> leaves;
  };

  /// Returns false if no item can be at this place; throws InvalidCall if the caller is wrong.
  bool item(const char* key);
  void leaf(const char* key, bool gradient);
  std::string name_of_file() const;
  template <typename Value>
  msprobe_status add_leaf(const char* key, const char* type, Value value);

  Session& session_;
  Target target_;
  ValueWriter writer_;
  std::vector<MemberText::TextGap> gaps_;
  std::optional<GradientCopy> gradient_;
  EntryFacts findings_;
};

}  // namespace msprobe::collector

struct msprobe_builder {
  msprobe::collector::Builder builder;
};
