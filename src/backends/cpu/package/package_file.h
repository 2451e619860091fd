// The file of a package: sections that begin on pages, after a table that says where they are. See docs/packages.md.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "support/file_set.h"

namespace aglow {

enum class PackageSection : uint32_t {
  Description = 1,  // text: for which processor, and what the functions take and give
  Programs = 2,     // text: their placed programs
  Code = 3,         // linked code of the programs
  Weights = 4,      // blobs of all programs
  Elsewhere = 5,    // text: blobs that a cache has in files of their own
};

// What is written: the pieces live as long as the call.
struct PackagePart {
  PackageSection section;
  uint32_t variant = 0;  // code for one processor and what belongs to it; 0 for what belongs to all
  std::vector<std::span<const std::byte>> pieces;
};
// All bytes of the file, in order.
class PackageBytes {
public:
  explicit PackageBytes(std::span<const PackagePart> parts);
  FileSet::Pieces pieces() const { return pieces_; }

private:
  std::string front_;  // header and table
  std::vector<std::span<const std::byte>> pieces_;
};

// Which version and build packages are of; others are refused.
std::string packageVersion();

// A package that is mapped: bytes are read when they are looked at, and shared with all other processes that map it.
// Whoever changes the file in place changes these bytes; to write a new one and rename it is safe.
class PackageFile : public std::enable_shared_from_this<PackageFile> {
public:
  // BadPackage where the table, or a place or size in it, is wrong; OtherPackage for another version's.
  static Result<std::shared_ptr<const PackageFile>> open(const std::string& path);
  static Result<std::shared_ptr<const PackageFile>> of(const FileDescriptor& file);
  ~PackageFile();
  PackageFile(const PackageFile&) = delete;
  PackageFile& operator=(const PackageFile&) = delete;

  uint32_t variants() const { return variants_; }
  // BadPackage where there is no such section, or, where they are checked, its bytes are not those that were written.
  // Those of weights are many, and are looked at only where somebody asks.
  enum class Check : uint8_t { Bytes, Place };
  Result<std::span<std::byte>> find(PackageSection section, uint32_t variant = 0, Check check = Check::Bytes) const;

private:
  struct Row {
    uint32_t section = 0, variant = 0;
    uint64_t offset = 0, bytes = 0, hash = 0;
  };
  struct Header;

  PackageFile(std::byte* base, uint64_t bytes) : base_(base), bytes_(bytes) {}
  Status readTable();

  std::byte* base_;
  uint64_t bytes_;
  std::vector<Row> rows_;
  uint32_t variants_ = 0;

  friend class PackageBytes;
};

}  // namespace aglow
