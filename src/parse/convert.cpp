// SPDX-License-Identifier: Apache-2.0
#include "parse/convert.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <functional>
#include <mutex>
#include <new>
#include <unordered_set>
#include <utility>

#include "formats/adump.hpp"
#include "formats/atb_bin.hpp"
#include "formats/tensor_set.hpp"
#include "parse/copy_tensor.hpp"
#include "parse/output_names.hpp"
#include "support/error.hpp"
#include "support/interrupt.hpp"
#include "support/little_endian.hpp"
#include "support/memory_gate.hpp"
#include "support/output_file.hpp"
#include "support/text.hpp"

namespace msprobe::parse {
namespace {

using formats::AdumpFile;
using formats::AdumpItem;
using formats::AdumpRole;
using formats::OutputFormat;
using formats::StoredTensor;
using formats::TensorSet;
using formats::TensorSpec;

/// The memory that all workers together may use for tensors that must be gathered out of order.
constexpr std::uint64_t kMemory = std::uint64_t{512} << 20;
constexpr std::uint64_t kMaxRecord = std::uint64_t{1} << 20;  // largest overflow record

enum class InputKind { raw, atb, adump, tensors };

/// Could the first eight bytes be the length of an adump header?
bool could_be_adump(const ByteSource& file) {
  std::array<std::byte, 8> start{};
  if (file.size() <= start.size()) return true;  // too short for any format: adump gives the best message
  file.read_at(0, start);
  return load_le<std::uint64_t>(start.data()) <= file.size() - start.size();
}

InputKind kind_of(const std::string& name, const std::shared_ptr<const ByteSource>& file, bool raw) {
  const bool is_bin = ends_with_any_case(name, ".bin");
  if (raw && (is_bin || !has_known_ending(name))) return InputKind::raw;
  // Checkpoints of the Hugging Face hub are called .bin too.
  if (is_bin) return first_bytes(*file, 4) == "PK\x03\x04" ? InputKind::tensors : InputKind::atb;
  if (has_known_ending(name)) return InputKind::tensors;
  // Kernel dumps have names without an extension, and may begin with any byte. No field of their header
  // begins with the brace of a safetensors file.
  using formats::Container;
  const Container container = formats::container_of(file);
  if (container == Container::unknown) return InputKind::adump;
  if (container == Container::safetensors) return InputKind::tensors;
  return could_be_adump(*file) ? InputKind::adump : InputKind::tensors;
}

/// The key of a nameless tensor, for a format that needs one.
std::string default_key(OutputFormat format) {
  if (format == OutputFormat::npz) return "arr_0";  // as in numpy.savez
  if (format == OutputFormat::safetensors) return "tensor";
  return {};
}

std::string adump_part(const AdumpItem& item) {
  switch (item.role) {
    case AdumpRole::input:
      return fmt::format("input.{}", item.index);
    case AdumpRole::output:
      return fmt::format("output.{}", item.index);
    case AdumpRole::buffer:
      return fmt::format("{}buffer.{}", item.type == 0 ? "l1" : "", item.index);
    case AdumpRole::space:
      break;
  }
  return fmt::format("space.{}", item.index);
}

}  // namespace

bool named_by_stem(const std::string& name, const ParseOptions& options) {
  if (!has_known_ending(name)) return false;
  // The vendor's converter treats a .npy as a dump of one output.
  const bool as_dump = options.format == OutputFormat::npy || options.format == OutputFormat::pt;
  return !(as_dump && ends_with_any_case(name, ".npy"));
}

struct Converter::Shared {
  Shared(const ParseOptions& the_options, const InputFiles& the_inputs)
      : options(the_options), inputs(the_inputs) {}

  const ParseOptions& options;
  const InputFiles& inputs;
  MemoryGate gate{kMemory};
  std::mutex mutex;
  std::unordered_set<std::string> claimed;  // outputs of this run
};

class Converter::Job {
 public:
  Job(Shared& shared, const std::string& name, std::vector<RenamedResult>& renamed)
      : shared_(shared), options_(shared.options), path_(shared.inputs.path(name)), renamed_(renamed) {
    result_.file = name;
    const std::size_t slash = name.rfind('/');
    if (slash != std::string::npos) folder_ = name.substr(0, slash + 1);
    file_name_ = name.substr(folder_.size());
  }

  FileResult run() {
    result_.problem = attempt([&] {
      file_ = shared_.inputs.open(result_.file);
      switch (kind_of(file_name_, file_, options_.raw_dtype.has_value())) {
        case InputKind::raw:
          return convert_raw();
        case InputKind::atb:
          return convert_atb();
        case InputKind::adump:
          return convert_adump();
        case InputKind::tensors:
          return convert_tensors();
      }
    });
    return std::move(result_);
  }

 private:
  /// Runs `work` and returns the error message without the name of the file; empty if there was no error.
  std::string attempt(const std::function<void()>& work) const {
    std::string message;
    try {
      work();
    } catch (const Error& error) {
      message = error.what();
      const std::string prefix = display(path_) + ": ";
      if (message.starts_with(prefix)) message.erase(0, prefix.size());
    } catch (const std::bad_alloc&) {
      message = "not enough memory";
    }
    return message;
  }

