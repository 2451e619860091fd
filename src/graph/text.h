// The text form of graphs: parse(print(m)) equals m for every module. The grammar is in docs/text-form.md.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "graph/blobs.h"
#include "graph/module.h"

namespace aglow {

// Constants too large for the text go to `blobs`; without it they are named by their hash, and only people can read the
// text.
std::string print(const Module& module, BlobStore* blobs = nullptr);
// Parts of it, to look at.
std::string print(const Function& function);
std::string print(const Node& node);

// BadText with line and column on the first fault. Types may be left out; those given must be the inferred ones.
Result<std::unique_ptr<Module>> parseModule(std::string_view text, const BlobStore& blobs = {});

// A module as files: the text, and beside it the blobs (NAME.graph, NAME.blobs) if it has any.
Status addModule(FileSet& files, const std::string& path, const Module& module);
Status writeModule(const std::string& path, const Module& module);
Result<std::unique_ptr<Module>> readModule(const std::string& path);

}  // namespace aglow
