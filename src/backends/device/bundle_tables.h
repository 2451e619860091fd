// What the C file of a device bundle knows of its model, as C: which kernels run over how many items, where their
// arguments lie, what comes in and goes out, and how state begins. Nothing of it is a driver's own.
#pragma once

#include <fmt/format.h>

#include <array>
#include <string>
#include <vector>

#include "backends/cpu/bundle/bundle.h"
#include "backends/device/steps.h"

namespace aglow::device {

class BundleTables {
public:
  // With pairs, f64 are two f32 each on any device.
  BundleTables(const codegen::Bundle& bundle, const codegen::DeviceShape& shape, bool pairs);

  // TooLarge with what is needed where a device has no room for the buffers, which are one of each use.
  Status fit(const Limits& limits) const;
  // Of all entries.
  const KernelTexts& kernels() const { return kernels_; }
  // The types of the tables, which need <stddef.h> and <stdint.h>.
  static const char* types();
  // The tables by entry, `aglow_entries` of them all, `aglow_initials` of state, bytes of buffers, and counts.
  std::string text();

private:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args);
  template <class List, class Row>
  void table(std::string_view type, std::string_view zeros, const std::string& name, const List& list, const Row& row);
  void ofEntry(size_t number);
  void ofAll();

  const codegen::Bundle& bundle_;
  bool pairs_;
  KernelTexts kernels_;
  std::vector<MemoryPlan> plans_;  // by entry
  std::vector<Loaded> loaded_;
  std::array<uint64_t, kUses> bytes_ = {};
  size_t steps_ = 0, faults_ = 0, groupItems_ = 1;
  std::string text_;
};

}  // namespace aglow::device
