// SPDX-License-Identifier: Apache-2.0
// NumPy's `.npz`: a zip archive of `.npy` files, stored or deflated.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "archive/zip_reader.hpp"
#include "formats/tensor_set.hpp"

namespace msprobe::formats {

class NpzFile final : public TensorSet {
 public:
  /// FormatError naming the file if the archive is broken or two arrays have one name.
  explicit NpzFile(std::shared_ptr<const ByteSource> file);

  /// In the order of the archive; `.npy` at the end of a name is left out, as NumPy does.
  std::size_t size() const override { return names_.size(); }
  const std::string& name(std::size_t index) const override { return names_.at(index); }
  StoredTensor tensor(std::size_t index) const override;
  /// The archive member of an array; its bytes are a whole `.npy` file.
  const archive::ZipEntry& entry(std::size_t index) const { return zip_.entries().at(index); }
  const archive::ZipReader& zip() const { return zip_; }

 private:
  std::string file_name_;
  archive::ZipReader zip_;
  std::vector<std::string> names_;
};

}  // namespace msprobe::formats
