// For authors of plugins in C++. One line makes a library a plugin:
//
//   class MyPlugin final : public tenon::Plugin { ... };
//   TENON_PLUGIN(MyPlugin, "acme", "Acme Inc.", "1.2.0", "acme-small acme-large")
//
// It defines the exported symbol, the note that can be read without running code, and the guards that keep exceptions
// inside the plugin. The class is used by cores of the same layout (see layout.hpp). With a static member
//
//   static void fill(tenon_slots& slots);      // TENON_SET_SLOT(&slots, run, tenon::guarded<run>)
//
// the library has plain slots too (abi.h), for cores of any layout.
#pragma once
#include <concepts>
#include <exception>
#include <string_view>
#include <type_traits>

#include <tenon/plugin/abi.h>
#include <tenon/plugin/backend.hpp>
#include <tenon/plugin/layout.hpp>

namespace tenon {

namespace plugin_internal {

inline int32_t fail(tenon_call* call, std::string_view message) {
  return call->fail(call, TENON_PLUGIN_FAULT, {message.data(), message.size()});
}

// Runs `body`; an exception makes the call fail.
template <class Body>
int32_t guard(tenon_call* call, const Body& body) noexcept {
#ifdef __cpp_exceptions
  try {
    return body();
  } catch (const std::exception& thrown) {
    return fail(call, thrown.what());
  } catch (...) {
    return fail(call, "threw something that is no std::exception");
  }
#else
  (void)call;
  return body();
#endif
}

template <auto kFunction>
struct Guarded;
template <class... Arguments, int32_t (*kFunction)(tenon_call*, Arguments...)>
struct Guarded<kFunction> {
  static int32_t call(tenon_call* call, Arguments... arguments) {
    return guard(call, [&] { return kFunction(call, arguments...); });
  }
};
// Functions that release something have no way to report an error.
template <class Handle, void (*kFunction)(Handle*)>
struct Guarded<kFunction> {
  static void call(Handle* handle) {
#ifdef __cpp_exceptions
    try {
      kFunction(handle);
    } catch (...) {}
#else
    kFunction(handle);
#endif
  }
};

template <class P>
concept HasPlainSlots = requires(tenon_slots& slots) {
  P::fill(slots);
};

template <class P>
int32_t create(tenon_call* call, void** plugin) {
  return guard(call, [&]() -> int32_t {
    *plugin = static_cast<Plugin*>(new P);
    return TENON_OK;
  });
}
inline void destroy(void* plugin) { delete static_cast<Plugin*>(plugin); }
inline const tenon_layout_line* layout(size_t* count) {
  *count = std::size(layout_internal::kLines);
  return layout_internal::kLines;
}

template <class P>
int32_t query(tenon_call* call, const tenon_host*, tenon_slots* slots) {
  return guard(call, [&]() -> int32_t {
    TENON_SET_SLOT(slots, create_plugin, create<P>);
    TENON_SET_SLOT(slots, destroy_plugin, Guarded<destroy>::call);
    TENON_SET_SLOT(slots, layout, layout);
    if constexpr (HasPlainSlots<P>) P::fill(*slots);
    return TENON_OK;
  });
}

}  // namespace plugin_internal

// A slot that catches the exceptions of `kFunction`.
template <auto kFunction>
inline constexpr auto guarded = plugin_internal::Guarded<kFunction>::call;

}  // namespace tenon

// TENON_PLUGIN(class, name, vendor, version, targets): once per library, at file scope, outside namespaces. The texts
// are literals; `targets` names the targets that the plugin drives, separated by blanks.
#define TENON_PLUGIN(plugin_class, name, vendor, version, targets)                                             \
  TENON_EXPORT_PLUGIN(                                                                                         \
      ::tenon::plugin_internal::query<plugin_class>,                                                           \
      TENON_PLUGIN_INFO(                                                                                       \
          ::tenon::kLayoutHash,                                                                                \
          TENON_FLAG_MATCHED | (::tenon::plugin_internal::HasPlainSlots<plugin_class> ? TENON_FLAG_PLAIN : 0), \
          TENON_STANDARD_LIBRARY, name, vendor, version, targets, __VERSION__, {0}));
