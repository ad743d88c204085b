/* TENON_SANITIZER: what this file is compiled with, for GCC and clang. C99; includes nothing. */
#ifndef TENON_SUPPORT_SANITIZER_H
#define TENON_SUPPORT_SANITIZER_H

/* The numbers are part of the plugin seam (plugin/abi.h). */
enum { TENON_SANITIZER_NONE = 0, TENON_SANITIZER_ADDRESS = 1, TENON_SANITIZER_THREAD = 2, TENON_SANITIZER_MEMORY = 3 };

#if defined(__SANITIZE_ADDRESS__)
#define TENON_SANITIZER TENON_SANITIZER_ADDRESS
#elif defined(__SANITIZE_THREAD__)
#define TENON_SANITIZER TENON_SANITIZER_THREAD
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TENON_SANITIZER TENON_SANITIZER_ADDRESS
#elif __has_feature(thread_sanitizer)
#define TENON_SANITIZER TENON_SANITIZER_THREAD
#elif __has_feature(memory_sanitizer)
#define TENON_SANITIZER TENON_SANITIZER_MEMORY
#endif
#endif
#ifndef TENON_SANITIZER
#define TENON_SANITIZER TENON_SANITIZER_NONE
#endif

#endif
