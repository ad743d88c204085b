// The information in a plugin's file, read without running any of its code.
#pragma once
#include <string>
#include <vector>

#include <tenon/plugin/abi.h>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon {

struct PluginFile {
  std::string path;  // canonical
  uint64_t device = 0, inode = 0;
  tenon_plugin_info info;
  std::string name, vendor, version;
  std::vector<std::string> targets;
};

// Opens the file without waiting (a FIFO cannot block it). Refuses, each with its own message: files that are not
// regular; unless `insecure`, files and folders that others may write or that belong to neither root nor the caller;
// files that are not a library of this machine, or are truncated; a library without a note of Tenon; a note that
// contradicts itself; an interface that this core does not support.
TENON_API Result<PluginFile> inspect_plugin(const std::string& path, bool insecure = false);

}  // namespace tenon
