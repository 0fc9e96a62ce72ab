// SPDX-License-Identifier: Apache-2.0
// A small strict reader of workbooks, written from the formats' side: what the writer got wrong it does not
// forgive.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace msprobe::test {

inline void demand(bool right, const std::string& what) {
  if (!right) throw std::runtime_error(what);
}

inline std::uint64_t number_at(std::string_view bytes, std::size_t at, int size) {
  demand(at + size <= bytes.size(), "the archive ends early");
  std::uint64_t value = 0;
  for (int i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

inline std::string inflate_all(std::string_view packed, std::size_t size) {
  std::string raw(size + 1, '\0');  // one more than it should need
  z_stream stream{};
  demand(inflateInit2(&stream, -MAX_WBITS) == Z_OK, "no memory");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(raw.data());
  stream.avail_out = static_cast<uInt>(raw.size());
  const int status = inflate(&stream, Z_FINISH);
  const bool whole = status == Z_STREAM_END && stream.avail_in == 0 && stream.total_out == size;
  inflateEnd(&stream);
  demand(whole, "an entry does not inflate to its size");
  raw.resize(size);
  return raw;
}

/// All entries by name; both headers of each have to agree, and the entries have to fill the file without
/// gaps.
inline std::map<std::string, std::string> unzip(std::string_view bytes) {
  demand(bytes.size() >= 22, "too short for an archive");
  const std::size_t end = bytes.size() - 22;
  demand(number_at(bytes, end, 4) == 0x06054B50, "no end record");
  const std::uint64_t count = number_at(bytes, end + 10, 2);
  std::size_t at = number_at(bytes, end + 16, 4);
  demand(at + number_at(bytes, end + 12, 4) == end, "the directory does not end at the end record");
  std::map<std::string, std::string> entries;
  std::size_t next = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    demand(number_at(bytes, at, 4) == 0x02014B50, "no directory entry");
    const std::size_t name_size = number_at(bytes, at + 28, 2);
    const std::string name(bytes.substr(at + 46, name_size));
    const std::size_t local = number_at(bytes, at + 42, 4);
    demand(local == next, "a gap before " + name);
    demand(number_at(bytes, local, 4) == 0x04034B50, "no local header of " + name);
    demand(bytes.substr(local + 6, 20) == bytes.substr(at + 8, 20), "the headers of " + name + " differ");
    demand(bytes.substr(local + 30, name_size) == name, "the names of " + name + " differ");
    demand(number_at(bytes, at + 10, 2) == 8, name + " is not deflated");
    demand(number_at(bytes, at + 12, 4) == 0x00210000, name + " has another date than 1980-01-01");
    const std::size_t packed = number_at(bytes, at + 20, 4);
    const std::size_t start = local + 30 + name_size + number_at(bytes, local + 28, 2);
    const std::string raw = inflate_all(bytes.substr(start, packed), number_at(bytes, at + 24, 4));
    const auto crc = ::crc32(0, reinterpret_cast<const Bytef*>(raw.data()), static_cast<uInt>(raw.size()));
    demand(number_at(bytes, at + 16, 4) == crc, "wrong checksum of " + name);
    demand(entries.emplace(name, raw).second, "twice " + name);
    next = start + packed;
    at += 46 + name_size + number_at(bytes, at + 30, 2) + number_at(bytes, at + 32, 2);
  }
  demand(at == end, "the directory holds more than it says");
  return entries;
}

inline std::string unescape_xml(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    demand(byte >= 0x20 || text[i] == '\n' || text[i] == '\t', "a control character in XML");
    demand(text[i] != '<' && text[i] != '>', "a bare angle bracket in text");
    if (text[i] != '&') {
      out += text[i];
      continue;
    }
    const std::string_view rest = text.substr(i);
    if (rest.starts_with("&amp;")) {
      out += '&';
      i += 4;
    } else if (rest.starts_with("&lt;") || rest.starts_with("&gt;")) {
      out += rest[1] == 'l' ? '<' : '>';
      i += 3;
    } else {
      throw std::runtime_error("an unknown entity");
    }
  }
  return out;
}

/// The value of an attribute within a tag, empty if it is not there.
inline std::string attribute(std::string_view tag, const std::string& name) {
  const std::string opening = " " + name + "=\"";
  const std::size_t at = tag.find(opening);
  if (at == std::string_view::npos) return {};
  const std::size_t start = at + opening.size();
  return std::string(tag.substr(start, tag.find('"', start) - start));
}

struct SheetCell {
  std::string type;  // "text", "number", "boolean", "blank"
  std::string value;
  std::string style;
  bool keeps_blanks = true;
};

/// The cells of a sheet by reference ("A1"). Checks that tags are balanced and that rows and cells are in
/// order.
inline std::map<std::string, SheetCell> read_sheet(const std::string& xml) {
  std::map<std::string, SheetCell> cells;
  std::vector<std::string> open;
  std::string reference;
  SheetCell cell;
  std::size_t rows = 0;
  std::size_t at = xml.find("?>");
  demand(at != std::string::npos, "no XML declaration");
  at += 3;
  while (at < xml.size() && xml[at] != '\n') {
    if (xml[at] != '<') {
      const std::size_t end = xml.find('<', at);
      demand(!open.empty() && (open.back() == "v" || open.back() == "t"), "text outside a value");
      cell.value = unescape_xml(std::string_view(xml).substr(at, end - at));
      at = end;
      continue;
    }
    const std::size_t end = xml.find('>', at);
    demand(end != std::string::npos, "a tag without an end");
    const std::string tag = xml.substr(at + 1, end - at - 1);
    at = end + 1;
    const std::string name =
        tag.substr(tag[0] == '/' ? 1 : 0, tag.find_first_of(" /", 1) - (tag[0] == '/' ? 1 : 0));
    if (tag[0] == '/') {
      demand(!open.empty() && open.back() == name, "tags are not balanced at " + tag);
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
    if (name == "row" && tag[0] != '/')
      demand(attribute(tag, "r") == std::to_string(++rows), "a row out of order");
    if (name == "c" && tag[0] != '/') {
      reference = attribute(tag, "r");
      const std::string type = attribute(tag, "t");
      cell = {type.empty() ? "number" : type == "b" ? "boolean" : "text", "", attribute(tag, "s")};
      demand(type.empty() || type == "b" || type == "str" || type == "inlineStr",
             "an unexpected type " + type);
      demand(reference.substr(reference.find_first_of("0123456789")) == std::to_string(rows),
             "a cell in another row");
      if (tag.back() == '/') cell.type = "blank";
    }
    if (name == "t" && tag[0] != '/') cell.keeps_blanks = attribute(tag, "xml:space") == "preserve";
    if (name == "f") throw std::runtime_error("a formula");
    if (name == "c" && (tag[0] == '/' || tag.back() == '/')) {
      demand(cells.emplace(reference, cell).second, "twice " + reference);
    }
  }
  demand(open.empty(), "tags are left open");
  return cells;
}

}  // namespace msprobe::test
