// numpy's .npy files. Kinds that numpy lacks travel as raw bits (see ElemInfo::npy), so the reader gets the kind.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "support/file_set.h"
#include "tensor/string_tensor.h"
#include "tensor/tensor.h"

namespace aglow {

struct NpyHeader {
  std::string descr;  // "<f4"
  Shape shape;
};

// Only the header: type and shape, checked against the file's length.
Result<NpyHeader> readNpyHeader(const std::string& path);
// The whole file as a tensor of the kind expected; BadBinding when the file's type is another one. Fortran order and
// big-endian files are converted. Never blocks on pipes or devices (E801).
Result<Tensor> readNpy(const std::string& path, ElemKind expected);
// A file of strings, numpy's 'S' (bytes) or 'U' (which becomes UTF-8); zeros at their ends are lost.
Result<StringTensor> readNpyStrings(const std::string& path);
// The kind that numpy's type ("<f4") stands for by default; none for types that no kind has.
std::optional<ElemKind> elemKindByNpy(std::string_view descr);
// Version 1.0, C order; among other files, or by itself.
Status addNpy(FileSet& files, const std::string& path, const Tensor& tensor);
Status addNpy(FileSet& files, const std::string& path, const StringTensor& tensor);  // as 'S'
// The same as bytes.
Result<std::string> npyBytes(const Tensor& tensor);
Result<std::string> npyBytes(const StringTensor& tensor);
Status writeNpy(const std::string& path, const Tensor& tensor);
Status writeNpy(const std::string& path, const StringTensor& tensor);

}  // namespace aglow
