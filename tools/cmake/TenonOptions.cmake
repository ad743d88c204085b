# Compiler options for the whole tree: warnings, sanitizers, the compiler cache.

add_library(tenon_options INTERFACE)
# No -Wshadow: TENON_TRY and TENON_OK inside a lambda inside TENON_OK shadow each other on purpose.
target_compile_options(tenon_options INTERFACE -Wall -Wextra -Wpedantic -Wnon-virtual-dtor
                       -Wno-missing-field-initializers $<$<BOOL:${TENON_WERROR}>:-Werror>)
if(TENON_SANITIZE)
  target_compile_options(tenon_options INTERFACE -fsanitize=${TENON_SANITIZE} -fno-omit-frame-pointer
                         -fno-sanitize-recover=all)
  target_link_options(tenon_options INTERFACE -fsanitize=${TENON_SANITIZE})
  # ThreadSanitizer does not support fences, and g++ warns about each: accesses ordered by one may be reported as races.
  if(TENON_SANITIZE MATCHES thread AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(tenon_options INTERFACE -Wno-tsan)
  endif()
  # The allocator must return null for an absurd size, because the code is tested to handle failed allocations.
  set(TENON_TEST_SANITIZER_ENV ASAN_OPTIONS=allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1)
endif()

# tenon_unity(TARGET): compiles the sources of TARGET in groups if TENON_UNITY is on, because half of a source's compile
# time is spent on headers that its neighbours include as well. Names in unnamed namespaces must therefore be unique in
# a target.
function(tenon_unity TARGET)
  if(TENON_UNITY)
    set_target_properties(${TARGET} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
    # g++ treats an included source as a header, and warns that other units might define its classes with other members.
    target_compile_options(${TARGET} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# Uses ccache if available. It caches a unit with a precompiled header only if it is told to ignore macros defined
# before the header, and __TIME__ and similar macros (its manual, "Precompiled headers"). Results are identified by the
# files that were read, not by preprocessed text: a change to a comment in a header leaves that text unchanged, but g++
# applies `#pragma once` of a precompiled header only to files with identical bytes, and reads a changed one twice. The
# namespace hides results that were stored by preprocessed text.
find_program(TENON_CCACHE ccache)
if(TENON_CCACHE)
  foreach(lang C CXX)
    if(NOT DEFINED CMAKE_${lang}_COMPILER_LAUNCHER)
      set(CMAKE_${lang}_COMPILER_LAUNCHER
          ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
          CCACHE_DEPEND=1 CCACHE_NAMESPACE=tenon-by-files ${TENON_CCACHE})
    endif()
  endforeach()
endif()