  [[noreturn]] void fail(const std::string& reason) const { throw FormatError(display(path_), reason); }

  std::string with_extension(const std::string& stem) const {
    return fmt::format("{}.{}", stem, formats::extension(options_.format));
  }

  /// Opens an output file for a result, under a shorter name if necessary.
  OutputFile create(std::string name, TensorResult& result) {
    if (name.size() >= kNameLimit) {
      const std::string wanted = std::move(name);
      const std::size_t dot = wanted.rfind('.');
      name = name_uuid(wanted) + (dot == std::string::npos ? "" : wanted.substr(dot));
      renamed_.push_back({name, wanted});
    }
    const std::string below = folder_ + name;
    const std::string path = options_.output_directory + "/" + below;
    struct stat status {};
    if (::stat(path.c_str(), &status) == 0 &&
        shared_.inputs.identities.contains({status.st_dev, status.st_ino})) {
      throw IoError(display(path), "refused: the result would replace one of the inputs");
    }
    {
      const std::lock_guard lock(shared_.mutex);
      if (!shared_.claimed.insert(below).second)
        throw IoError(display(path), "refused: another result has this name");
    }
    if (!folder_.empty()) create_directories(options_.output_directory + "/" + folder_);
    result.output = below;
    return OutputFile(path);
  }

  tensor::DType written_dtype(const StoredTensor& tensor) const {
    const auto written = formats::written_dtype(options_.format, tensor.dtype);
    if (!written) {
      fail(fmt::format("a .{} file cannot hold {}", formats::extension(options_.format),
                       tensor::info(tensor.dtype).name));
    }
    return *written;
  }

  void describe(const StoredTensor& tensor, tensor::DType written, TensorResult& result) const {
    if (result.dtype.empty()) result.dtype = tensor::info(tensor.dtype).name;
    result.written_dtype = tensor::info(written).name;
    result.shape = tensor.shape;
  }

  void copy(const StoredTensor& tensor, tensor::DType written, formats::TensorWriter& writer,
            std::size_t index, TensorResult& result) {
    const MemoryGate::Pass pass(shared_.gate, formats::ElementReader::memory_need(tensor));
    writer.begin(index);
    result.statistics = copy_tensor(tensor, written, writer);
    result.range = formats::integer_range(tensor.dtype, *result.statistics);
    writer.end();
  }

  /// Writes a tensor into a separate file.
  void write_single(const StoredTensor& tensor, const std::string& name, TensorResult& result) {
    const tensor::DType written = written_dtype(tensor);
    describe(tensor, written, result);
    OutputFile file = create(name, result);
    const auto writer = formats::make_tensor_writer(options_.format, file,
                                                    {{default_key(options_.format), written, tensor.shape}});
    copy(tensor, written, *writer, 0, result);
    writer->finish();
    file.commit();
  }

  /// Adds one more result of this file, with the error if `work` fails.
  void add(TensorResult result, const std::function<void(TensorResult&)>& work) {
    result.problem = attempt([&] { work(result); });
    if (!result.problem.empty()) result.output.clear();
    result_.tensors.push_back(std::move(result));
  }

  void convert_raw() {
    add({}, [&](TensorResult& result) {
      StoredTensor tensor;
      tensor.dtype = *options_.raw_dtype;
      const std::uint64_t item = tensor::info(tensor.dtype).size;
      const std::uint64_t size = file_->size();
      if (options_.raw_shape) {
        tensor.shape = *options_.raw_shape;
        const std::uint64_t wanted = formats::payload_size({"", tensor.dtype, tensor.shape}, path_);
        if (wanted != size)
          fail(fmt::format("{} of shape [{}] takes {} bytes, but it has {}", tensor::info(tensor.dtype).name,
                           fmt::join(tensor.shape, ", "), wanted, size));
      } else {
        if (size % item != 0)
          fail(fmt::format("{} bytes are not a whole number of {} elements", size,
                           tensor::info(tensor.dtype).name));
        tensor.shape = {static_cast<std::int64_t>(size / item)};
      }
      tensor.strides = formats::row_major_strides(tensor.shape);
      tensor.storage = file_;
      write_single(tensor, with_extension(stem_of(file_name_)), result);
    });
  }

  void convert_atb() {
    add({}, [&](TensorResult& result) {
      const StoredTensor tensor = formats::open_atb_bin(
          file_, [&](const std::string& name) { return shared_.inputs.open(folder_ + name); });
      write_single(tensor, with_extension(stem_of(file_name_)), result);
    });
  }

