// A value that a model takes or gives at run time: a tensor, a map, a sequence of either, or an empty optional.
#pragma once

#include <string>
#include <vector>

#include "tensor/map_value.h"

namespace aglow {

struct ModelValue {
  bool none = false;
  bool isSequence = false;
  std::vector<Tensor> tensors;        // one, unless a sequence
  std::vector<StringTensor> strings;  // instead of tensors
  std::vector<MapValue> maps;         // instead of tensors

  static ModelValue of(Tensor tensor) { return {.none = false, .isSequence = false, .tensors = {std::move(tensor)}}; }
  static ModelValue of(StringTensor tensor) { return {.strings = {std::move(tensor)}}; }
  static ModelValue sequence(std::vector<Tensor> tensors) {
    return {.none = false, .isSequence = true, .tensors = std::move(tensors)};
  }
  static ModelValue stringSequence(std::vector<StringTensor> strings) {
    return {.isSequence = true, .strings = std::move(strings)};
  }
  static ModelValue of(MapValue map) { return {.maps = {std::move(map)}}; }
  static ModelValue mapSequence(std::vector<MapValue> maps) { return {.isSequence = true, .maps = std::move(maps)}; }
  static ModelValue absent() { return {.none = true, .isSequence = false, .tensors = {}}; }

  bool isTensor() const { return !none && !isSequence && !onHost(); }
  const Tensor& tensor() const { return tensors.front(); }
  // One tensor of strings.
  bool isStrings() const { return !none && !isSequence && !strings.empty(); }
  // A tensor or a sequence of strings. An empty sequence has no kind of elements.
  bool hasStrings() const { return !strings.empty(); }
  bool isMap() const { return !none && !isSequence && !maps.empty(); }
  // What lives between compiled parts: no program takes it.
  bool onHost() const { return !strings.empty() || !maps.empty(); }

  // Of a sequence.
  size_t items() const { return tensors.size() + strings.size() + maps.size(); }
  ModelValue item(size_t i) const {
    if (!maps.empty()) return of(maps[i]);
    return strings.empty() ? of(tensors[i]) : of(strings[i]);
  }
  // All items of a sequence are of one kind.
  void append(const ModelValue& one) {
    tensors.insert(tensors.end(), one.tensors.begin(), one.tensors.end());
    strings.insert(strings.end(), one.strings.begin(), one.strings.end());
    maps.insert(maps.end(), one.maps.begin(), one.maps.end());
  }

  // "f32[2,3]", "string[4]", "map(string, f32)", "a sequence", "none"
  std::string text() const {
    if (none) return "none";
    if (isSequence) return "a sequence";
    if (isMap()) return maps.front().text();
    return isStrings() ? strings.front().text() : tensor().type().text();
  }
};

}  // namespace aglow
