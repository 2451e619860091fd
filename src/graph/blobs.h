// The bytes of constants that are too large to stand in the text: kept by hash, in memory or in a file beside the text.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "support/file_set.h"
#include "tensor/tensor.h"

namespace aglow {

// What is looked at when blobs are read.
enum class BlobCheck : uint8_t {
  Bytes,  // everything
  Table,  // where they are; whoever gives the bytes answers for them
};

// Tensors by key. The key is the tensor's hash, or the next free number where another tensor has that hash.
class BlobStore {
public:
  // Numbers instead of hashes, for whoever looks at the bytes afterwards: a text with them is no file's.
  enum class Keys : uint8_t { Hashes, Numbers };
  BlobStore() = default;
  explicit BlobStore(Keys keys) : keys_(keys) {}

  uint64_t add(const Tensor& tensor);
  // Under the key that it has elsewhere.
  void put(uint64_t key, Tensor tensor) { tensors_.insert_or_assign(key, std::move(tensor)); }
  // Null when there is none.
  const Tensor* find(uint64_t key) const;
  const std::map<uint64_t, Tensor>& tensors() const { return tensors_; }

private:
  friend Result<BlobStore> parseBlobs(const SharedBytes& file, BlobCheck check);

  Keys keys_ = Keys::Hashes;
  std::map<uint64_t, Tensor> tensors_;
};

// A file of blobs, laid out so that it can be mapped (little endian):
//   "aglowblb", version (u32), number of blobs (u32), bytes of the table (u64)
//   the table, as text: one line "0x0123456789abcdef f32[8,8] at 128" a blob, in the order of keys
//   the bytes of each blob, at the next multiple of 64; gaps are zero, and the file ends with the last blob
struct BlobPieces {
  std::string front;                                // header and table
  std::vector<std::span<const std::byte>> payload;  // what follows; lives as long as the store
};
BlobPieces piecesOf(const BlobStore& blobs);
Status addBlobs(FileSet& files, const std::string& path, const BlobStore& blobs);
Status writeBlobs(const std::string& path, const BlobStore& blobs);
// Maps the file; the tensors keep it mapped. BadFile on any deviation from the layout, or when bytes do not have the
// hash that their key promises.
Result<BlobStore> readBlobs(const std::string& path);
Result<BlobStore> parseBlobs(const SharedBytes& file, BlobCheck check = BlobCheck::Bytes);

}  // namespace aglow
