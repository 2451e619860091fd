// A map from integers or strings to numbers or strings, as operators of ai.onnx.ml take and give them. Like strings,
// maps live between compiled parts: programs have none.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "tensor/string_tensor.h"
#include "tensor/tensor.h"

namespace aglow {

// The keys of a map, or the labels of a table's columns.
using MapKeys = std::variant<std::vector<int64_t>, std::vector<std::string>>;
int64_t sizeOf(const MapKeys& keys);
bool areStrings(const MapKeys& keys);
// "3", "setosa"
std::string keyText(const MapKeys& keys, int64_t index);

// What belongs to the keys, in their order: a tensor with one axis.
using MapColumn = std::variant<Tensor, StringTensor>;
int64_t lengthOf(const MapColumn& values);

class MapValue {
public:
  // As many values as keys; of equal keys the last one counts.
  MapValue(MapKeys keys, MapColumn values);

  // One for each row of numbers [rows, keys]. They share their keys, and the numbers where those own their bytes.
  static std::vector<MapValue> rows(const MapKeys& keys, const Tensor& numbers);

  const MapKeys& keys() const { return *keys_; }  // ascending, each once
  const MapColumn& values() const { return values_; }
  int64_t size() const { return sizeOf(*keys_); }
  bool hasStrings() const { return std::holds_alternative<StringTensor>(values_); }
  const Tensor& numbers() const { return std::get<Tensor>(values_); }
  const StringTensor& strings() const { return std::get<StringTensor>(values_); }
  std::string text() const;  // "map(string, f32)"

private:
  MapValue(std::shared_ptr<const MapKeys> keys, MapColumn values)
      : keys_(std::move(keys)), values_(std::move(values)) {}

  std::shared_ptr<const MapKeys> keys_;
  MapColumn values_;
};

}  // namespace aglow
