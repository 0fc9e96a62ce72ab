// SPDX-License-Identifier: Apache-2.0
#include "dump/dump_json.hpp"

#include "support/format_version.hpp"

namespace msprobe::dump {

Header read_values(const ByteSource& file, const ValueVisitor& visit) {
  Header header;
  MemberStream stream(file);
  stream.enter();
  std::string key;
  bool data_seen = false;
  while (stream.next(key)) {
    if (key == "data") {
      if (data_seen) stream.fail("'data' appears twice");
      data_seen = true;
      const char first = stream.peek();
      if (first != '{' && first != 'n') stream.fail("'data' is not an object");
      if (first == '{') {
        header.has_data = true;
        stream.enter();
        while (stream.next(key)) visit(stream, key);
        continue;
      }
    }
    if (key == "training") {
      Entry description;
      stream.entry(description, key);
      header.training = training_of(description);
      continue;
    }
    if (key == "scope" || key == "list") {
      Entry names;
      stream.entry(names, key);
      std::vector<std::string>& asked = key == "list" ? header.list : header.scope;
      asked.clear();
      if (names.is(0, NodeKind::array))
        names.children(0, [&](Entry::Index name) { asked.emplace_back(names.string(name)); });
      continue;
    }
    const std::string_view text = stream.skip();
    if (key == "dump_data_dir") {
      header.data_directory.reset();
      if (text.front() == '"')
        append_unescaped(header.data_directory.emplace(), text.substr(1, text.size() - 2));
      continue;
    }
    if (key == "format") {
      if (text.front() >= '0' && text.front() <= '9') check_format_version(file.name(), text, kDumpFormat);
      continue;
    }
    std::string* place = key == "task"        ? &header.task
                         : key == "level"     ? &header.level
                         : key == "framework" ? &header.framework
                         : key == "recorder"  ? &header.recorder
                                              : nullptr;
    if (place == nullptr || text.front() != '"') continue;
    place->clear();
    append_unescaped(*place, text.substr(1, text.size() - 2));
  }
  return header;
}

Header read_dump_json(const ByteSource& file, const EntryVisitor& visit) {
  Entry entry;
  return read_values(file, [&](MemberStream& stream, std::string_view name) {
    stream.entry(entry, name);
    visit(name, entry);
  });
}

}  // namespace msprobe::dump
