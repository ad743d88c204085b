// What a plugin's file tells about itself, without a line of it being run.
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

// Opens the file without waiting (a FIFO cannot hang it), and refuses in a sentence of its own: what is no regular
// file; unless `insecure`, files and folders that others may write or that belong to neither root nor the caller; what
// is no library of this machine, or is cut off; a library without a note of Tenon; a note that contradicts itself; an
// interface that this core does not speak.
TENON_API Result<PluginFile> inspect_plugin(const std::string& path, bool insecure = false);

}  // namespace tenon
