// A table of what people hand over instead of an ONNX file.
#include "import/onnx/file_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

namespace aglow::onnx {

namespace {

struct Kind {
  size_t offset;
  std::string_view magic;  // compared without regard to letter case
  std::string_view what;
  std::string_view hint;
};

using namespace std::string_view_literals;

constexpr auto kExport = "export the model to ONNX with the framework it was trained in"sv;
constexpr auto kDownload = "the download gave a web page instead of the file: use the direct or raw link"sv;
constexpr auto kBinary = "save it in binary form, for instance with onnx.save(model, 'model.onnx')"sv;
constexpr auto kUnpack = "unpack it first"sv;

constexpr Kind kKinds[] = {
    {0, "version https://git-lfs"sv, "a git-lfs pointer, not the file it stands for",
     "fetch the file with `git lfs pull`"},
    {0, "<!doctype"sv, "an HTML page", kDownload},
    {0, "<html"sv, "an HTML page", kDownload},
    {0, "<?xml"sv, "an XML file", kDownload},
    {0, "ir_version"sv, "an ONNX model in text form", kBinary},
    {0, "graph {"sv, "an ONNX model in text form", kBinary},
    {0, "{"sv, "JSON", kBinary},
    {0, "PK\x03\x04"sv, "a zip archive (as PyTorch and Keras write)", kExport},
    {0, "\x80\x02"sv, "a Python pickle (as PyTorch writes)", kExport},
    {0, "\x89HDF"sv, "an HDF5 file (as Keras writes)", kExport},
    {4, "TFL3"sv, "a TensorFlow Lite model", "convert it with tf2onnx"},
    {4, "ORTM"sv, "a model in ONNX Runtime's own format", "take the .onnx file it was made from"},
    {0, "\x1f\x8b"sv, "gzip-compressed", kUnpack},
    {0,
     "\xfd"
     "7zXZ"sv,
     "xz-compressed", kUnpack},
    {0, "\x28\xb5\x2f\xfd"sv, "zstd-compressed", kUnpack},
};

bool startsWith(std::string_view text, std::string_view magic) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
  };
  return text.size() >= magic.size() && std::equal(magic.begin(), magic.end(), text.begin(), same);
}

std::string_view withoutLeadingSpace(std::string_view text) {
  if (startsWith(text, "\xef\xbb\xbf")) text.remove_prefix(3);
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first == std::string_view::npos ? text : text.substr(first);
}

// ONNX's own text syntax opens with the model's properties in angle brackets.
bool isOnnxText(std::string_view text) {
  return text.starts_with('<') && text.find("ir_version") != std::string_view::npos;
}

}  // namespace

Error explained(Error error, const SharedBytes& file) {
  if (error.code != Code::BadFile) return error;
  if (file.bytes.empty()) return {Code::BadFile, "the file is empty"};
  constexpr size_t kBeginning = 4096;
  const std::span<const std::byte> beginning = file.bytes.first(std::min(file.bytes.size(), kBeginning));
  if (Status loaded = file.load(beginning); !loaded.ok()) return std::move(loaded).error();
  const std::string_view content(reinterpret_cast<const char*>(beginning.data()), beginning.size());
  const std::string_view text = withoutLeadingSpace(content);
  if (isOnnxText(text))
    return Error{Code::BadFile, "the file is an ONNX model in text form"}.withHint(std::string(kBinary));
  for (const Kind& kind : kKinds)
    if (startsWith(kind.offset == 0 ? text : content.substr(std::min(kind.offset, content.size())), kind.magic))
      return Error{Code::BadFile, fmt::format("the file is {}", kind.what)}.withHint(std::string(kind.hint));
  return error;
}

}  // namespace aglow::onnx
