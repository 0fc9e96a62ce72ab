// SPDX-License-Identifier: Apache-2.0
#include "collector/builder.hpp"

#include <utility>

#include "collector/c_tensor.hpp"
#include "collector/session.hpp"
#include "support/file_name.hpp"
#include "support/json_writer.hpp"

namespace msprobe::collector {
namespace {

std::string_view text_or_empty(const char* text) {
  return text == nullptr ? std::string_view() : text;
}

void open_root(ValueWriter& writer, bool list, bool object) {
  if (list || object) writer.open({}, object);
}

}  // namespace

Builder::Builder(Session& session, Target target)
    : session_(session), target_(std::move(target)), writer_(target_.level) {
  writer_.text().reserve(1024);
  open_root(writer_, target_.list, target_.object);
  if (target_.gradient_entry != 0) gradient_.emplace(target_.level);
}

bool Builder::item(const char* key) {
  if (writer_.complete()) throw InvalidCall("a value was added after the end");
  if (writer_.in_object() && key == nullptr) throw InvalidCall("a member of an object needs a key");
  return writer_.item(text_or_empty(key));
}

/// Marks a leaf that may get a gradient: the copy has a gap for it.
void Builder::leaf(const char* key, bool gradient) {
  if (!gradient_ || !gradient_->writer.item(text_or_empty(key))) return;
  if (gradient) {
    auto slot = std::make_shared<LateText>();
    slot->text = "null";
    slot->entry = target_.gradient_entry;
    gradient_->gaps.push_back({gradient_->writer.text().size(), slot});
    gradient_->leaves.push_back({std::string(gradient_->writer.path()), gradient_->writer.level(), slot});
  } else {
    gradient_->writer.text() += "null";
  }
}

msprobe_status Builder::open(const char* key, bool object) {
  if (writer_.complete()) throw InvalidCall("a container was opened after the end");
  if (writer_.in_object() && key == nullptr) throw InvalidCall("a member of an object needs a key");
  writer_.open(text_or_empty(key), object);
  if (gradient_) gradient_->writer.open(text_or_empty(key), object);
  return MSPROBE_OK;
}

msprobe_status Builder::close() {
  const std::size_t implied = target_.list || target_.object ? 1 : 0;
  if (writer_.depth() <= implied) throw InvalidCall("no container is open to close");
  writer_.close();
  if (gradient_) gradient_->writer.close();
  return MSPROBE_OK;
}

msprobe_status Builder::add_null(const char* key) {
  if (!item(key)) return MSPROBE_OK;
  writer_.text() += "null";
  leaf(key, false);
  return MSPROBE_OK;
}

/// Writes {"type": type, "value": …}
template <typename Value>
msprobe_status Builder::add_leaf(const char* key, const char* type, Value value) {
  if (type == nullptr) throw InvalidCall("a value needs a type");
  if (!item(key)) return MSPROBE_OK;
  const int level = writer_.level() + 1;
  std::string& out = writer_.text();
  out += '{';
  append_json_line(out, level, 1);
  out += "\"type\": ";
  append_json_string(out, type);
  out += ',';
  append_json_line(out, level, 1);
  out += "\"value\": ";
  value(out);
  append_json_line(out, level - 1, 1);
  out += '}';
  leaf(key, false);
  return MSPROBE_OK;
}

msprobe_status Builder::add_bool(const char* key, const char* type, bool value) {
  return add_leaf(key, type, [&](std::string& out) { out += value ? "true" : "false"; });
}

msprobe_status Builder::add_int(const char* key, const char* type, std::int64_t value) {
  return add_leaf(key, type, [&](std::string& out) { append_json_integer(out, value); });
}

msprobe_status Builder::add_double(const char* key, const char* type, double value) {
  return add_leaf(key, type, [&](std::string& out) { append_json_real(out, value); });
}

msprobe_status Builder::add_text(const char* key, const char* type, std::string_view value) {
  return add_leaf(key, type, [&](std::string& out) { append_json_string(out, value); });
}

msprobe_status Builder::add_json(const char* key, std::string_view json) {
  std::string text;
  append_foreign_json(text, json, writer_.level());
  if (!item(key)) return MSPROBE_OK;
  writer_.text() += text;
  leaf(key, false);
  return MSPROBE_OK;
}

msprobe_status Builder::add_tensor(const char* key, const msprobe_tensor& tensor,
                                   std::shared_ptr<const Owner> owner, std::uint64_t* slot) {
  if (slot != nullptr) *slot = 0;
  TensorView view = view_of(tensor);
  crop(view, target_.rules->slice);
  if ((tensor.flags & MSPROBE_TENSOR_LATER) != 0 && (target_.keep_files || view.data != nullptr))
    throw InvalidCall(
        "MSPROBE_TENSOR_LATER: a file needs the elements of the tensor at once, or they are present already");
  const TensorView there = view;
  if ((tensor.flags & MSPROBE_TENSOR_ON_DEVICE) != 0) view.data = nullptr;
  RecordedTensor record;
  const Reuse reuse{&session_.reuse(), std::move(owner)};
  const ValueWriter::ItemMark mark = writer_.mark();
  if (!item(key)) return MSPROBE_OK;
  try {
    if (target_.files && has_file(tensor, view)) record.data_name = name_of_file();
    record.level = writer_.level();
    append_record(writer_.text(), *target_.rules, tensor, view, reuse, record);
  } catch (...) {
    writer_.go_back(mark);
    throw;
  }
  leaf(key, (tensor.flags & MSPROBE_TENSOR_REQUIRES_GRAD) != 0);
  findings_.nonfinite = findings_.nonfinite || record.nonfinite;
  if (target_.rules->bench)
    findings_.seen.push_back({target_.key + '.' + std::string(writer_.path()), record.md5});
  if (record.deferred) {
    std::ranges::move(record.gaps, std::back_inserter(gaps_));
    record.deferred->there = (tensor.flags & MSPROBE_TENSOR_ON_DEVICE) != 0 ? there : view;
    record.deferred->rules = target_.rules;
    record.deferred->serial = target_.serial;
    const std::uint64_t number =
        session_.locked([&](Recorder& recorder) { return recorder.add_slot(*record.deferred); });
    if (slot != nullptr) *slot = number;
  }
  msprobe_status status = MSPROBE_OK;
  if (record.deferred && !record.data_name.empty()) return status;
  if (!record.data_name.empty() && target_.keep_files) {
    findings_.files.emplace_back(record.data_name, session_.queue().copy(view));
  } else if (!record.data_name.empty()) {
    status = session_.save_tensor(target_.serial, record.data_name, view, record.keep);
  }
  const Keep& keep = record.keep;
  if (keep.fresh && keep.possible) session_.reuse().keep(view, keep.identity, reuse.owner, keep.results);
  return status;
}

/// The file name of the item that was begun last.
std::string Builder::name_of_file() const {
  std::string name = target_.stem;
  if (target_.indexed && !writer_.path().empty()) {
    name += '.';
    name += writer_.path();
  }
  return file_name(name, target_.rules->suffix);
}

bool Builder::orphaned() const {
  return session_.orphaned();
}

msprobe_status Builder::commit() {
  while (writer_.close()) {
  }
  if (!writer_.complete()) return MSPROBE_SKIP;  // no value was added
  MemberText section{std::move(writer_.text()), std::move(gaps_)};
  if (!gradient_) {
    return session_.locked([&](Recorder& recorder) {
      return recorder.commit(target_, std::move(section), std::move(findings_));
    });
  }
  while (gradient_->writer.close()) {
  }
  MemberText gradient{std::move(gradient_->writer.text()), std::move(gradient_->gaps)};
  return session_.locked([&](Recorder& recorder) {
    return recorder.commit_saved(target_, std::move(section), std::move(gradient),
                                 std::move(gradient_->leaves));
  });
}

}  // namespace msprobe::collector
