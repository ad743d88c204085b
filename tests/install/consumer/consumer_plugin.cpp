// A library made by tenon_add_plugin(): marked symbols are exported, all others are hidden, and the core that it uses
// is the program's own copy.
#include <tenon/support/export.hpp>
#include <tenon/support/name.hpp>

extern "C" {
TENON_API const void* consumer_plugin_name(const char* text) { return &tenon::Name(text).str(); }
const void* consumer_plugin_hidden() { return consumer_plugin_name("hidden"); }
}
