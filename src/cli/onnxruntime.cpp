// onnxruntime as an engine: a Python process takes the inputs as .npy files and leaves the outputs as such.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/engines.h"
#include "cli/value_files.h"
#include "cli/value_json.h"
#include "import/onnx/tensor_data.h"
#include "import/onnx/value_file.h"
#include "support/process.h"
#include "support/temporary.h"
#include "tensor/npy.h"

namespace aglow::cli {

namespace {

constexpr int kNoModule = 3;  // exit code of the script where Python has no onnxruntime

// Further outputs are added to the model's bytes: protobuf merges messages that follow each other.
constexpr const char* kScript = R"(import json, os, sys
try:
    import numpy as np
    import onnxruntime as ort
except ImportError as error:
    print(error)
    sys.exit(3)
job = json.load(open(sys.argv[1]))
if not job:
    sys.exit(0)
KINDS = {'float': 1, 'uint8': 2, 'int8': 3, 'uint16': 4, 'int16': 5, 'int32': 6, 'int64': 7, 'bool': 9, 'float16': 10,
         'double': 11, 'uint32': 12, 'uint64': 13, 'bfloat16': 16, 'float8e4m3fn': 17, 'float8e4m3fnuz': 18,
         'float8e5m2': 19, 'float8e5m2fnuz': 20, 'uint4': 21, 'int4': 22, 'float4e2m1': 23, 'float8e8m0': 24, 'string': 8}
options = ort.SessionOptions()
options.log_severity_level = 4
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
model = job['model']
if job['tail']:
    options.add_session_config_entry('session.model_external_initializers_file_folder_path', job['folder'])
    model = open(model, 'rb').read() + bytes.fromhex(job['tail'])
session = ort.InferenceSession(model, options, providers=['CPUExecutionProvider'])

def tensor(path, kind):
    array = np.load(path)
    if kind == 8:
        return np.array([word.decode() for word in array.ravel()], object).reshape(array.shape)
    if kind in (16, 17, 18, 19, 20):
        return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(array, kind)
    return array

# JSON has keys that are strings, and finite numbers.
def from_json(entries, keys, kind):
    key_type, value_type = int if keys == 7 else str, str if kind == 8 else int if kind == 7 else float
    return {key_type(key): value_type(value) for key, value in entries.items()}

def to_json(entries):
    named = {float('inf'): 'Infinity', -float('inf'): '-Infinity'}
    return {key: 'NaN' if value != value else named.get(value, value) for key, value in entries.items()}

feeds = {}
for item in job['inputs']:
    if 'maps' in item:
        maps = [from_json(entries, item['keys'], item['kind']) for entries in item['maps']]
        feeds[item['name']] = maps if item['sequence'] else maps[0]
        continue
    values = [tensor(path, item['kind']) for path in item['files']]
    feeds[item['name']] = None if item['none'] else values if item['sequence'] else values[0]
types = {output.name: output.type for output in session.get_outputs()}

def save(base, value):
    if isinstance(value, (list, tuple)):
        os.mkdir(base)
        for index, item in enumerate(value):
            save(os.path.join(base, str(index)), item)
        return
    value = np.asarray(value)
    if value.dtype.kind == 'O':
        value = value.astype(str)
    if value.dtype.isbuiltin != 1 and value.dtype.kind != 'U':
        value = value.view(np.uint16 if value.dtype.itemsize == 2 else np.uint8)
    np.save(base + '.npy', value, allow_pickle=False)

found = []
for index, (name, value) in enumerate(zip(job['outputs'], session.run(job['outputs'], feeds))):
    inner = types[name][types[name].rfind('tensor(') + 7:].rstrip(')')
    found.append({'none': value is None, 'sequence': isinstance(value, list), 'kind': KINDS.get(inner, 0)})
    if value is not None and 'map(' in types[name]:
        found[-1]['keys'] = 8 if 'map(string' in types[name] else 7
        maps = [to_json(entries) for entries in value] if isinstance(value, list) else to_json(value)
        json.dump(maps, open(os.path.join(job['results'], '%d.json' % index), 'w'))
    elif value is not None:
        save(os.path.join(job['results'], str(index)), value)
json.dump(found, open(os.path.join(job['results'], 'types.json'), 'w'))
)";

void appendLength(std::string& bytes, size_t length) {
  for (; length > 127; length >>= 7) bytes += static_cast<char>((length & 127) | 128);
  bytes += static_cast<char>(length);
}

std::string message(char tag, const std::string& body) {
  std::string bytes(1, tag);
  appendLength(bytes, body.size());
  return bytes + body;
}

// ModelProto.graph (7) with a GraphProto.output (12) of nothing but a ValueInfoProto.name (1) for each.
std::string moreOutputs(const std::vector<std::string>& names) {
  std::string outputs;
  for (const std::string& name : names) outputs += message(0x62, message(0x0A, name));
  return names.empty() ? std::string() : message(0x3A, outputs);
}

std::string hexadecimal(const std::string& bytes) {
  std::string out;
  for (const char c : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

std::string python() {
  const char* chosen = std::getenv("AGLOW_PYTHON");
  return chosen != nullptr && *chosen != '\0' ? chosen : "python3";
}

// What a failed process said last.
std::string lastLine(const std::string& log) {
  std::string text = log;
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text.substr(text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1);
}

Status runScript(const TemporaryFolder& folder, const nlohmann::json& job) {
  const std::string script = folder.file("script.py"), order = folder.file("job.json");
  std::ofstream(script) << kScript;
  std::ofstream(order) << job.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  const std::string program = python();
  AGLOW_TRY(const int code, runProgram({program, script, order}, folder.path()));
  const std::string said = lastLine(readAll(folder.file("log")));
  const std::string hint =
      fmt::format("{} -m pip install onnxruntime, or set AGLOW_PYTHON to a Python that has it", program);
  if (code == kNoProgram)
    return Error{.code = Code::Usage,
                 .message = fmt::format("onnxruntime cannot be asked: there is no program '{}'", program),
                 .where = {},
                 .hint = "install Python and its package onnxruntime, or set AGLOW_PYTHON to a Python that has it"};
  if (code == kNoModule)
    return Error{.code = Code::Usage,
                 .message = fmt::format("onnxruntime is not installed for {}: {}", program, said),
                 .where = {},
                 .hint = hint};
  if (code != 0)
    return Error{.code = Code::UnsupportedFeature,
                 .message = fmt::format("onnxruntime does not run the model: {}", said)};
  return {};
}

class OnnxruntimeEngine : public Engine {
public:
  OnnxruntimeEngine(std::string modelFile, const onnx::Model& model)
      : Engine("onnxruntime"), file_(std::move(modelFile)) {
    for (const onnx::ValueInfo& info : model.graph.outputs) outputs_.insert(info.name);
  }

  Diagnosed<std::vector<ModelValue>> values(const std::vector<std::string>& names, const ModelValues& inputs) override {
    auto result = ask(names, inputs);
    if (!result.ok()) return result.error();
    return *std::move(result);
  }

private:
  Result<std::vector<ModelValue>> ask(const std::vector<std::string>& names, const ModelValues& inputs) const {
    AGLOW_TRY(const TemporaryFolder folder, TemporaryFolder::create());
    std::vector<std::string> more;
    for (const std::string& name : names)
      if (!outputs_.contains(name)) more.push_back(name);
    const size_t slash = file_.rfind('/');
    nlohmann::json job = {{"model", file_},
                          {"folder", slash == std::string::npos ? "." : file_.substr(0, slash + 1)},
                          {"tail", hexadecimal(moreOutputs(more))},
                          {"inputs", nlohmann::json::array()},
                          {"outputs", names},
                          {"results", folder.path()}};
    for (const auto& [name, value] : inputs) {
      nlohmann::json item = {{"name", name},
                             {"none", value.none},
                             {"sequence", value.isSequence},
                             {"kind", 0},
                             {"files", nlohmann::json::array()}};
      const auto add = [&](const auto& tensor, int32_t kind) -> Status {
        const std::string path =
            folder.file(fmt::format("input_{}_{}.npy", job["inputs"].size(), item["files"].size()));
        AGLOW_OK(writeNpy(path, tensor));
        item["kind"] = kind;
        item["files"].push_back(path);
        return {};
      };
      for (const Tensor& tensor : value.tensors) AGLOW_OK(add(tensor, elemInfo(tensor.type().kind()).onnx));
      for (const StringTensor& tensor : value.strings) AGLOW_OK(add(tensor, onnx::kStringType));
      for (const MapValue& map : value.maps) {
        AGLOW_TRY(const std::string text, mapsText(ModelValue::of(map)));
        item["maps"].push_back(nlohmann::json::parse(text));
        item["keys"] = areStrings(map.keys()) ? onnx::kStringType : elemInfo(ElemKind::Int64).onnx;
        item["kind"] = map.hasStrings() ? onnx::kStringType : elemInfo(map.numbers().type().kind()).onnx;
      }
      job["inputs"].push_back(std::move(item));
    }
    AGLOW_OK(runScript(folder, job));
    const nlohmann::json types = nlohmann::json::parse(readAll(folder.file("types.json")), nullptr, false);
    AGLOW_CHECK(types.is_array() && types.size() == names.size(), "onnxruntime's script leaves its types");
    std::vector<ModelValue> values;
    for (size_t i = 0; i < names.size(); ++i) {
      const bool sequence = types[i]["sequence"].get<bool>();
      const bool maps = types[i].contains("keys");
      const onnx::TypeProto type =
          onnx::valueType(types[i]["kind"].get<int32_t>(), sequence, maps ? types[i]["keys"].get<int32_t>() : 0);
      const std::string base = folder.file(std::to_string(i));
      const std::string suffix = maps ? ".json" : sequence ? "" : ".npy";
      auto value = types[i]["none"].get<bool>() ? ModelValue::absent() : readValue(base + suffix, type);
      if (!value.ok()) return std::move(value).error().at(fmt::format("onnxruntime's value '{}'", names[i]));
      values.push_back(*std::move(value));
    }
    return values;
  }

  std::string file_;
  std::set<std::string> outputs_;
};

}  // namespace

Result<std::unique_ptr<Engine>> onnxruntimeEngine(const std::string& modelFile, const onnx::Model& model) {
  AGLOW_TRY(const TemporaryFolder folder, TemporaryFolder::create());
  AGLOW_OK(runScript(folder, nlohmann::json()));
  return std::unique_ptr<Engine>(std::make_unique<OnnxruntimeEngine>(modelFile, model));
}

}  // namespace aglow::cli
