#include "dynamic/strings/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>

namespace aglow::strings {

Vocabulary::Vocabulary(std::vector<std::string> words) : words_(std::move(words)) {
  words_.emplace_back();
  std::sort(words_.begin(), words_.end());
  words_.erase(std::unique(words_.begin(), words_.end()), words_.end());
  for (const std::string& word : words_) numbers_.emplace(word, std::ssize(numbers_));
}

Vocabulary Vocabulary::of(const std::vector<ModelValue>& values) {
  std::vector<std::string> words;
  for (const ModelValue& value : values)
    for (const StringTensor& tensor : value.strings)
      words.insert(words.end(), tensor.strings().begin(), tensor.strings().end());
  return Vocabulary(std::move(words));
}

int64_t Vocabulary::number(std::string_view word) const {
  const auto it = numbers_.find(word);
  return it == numbers_.end() ? -1 : it->second;
}

Tensor Vocabulary::numbers(const StringTensor& strings) const {
  std::vector<int64_t> found;
  found.reserve(strings.strings().size());
  for (const std::string& word : strings.strings()) found.push_back(number(word));
  return Tensor::of(Type(ElemKind::Int64, strings.shape()), found);
}

ModelValue Vocabulary::numbers(const ModelValue& value) const {
  if (!value.hasStrings()) return value;
  ModelValue result{.none = false, .isSequence = value.isSequence, .tensors = {}};
  for (const StringTensor& strings : value.strings) result.tensors.push_back(numbers(strings));
  return result;
}

Result<StringTensor> Vocabulary::strings(const Tensor& numbers) const {
  std::vector<std::string> found;
  if (numbers.type().kind() != ElemKind::Int64)
    return Error{.code = Code::BadNode, .message = fmt::format("expected strings, got {}", numbers.type().text())};
  for (const int64_t at : numbers.toInts()) {
    if (at < 0 || at >= std::ssize(words_))
      return Error{.code = Code::RuntimeValue,
                   .message = "strings have no arithmetic, but the node computes with them"};
    found.push_back(words_[static_cast<size_t>(at)]);
  }
  return StringTensor(numbers.type().shape(), std::move(found));
}

Result<ModelValue> Vocabulary::strings(const ModelValue& value) const {
  ModelValue result{.none = value.none, .isSequence = value.isSequence, .tensors = {}};
  for (const Tensor& tensor : value.tensors) {
    AGLOW_TRY(StringTensor found, strings(tensor));
    result.strings.push_back(std::move(found));
  }
  return result;
}

}  // namespace aglow::strings
