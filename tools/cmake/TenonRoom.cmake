# One CMake target per room of sdk/tenon. Rooms are object libraries, which form two shared libraries:
# libtenon_runtime.so (runs compiled artefacts) and libtenon.so (the compiler, linked to the former), so a process
# contains one copy of each room in any case.

find_package(spdlog REQUIRED)

# tenon_room(NAME [HOT|COLD] LIB runtime|compiler [STOREYS folders...] SRCS files... DEPS rooms...
#            [LINK third-party targets...])
# DEPS are the rooms that this one may include; tools/check_layers.py refuses others. STOREYS are the layers of a large
# room, one folder each, bottom up: each may include itself and those before it, which the same script checks. LINK is
# private to the room: no public header may need it.
function(tenon_room NAME)
  cmake_parse_arguments(ROOM "HOT;COLD" "LIB" "STOREYS;SRCS;DEPS;LINK" ${ARGN})
  add_library(tenon_room_${NAME} OBJECT ${ROOM_SRCS})
  add_library(tenon::room::${NAME} ALIAS tenon_room_${NAME})
  target_include_directories(tenon_room_${NAME} PUBLIC ${PROJECT_SOURCE_DIR}/sdk)
  target_link_libraries(tenon_room_${NAME} PRIVATE tenon_options ${ROOM_LINK})
  target_compile_definitions(tenon_room_${NAME} PRIVATE TENON_BUILDING=1)
  # HOT rooms have loops over tensors, for which more compile time pays. COLD rooms run once per operator, file or
  # plugin; with -O1 they take a quarter less compile time. The others are compiled with -O2.
  if(ROOM_HOT)
    target_compile_options(tenon_room_${NAME} PRIVATE $<$<CONFIG:Release>:-O3>)
  elseif(ROOM_COLD)
    target_compile_options(tenon_room_${NAME} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
  tenon_unity(tenon_room_${NAME})
  if(TENON_PCH)
    target_precompile_headers(tenon_room_${NAME} PRIVATE
      <algorithm> <cstdint> <functional> <map> <memory> <span> <string> <string_view> <unordered_map> <vector>)
  endif()
  set_property(GLOBAL APPEND PROPERTY TENON_ROOMS_${ROOM_LIB} ${NAME})
  set_property(GLOBAL APPEND PROPERTY TENON_LINK_${ROOM_LIB} ${ROOM_LINK})
endfunction()

# Only the libraries are measured. Tests, and programs that only call libraries, should build quickly.
set(TENON_QUICK_OPTIMIZATION $<$<CONFIG:Release>:-O1>)

# tenon_test(NAME SRCS files... [LINK targets...] [ENV NAME=VALUE...] [LABELS labels...]): a GoogleTest program, one ctest.
function(tenon_test NAME)
  cmake_parse_arguments(TEST "" "" "SRCS;LINK;ENV;LABELS" ${ARGN})
  add_executable(${NAME} ${TEST_SRCS})
  target_link_libraries(${NAME} PRIVATE tenon_options $<TARGET_NAME_IF_EXISTS:tenon::sdk> tenon::runtime
                        GTest::gmock GTest::gtest_main ${TEST_LINK})
  target_include_directories(${NAME} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_options(${NAME} PRIVATE ${TENON_QUICK_OPTIMIZATION})
  set_target_properties(${NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  if(TENON_PCH)
    target_precompile_headers(${NAME} REUSE_FROM tenon_test_pch)
  endif()
  add_test(NAME ${NAME} COMMAND ${NAME})
  set_tests_properties(${NAME} PROPERTIES ENVIRONMENT "${TEST_ENV};${TENON_TEST_SANITIZER_ENV}" LABELS "${TEST_LABELS}" TIMEOUT 300)
endfunction()
