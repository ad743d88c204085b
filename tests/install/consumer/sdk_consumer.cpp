// sdk_consumer PLUGIN: opens the plugin and checks that both use the same core.
#include <dlfcn.h>

#include <cstdio>

#include <tenon/support/name.hpp>

namespace {
int fail(const char* sentence) {
  std::fprintf(stderr, "sdk_consumer: %s\n", sentence);
  return 1;
}
}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return fail("give it the path of a plugin");
  void* plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!plugin) return fail(dlerror());
  if (dlsym(plugin, "consumer_plugin_hidden")) return fail("the plugin exports a function that is not marked");
  const auto name_in_plugin = reinterpret_cast<const void* (*)(const char*)>(dlsym(plugin, "consumer_plugin_name"));
  if (!name_in_plugin) return fail("the plugin does not export its marked function");
  if (name_in_plugin("Conv") != &tenon::Name("Conv").str()) return fail("program and plugin hold two tables of names");
  return 0;
}