  void convert_adump() {
    if (file_name_.ends_with(".json")) {
      fail(
          "JSON, which holds no tensors: those of a dump are in dump_tensor_data beside it; 'msprobe "
          "inspect' shows what is in a dump, 'msprobe compare' compares two");
    }
    const AdumpFile dump = formats::open_adump(file_);
    if (dump.items.empty()) fail("not a kernel dump, or one without any data");
    const bool is_debug = formats::is_op_debug_name(file_name_);
    for (const AdumpItem& item : dump.items) {
      TensorResult result;
      result.name = adump_part(item);
      const std::string name = file_name_ + "." + result.name;
      if (item.role == AdumpRole::buffer || item.role == AdumpRole::space) {
        add(std::move(result), [&](TensorResult& each) { copy_bytes(item, name + ".bin", each); });
      } else if (is_debug && item.role == AdumpRole::output) {
        add(std::move(result), [&](TensorResult& each) { write_record(item, name + ".json", each); });
      } else {
        result.dtype = formats::adump_type_name(item.type);
        add(std::move(result), [&](TensorResult& each) {
          StoredTensor tensor = formats::adump_tensor(dump, item);
          // The earlier converters wrote a .npy with at least one axis.
          if (tensor.shape.empty() && options_.format == OutputFormat::npy) {
            tensor.shape = {1};
            tensor.strides = {1};
          }
          write_single(tensor, with_extension(name), each);
        });
      }
    }
  }

  void copy_bytes(const AdumpItem& item, const std::string& name, TensorResult& result) {
    constexpr std::size_t kPiece = std::size_t{256} << 10;
    OutputFile file = create(name, result);
    std::vector<std::byte> piece;
    for (std::uint64_t done = 0; done < item.size;) {
      check_interrupt();
      piece.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, item.size - done)));
      file_->read_at(item.offset + done, piece);
      file.write(std::string_view(reinterpret_cast<const char*>(piece.data()), piece.size()));
      done += piece.size();
    }
    result.shape = {static_cast<std::int64_t>(item.size)};
    file.commit();
  }

  void write_record(const AdumpItem& item, const std::string& name, TensorResult& result) {
    const std::string record = read_all(*slice_source(file_, item.offset, item.size), kMaxRecord);
    const std::string text = formats::op_debug_json(record, path_);
    OutputFile file = create(name, result);
    file.write(text);
    result.shape = {static_cast<std::int64_t>(item.size)};
    file.commit();
  }

  void convert_tensors() {
    const std::unique_ptr<TensorSet> set = formats::open_tensors(file_);
    const std::string stem = named_by_stem(file_name_, options_) ? stem_of(file_name_) : file_name_;
    if (set->size() == 0) fail("it has no tensors");
    if (set->size() == 1 && set->name(0).empty()) {
      const bool as_dump = has_known_ending(file_name_) && !named_by_stem(file_name_, options_);
      add({}, [&](TensorResult& result) {
        write_single(set->tensor(0), with_extension(as_dump ? stem + ".output.0" : stem), result);
      });
    } else if (formats::holds_many(options_.format)) {
      convert_together(*set, with_extension(stem));
    } else {
      SafeParts parts;
      for (std::size_t i = 0; i < set->size(); ++i) {
        TensorResult result;
        result.name = set->name(i);
        const std::string name = with_extension(stem + "." + parts.next(result.name));
        add(std::move(result), [&](TensorResult& each) { write_single(set->tensor(i), name, each); });
      }
    }
  }

  /// Writes all readable tensors of the set into one file.
  void convert_together(const TensorSet& set, const std::string& name) {
    std::vector<TensorSpec> specs;
    std::vector<std::size_t> places;  // index of each spec in the set
    std::unordered_set<std::string> names;
    for (std::size_t i = 0; i < set.size(); ++i) {
      TensorResult result;
      result.name = set.name(i);
      add(std::move(result), [&](TensorResult& each) {
        const StoredTensor tensor = set.tensor(i);
        const tensor::DType written = written_dtype(tensor);
        describe(tensor, written, each);
        std::vector<TensorSpec> one = {{each.name, written, tensor.shape}};
        formats::check_spec(one[0], path_);
        if (!names.insert(each.name).second) fail("another tensor has this name");
        specs.push_back(std::move(one[0]));
        places.push_back(i);
      });
    }
    if (specs.empty()) return;
    TensorResult whole;
    OutputFile file = create(name, whole);
    const auto writer = formats::make_tensor_writer(options_.format, file, std::move(specs));
    for (const std::size_t index : writer->order()) {
      const StoredTensor tensor = set.tensor(places[index]);
      copy(tensor, writer->specs()[index].dtype, *writer, index, result_.tensors[places[index]]);
    }
    writer->finish();
    file.commit();
    for (const std::size_t place : places) result_.tensors[place].output = whole.output;
  }

  Shared& shared_;
  const ParseOptions& options_;
  std::string path_;
  std::string folder_;  // the file's folder relative to the input folder; empty, or ending with a slash
  std::string file_name_;
  std::vector<RenamedResult>& renamed_;
  std::shared_ptr<const ByteSource> file_;
  FileResult result_;
};

Converter::Converter(const ParseOptions& options, const InputFiles& inputs)
    : shared_(std::make_unique<Shared>(options, inputs)) {}

Converter::~Converter() = default;

FileResult Converter::convert(const std::string& name, std::vector<RenamedResult>& renamed) {
  return Job(*shared_, name, renamed).run();
}

}  // namespace msprobe::parse
