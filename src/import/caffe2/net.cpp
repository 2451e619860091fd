// From wire fields to structs, one function a message; field numbers are those of caffe2.proto.
#include "import/caffe2/net.h"

#include <algorithm>
#include <cctype>
#include <iterator>

#include "import/caffe2/convert.h"
#include "import/caffe2/text.h"
#include "import/wire/wire.h"

namespace aglow::caffe2 {

namespace {

using onnx::Attribute;
using onnx::AttributeType;
using wire::Reader;

Net readNet(Reader r);

// Data of tensors is not read: in nets they only tell names and shapes.
void readTensor(Reader r, onnx::TensorProto& t) {
  t.dataType = onnxType(1);
  while (r.next()) {
    if (r.field() == 1) r.appendTo(t.dims);
    if (r.field() == 2) t.dataType = onnxType(r.integer());
    if (r.field() == 7) t.name = r.text();
  }
}

// The type that the last field of value settles.
void readValue(const Reader& r, Attribute& a) {
  switch (r.field()) {
    case 2:
      a.f = r.real();
      a.type = AttributeType::Float;
      break;
    case 3:
      a.i = r.integer();
      a.type = AttributeType::Int;
      break;
    case 4:
      a.s = r.text();
      a.type = AttributeType::String;
      break;
    case 5:
      r.appendTo(a.floats);
      a.type = AttributeType::Floats;
      break;
    case 6:
      r.appendTo(a.ints);
      a.type = AttributeType::Ints;
      break;
    case 7:
      a.strings.push_back(r.text());
      a.type = AttributeType::Strings;
      break;
    case 8:
      a.g = std::make_shared<onnx::Graph>(nestedGraph(readNet(r.message("NetDef"))));
      a.type = AttributeType::Graph;
      break;
    case 10:
      a.t = std::make_shared<onnx::TensorProto>();
      readTensor(r.message("TensorProto"), *a.t);
      a.type = AttributeType::Tensor;
      break;
    case 11:
      readTensor(r.message("TensorProto"), a.tensors.emplace_back());
      a.type = AttributeType::Tensors;
      break;
    default:
      break;
  }
}

void read(Reader r, Attribute& a) {
  while (r.next()) {
    if (r.field() == 1)
      a.name = r.text();
    else
      readValue(r, a);
  }
  if (a.type == AttributeType::Undefined) a.type = AttributeType::Ints;
}

void read(Reader r, onnx::Node& op) {
  op.domain = kDomain;
  while (r.next()) {
    switch (r.field()) {
      case 1:
        op.inputs.push_back(r.text());
        break;
      case 2:
        op.outputs.push_back(r.text());
        break;
      case 3:
        op.name = r.text();
        break;
      case 4:
        op.opType = r.text();
        break;
      case 5:
        read(r.message("Argument"), op.attributes.emplace_back());
        break;
      default:
        break;
    }
  }
}

Net readNet(Reader r) {
  Net net;
  while (r.next()) {
    switch (r.field()) {
      case 1:
        net.name = r.text();
        break;
      case 2:
        read(r.message("OperatorDef"), net.ops.emplace_back());
        break;
      case 6:
        read(r.message("Argument"), net.args.emplace_back());
        break;
      case 7:
        net.inputs.push_back(r.text());
        break;
      case 8:
        net.outputs.push_back(r.text());
        break;
      default:
        break;
    }
  }
  return net;
}

Result<Net> parseWire(const SharedBytes& file) {
  Net net;
  const Status status = wire::parse(file, "NetDef", [&](Reader r) { net = readNet(r); });
  if (!status.ok()) return status.error();
  return net;
}

bool isOperatorName(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == ':' || c == '.';
  });
}

// A message of fields 1 to 12 whose field 4 is a name.
bool looksLikeOperator(Reader r) {
  bool named = false;
  while (r.next()) {
    if (r.field() > 12) return false;
    if (r.field() == 4) named = isOperatorName(r.text());
  }
  return named;
}

std::string_view textOf(onnx::Bytes file) { return {reinterpret_cast<const char*>(file.data()), file.size()}; }

// The first word says what a text is; comments may stand before it.
Result<bool> isNetText(const SharedBytes& file) {
  constexpr size_t kBeginning = 4096;
  const onnx::Bytes beginning = file.bytes.first(std::min(file.bytes.size(), kBeginning));
  AGLOW_OK(file.load(beginning));
  const std::string_view text = textOf(beginning);
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] != '#') return looksLikeNetText(text);
  AGLOW_OK(file.load(file.bytes));
  return looksLikeNetText(textOf(file.bytes));
}

}  // namespace

int32_t onnxType(int64_t caffe2Type) {
  // undefined, f32, i32, byte, string, bool, u8, i8, u16, i16, i64, -, f16, f64
  constexpr int32_t kTypes[] = {0, 1, 6, 2, 8, 9, 2, 3, 4, 5, 7, 0, 10, 11};
  return caffe2Type >= 0 && caffe2Type < std::ssize(kTypes) ? kTypes[caffe2Type] : 0;
}

Result<bool> looksLikeNet(const SharedBytes& file) {
  AGLOW_TRY(const bool text, isNetText(file));
  if (text) return true;
  // ONNX has a number in field 1 where a net has its name, and a string in field 2 where a net has operators.
  bool net = false;
  const Status status = wire::parse(file, "NetDef", [&](Reader r) {
    while (!net && r.next()) {
      if (r.field() == 0 || r.field() > 9) return;
      if (r.field() == 1) static_cast<void>(r.bytes());
      if (r.field() == 2) net = looksLikeOperator(r.message("OperatorDef"));
    }
  });
  return net;
}

Result<Net> parseNetText(std::string_view text) {
  AGLOW_TRY(const std::string binary, toWire(text));
  return parseWire({.bytes = std::as_bytes(std::span(binary))});
}

Result<Net> parseNet(const SharedBytes& file) {
  AGLOW_TRY(const bool text, isNetText(file));
  if (!text) return parseWire(file);
  AGLOW_OK(file.load(file.bytes));
  return parseNetText(textOf(file.bytes));
}

}  // namespace aglow::caffe2
