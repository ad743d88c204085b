# The two shared libraries of the SDK, built from the rooms that sdk/CMakeLists.txt added.
function(tenon_library TARGET KIND)
  get_property(rooms GLOBAL PROPERTY TENON_ROOMS_${KIND})
  get_property(links GLOBAL PROPERTY TENON_LINK_${KIND})
  set(objects)
  foreach(room IN LISTS rooms)
    list(APPEND objects $<TARGET_OBJECTS:tenon_room_${room}>)
  endforeach()
  add_library(${TARGET} SHARED ${objects})
  target_include_directories(${TARGET} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/sdk>
                                                 $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
                                                 $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(${TARGET} INTERFACE cxx_std_20)
  # Rooms contain only C++; without a source of its own, the target needs an explicit linker language.
  set_target_properties(${TARGET} PROPERTIES LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION} SOVERSION 0
                                             INSTALL_RPATH "$ORIGIN")
  target_link_libraries(${TARGET} PRIVATE tenon_options ${links})
  # Undefined symbols are errors here, not when a user's program starts. Sanitizer builds leave their own undefined.
  if(NOT TENON_SANITIZE)
    target_link_options(${TARGET} PRIVATE -Wl,--no-undefined)
  endif()
endfunction()

find_package(Threads REQUIRED)
tenon_library(tenon_runtime runtime)
target_link_libraries(tenon_runtime PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
set_target_properties(tenon_runtime PROPERTIES EXPORT_NAME runtime)
add_library(tenon::runtime ALIAS tenon_runtime)

get_property(compiler_rooms GLOBAL PROPERTY TENON_ROOMS_compiler)
if(compiler_rooms)
  tenon_library(tenon compiler)
  target_link_libraries(tenon PUBLIC tenon_runtime)
  set_target_properties(tenon PROPERTIES EXPORT_NAME sdk)
  add_library(tenon::sdk ALIAS tenon)
endif()
