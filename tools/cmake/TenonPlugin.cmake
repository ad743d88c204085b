# tenon_add_plugin(NAME SRCS files... [TARGETS files...] [LINK targets...] [OUTPUT_DIRECTORY folder]): a plugin of
# Tenon, as the CMake target NAME and the file NAME.so.
#
# This file is installed with the package, so that a vendor's project uses the same function after find_package(tenon).
# A plugin exports its plugin symbol and everything else that is extern "C" and marked with TENON_API. The library is
# written to TENON_PLUGIN_OUTPUT_DIRECTORY if that is set (in Tenon's own tree), otherwise to the project's current
# binary folder. It is installed to lib/tenon/plugins and its TARGETS, the YAML files, to share/tenon/targets, where
# programs under the same prefix find both. With OUTPUT_DIRECTORY it is written there and not installed, as for plugins
# of tests.
function(tenon_add_plugin NAME)
  cmake_parse_arguments(PLUGIN "" "OUTPUT_DIRECTORY" "SRCS;TARGETS;LINK" ${ARGN})
  if(NOT PLUGIN_SRCS OR PLUGIN_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "tenon_add_plugin(${NAME} SRCS files... [TARGETS files...] [LINK targets...] "
                        "[OUTPUT_DIRECTORY folder]): no SRCS, or unknown arguments: '${PLUGIN_UNPARSED_ARGUMENTS}'")
  endif()
  add_library(${NAME} MODULE ${PLUGIN_SRCS})
  target_link_libraries(${NAME} PRIVATE $<TARGET_NAME_IF_EXISTS:tenon_options> tenon::sdk ${PLUGIN_LINK})
  target_compile_features(${NAME} PRIVATE cxx_std_20)
  set_target_properties(${NAME} PROPERTIES
    PREFIX "" SUFFIX ".so" CXX_EXTENSIONS OFF
    C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    INSTALL_RPATH "$ORIGIN/../..")
  # Templates of the standard library are visible regardless of the flags, but two plugins must not share theirs.
  set(script ${CMAKE_CURRENT_BINARY_DIR}/${NAME}.version)
  file(CONFIGURE OUTPUT ${script} CONTENT "{ local: _Z*; };\n" @ONLY)
  target_link_options(${NAME} PRIVATE LINKER:--version-script=${script})
  if(PLUGIN_OUTPUT_DIRECTORY)
    set_target_properties(${NAME} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PLUGIN_OUTPUT_DIRECTORY})
    return()
  endif()
  if(TENON_PLUGIN_OUTPUT_DIRECTORY)
    set_target_properties(${NAME} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${TENON_PLUGIN_OUTPUT_DIRECTORY})
    add_dependencies(tenon_plugins ${NAME})
  endif()
  install(TARGETS ${NAME} LIBRARY DESTINATION lib/tenon/plugins)
  if(PLUGIN_TARGETS)
    install(FILES ${PLUGIN_TARGETS} DESTINATION share/tenon/targets)
  endif()
endfunction()
