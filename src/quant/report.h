// What integers do to a model, measured on samples: plain data, and its forms for people and programs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "quant/quantize.h"

namespace aglow::quant {

// How far values in integers are from those in floats.
struct Noise {
  std::string name;
  double signal = 0, noise = 0;  // sums of squares

  void add(const Tensor& exact, const Tensor& rounded);
  // The ratio in decibels; infinite where nothing differs.
  double decibels() const;
};

// What one way to compute the model gives.
struct Outcome {
  std::vector<Noise> outputs;    // of the model, by their numbers
  int64_t rows = 0, same = 0;    // rows of the first output, and how many of them are largest at the same place
  std::optional<double> metric;  // where one is asked for

  // Of the noisiest output.
  double decibels() const;
};

// A layer that alone is computed in integers.
struct LayerReport {
  std::string name;
  std::string_view op;
  Outcome alone;
};

struct ValueReport {
  Noise noise;                           // what all before it have done to it
  std::optional<Parameters> parameters;  // where it becomes integers
  ValueProfile seen;
};

// What one of the passes before quantization gains: how it is without.
struct GainReport {
  std::string name;
  Outcome without;
};

struct Report {
  int64_t samples = 0;
  std::string metric;                 // its name; empty: none
  std::optional<double> floatMetric;  // of the model in floats
  Outcome integers;                   // all layers in integers, but those kept
  std::vector<GainReport> gains;      // of passes that are not disabled
  std::vector<LayerReport> layers;    // the one that matters most first
  std::vector<ValueReport> values;    // the noisiest first
  std::vector<Vetoed> vetoed;         // layers in floats that nobody asked for
  // What is to stay in floats to reach what was asked for, and what it gives then.
  struct Found {
    std::string goal;  // "30 dB"
    std::vector<std::string> keep;
    Outcome outcome;
  };
  std::optional<Found> found;
};

std::string textOf(const Report& report);
std::string jsonOf(const Report& report);
// One page that needs no other file.
std::string htmlOf(const Report& report, std::string_view title);

}  // namespace aglow::quant
