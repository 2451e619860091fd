// What a command takes, as data: rows that say how each option is written and where its value goes. Only parser.cpp
// knows the library that reads command lines, so that no other file has to be compiled with it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "support/error.h"

namespace aglow::cli {

// What a value has to be.
struct Between {
  int from, to;
};
struct UpTo {  // a real number from 0 on
  double most;
};
struct Positive {};
struct OneOf {
  std::string_view words;  // with commas between
};
using Check = std::variant<std::monostate, Between, UpTo, Positive, OneOf>;

// Texts outlive the options: most are literals.
struct Option {
  // Its type decides how the option is read: a bool is a flag without a value, a list gathers the values of an option
  // that may be repeated.
  using Place = std::variant<bool*, int*, int64_t*, uint64_t*, double*, std::optional<double>*, std::string*,
                             std::vector<std::string>*, std::vector<int64_t>*>;

  std::string_view names;  // "--input,-i"; without dashes it is the word at this position
  Place place;
  std::string_view doc;
  std::string_view type = {};  // what the help calls its value; empty: after the place's type
  Check check = {};
  bool required = false;
  bool showDefault = false;           // in the help
  bool commas = false;                // one word may hold several values of a list
  std::string_view environment = {};  // the variable that is asked where the option is missing
  std::string_view excludes = {};     // an option above it that it cannot stand with
  std::string_view group = {};        // in the help; empty: the first, with what is used most
  bool reads = false;                 // the value is a file to read, or NAME=FILE: - is stdin

  bool isOption() const { return names.starts_with('-'); }
  bool takesValue() const { return !std::holds_alternative<bool*>(place); }
  bool repeats() const {
    return std::holds_alternative<std::vector<std::string>*>(place) ||
           std::holds_alternative<std::vector<int64_t>*>(place);
  }
  // "-i" and "--input" of "--input,-i".
  std::vector<std::string_view> spellings() const;
  // The long name, or the only one, without dashes.
  std::string_view key() const;
};

// The rows under one heading of the help.
std::vector<Option> inGroup(std::string_view group, std::vector<Option> options);

// What a command does once its options are read.
using Action = std::function<ExitCode()>;

inline void addTo(std::vector<Option>& options, const std::vector<Option>& more) {
  options.insert(options.end(), more.begin(), more.end());
}

struct Command {
  std::string_view name, doc;
  std::vector<Option> options;
  std::string_view footer = {};  // below the help; empty: the program's
  Action action;                 // keeps the places of the options alive
  std::string_view group = {};   // in the program's help; empty: the first, with what is used most
};

}  // namespace aglow::cli
