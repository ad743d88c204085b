// A library made by tenon_add_plugin(): what is marked is exported, the rest is hidden, and the core it talks to is the
// program's own copy.
#include <tenon/support/export.hpp>
#include <tenon/support/name.hpp>

extern "C" {
TENON_API const void* consumer_plugin_name(const char* text) { return &tenon::Name(text).str(); }
const void* consumer_plugin_hidden() { return consumer_plugin_name("hidden"); }
}
