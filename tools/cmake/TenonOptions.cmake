# How everything of this tree is compiled: warnings, sanitizers, the compiler cache.

add_library(tenon_options INTERFACE)
# Not -Wshadow: TENON_TRY and TENON_OK inside a lambda inside TENON_OK shadow each other on purpose.
target_compile_options(tenon_options INTERFACE -Wall -Wextra -Wpedantic -Wnon-virtual-dtor
                       -Wno-missing-field-initializers $<$<BOOL:${TENON_WERROR}>:-Werror>)
if(TENON_SANITIZE)
  target_compile_options(tenon_options INTERFACE -fsanitize=${TENON_SANITIZE} -fno-omit-frame-pointer
                         -fno-sanitize-recover=all)
  target_link_options(tenon_options INTERFACE -fsanitize=${TENON_SANITIZE})
  # ThreadSanitizer knows no fences, and g++ says so of each: what one orders may be reported as a race.
  if(TENON_SANITIZE MATCHES thread AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(tenon_options INTERFACE -Wno-tsan)
  endif()
  # What our own code must survive, so it must see it: the allocator answers null to an absurd size.
  set(TENON_TEST_SANITIZER_ENV ASAN_OPTIONS=allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1)
endif()

# tenon_unity(TARGET): compiles the sources of TARGET together, some at a time, when TENON_UNITY is on: half of a source's
# time goes into headers that its neighbours read, too. So names of unnamed namespaces differ within a target.
function(tenon_unity TARGET)
  if(TENON_UNITY)
    set_target_properties(${TARGET} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
    # g++ takes an included source for a header, whose classes others might see with other members.
    target_compile_options(${TARGET} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# ccache where present. It caches a unit that uses a precompiled header only when told that neither macros defined on
# the way nor __TIME__ and its kind matter (its manual, "Precompiled headers"). Results are told apart by the files that
# were read, not by preprocessed text: a comment changed in a header leaves that text as it is, but g++ takes a
# precompiled header's `#pragma once` only for files of the very same bytes, and reads a changed one twice. The namespace
# keeps what was stored by preprocessed text from being found.
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
