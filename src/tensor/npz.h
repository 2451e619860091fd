// numpy's .npz files: .npy files in one, as np.savez writes them. One of them is called "FILE.npz:NAME" wherever a .npy
// file can be named.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/file.h"

namespace aglow {

// Names of the arrays, in their order. BadNpy for what is no such file, or is compressed.
Result<std::vector<std::string>> npzNames(const std::string& path);
// The bytes of a .npy file: by its path, or as a part of another file.
Result<SharedBytes> openNpy(const std::string& path);

// An archive of arrays, each with its name and the bytes of its .npy file; TooLarge beyond 4 GiB.
using NamedArrays = std::vector<std::pair<std::string, std::string>>;
Result<std::string> npzBytes(const NamedArrays& arrays);

}  // namespace aglow
