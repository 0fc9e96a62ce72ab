// SPDX-License-Identifier: Apache-2.0
// libyaml's parser and events as objects that free their memory.
#pragma once

#include <yaml.h>

#include <cstddef>
#include <new>
#include <string_view>

#include "support/interrupt.hpp"

namespace msprobe {

struct YamlEvent {
  yaml_event_t event{};
  YamlEvent() = default;
  YamlEvent(const YamlEvent&) = delete;
  YamlEvent& operator=(const YamlEvent&) = delete;
  ~YamlEvent() { yaml_event_delete(&event); }
};

/// Empty for null, such as the tag of a scalar without one.
inline std::string_view yaml_text(const yaml_char_t* text) {
  return text == nullptr ? std::string_view() : std::string_view(reinterpret_cast<const char*>(text));
}

class YamlParser {
 public:
  /// `text` must outlive the parser. `encoding`: any, as its first bytes show.
  explicit YamlParser(std::string_view text, yaml_encoding_t encoding = YAML_ANY_ENCODING) {
    if (yaml_parser_initialize(&parser_) == 0) throw std::bad_alloc();
    const char* const begin = text.empty() ? "" : text.data();  // libyaml accepts no null pointer
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(begin), text.size());
    yaml_parser_set_encoding(&parser_, encoding);
  }
  ~YamlParser() { yaml_parser_delete(&parser_); }
  YamlParser(const YamlParser&) = delete;
  YamlParser& operator=(const YamlParser&) = delete;

  /// Returns false for text that is no YAML: problem() and line() give the reason and the place.
  bool read(YamlEvent& next) {
    check_interrupt();
    if (yaml_parser_parse(&parser_, &next.event) != 0) return true;
    if (parser_.error == YAML_MEMORY_ERROR) throw std::bad_alloc();
    return false;
  }
  /// May be null.
  const char* problem() const { return parser_.problem; }
  /// Counts from 0. A broken encoding has no line: then it is 0.
  std::size_t line() const { return parser_.error == YAML_READER_ERROR ? 0 : parser_.problem_mark.line; }

 private:
  yaml_parser_t parser_{};
};

}  // namespace msprobe
