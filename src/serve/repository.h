// Model files by the names under which they are served.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "support/error.h"

namespace aglow::serve {

// The files of one model by their versions.
using ModelFiles = std::map<std::string, std::string>;

class Repository {
public:
  // Files and folders. A file is a model named as its stem; a folder holds such files, or folders NAME/VERSION/FILE
  // with numbers for versions. Faults: what is not there, a folder without models, two models of one name.
  static Result<Repository> create(std::vector<std::string> paths);

  // Looks again at what is there now.
  Result<std::map<std::string, ModelFiles>> scan() const;

private:
  std::vector<std::string> paths_;
};

// The latest: the largest number, or the last name where they are no numbers.
const std::string& latestOf(const ModelFiles& files);

}  // namespace aglow::serve
