// Strings by number, so that operators which move or compare elements can work on numbers. The numbers follow the
// strings' order by bytes; 0 is the empty string, and -1 stands for all that are not in the vocabulary.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/model_value.h"

namespace aglow::strings {

class Vocabulary {
public:
  explicit Vocabulary(std::vector<std::string> words);
  Vocabulary(Vocabulary&&) = default;  // a copy would view the words of another
  Vocabulary& operator=(Vocabulary&&) = default;
  // Of all the strings in some values.
  static Vocabulary of(const std::vector<ModelValue>& values);

  int64_t number(std::string_view word) const;
  const std::vector<std::string>& words() const { return words_; }

  // Strings as i64 tensors; what holds none stays as it is.
  Tensor numbers(const StringTensor& strings) const;
  ModelValue numbers(const ModelValue& value) const;
  // The way back; RuntimeValue where a number is none of the vocabulary's.
  Result<StringTensor> strings(const Tensor& numbers) const;
  Result<ModelValue> strings(const ModelValue& value) const;

private:
  std::vector<std::string> words_;
  std::unordered_map<std::string_view, int64_t> numbers_;  // of views into the words
};

}  // namespace aglow::strings
