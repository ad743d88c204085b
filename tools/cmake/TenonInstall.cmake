# Rules of `cmake --install`. find_package(tenon) then provides tenon::sdk, tenon::runtime and tenon_add_plugin(). Every
# path in an installed file is relative to that file, so an installed tree may be moved.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tenon)

# Headers named *_internal.hpp belong to their room only (tools/check_layers.py enforces this).
install(DIRECTORY sdk/tenon DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h" PATTERN "*_internal.hpp" EXCLUDE)
install(DIRECTORY ir-ext/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tenon-ext
        FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h" PATTERN "*_internal.hpp" EXCLUDE)
install(DIRECTORY targets/ DESTINATION ${CMAKE_INSTALL_DATADIR}/tenon/targets
        FILES_MATCHING PATTERN "*.yaml" PATTERN "*.json")
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/tenon)

# The documentation, with the examples that it refers to.
set(docs_dir ${CMAKE_INSTALL_DATADIR}/doc/tenon)
file(RELATIVE_PATH docs_to_include /prefix/${docs_dir} /prefix/${CMAKE_INSTALL_INCLUDEDIR})
file(RELATIVE_PATH docs_to_data /prefix/${docs_dir} /prefix/${CMAKE_INSTALL_DATADIR})
install(CODE "
  set(source \"${PROJECT_SOURCE_DIR}/docs\")
  set(work \"${PROJECT_BINARY_DIR}/installed_docs\")
  set(destination \"\${CMAKE_INSTALL_PREFIX}/${docs_dir}\")
  set(to_include \"${docs_to_include}\")
  set(to_data \"${docs_to_data}\")
  include(\"${CMAKE_CURRENT_LIST_DIR}/InstallDocs.cmake\")")
install(DIRECTORY examples DESTINATION ${docs_dir})

set(libraries tenon_runtime)
if(TARGET tenon)
  list(APPEND libraries tenon tenon_ext)
endif()
install(TARGETS ${libraries} EXPORT tenonTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT tenonTargets NAMESPACE tenon:: DESTINATION ${package_dir})

configure_package_config_file(tools/cmake/tenonConfig.cmake.in ${PROJECT_BINARY_DIR}/tenonConfig.cmake
  INSTALL_DESTINATION ${package_dir}
  PATH_VARS CMAKE_INSTALL_DATADIR
  NO_CHECK_REQUIRED_COMPONENTS_MACRO)
# Below 1.0 a minor release may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tenonConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tenonConfig.cmake ${PROJECT_BINARY_DIR}/tenonConfigVersion.cmake
              tools/cmake/TenonPlugin.cmake
        DESTINATION ${package_dir})

# The include path of ir-ext is <tenon-ext/...>, in the tree and in an installation.
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/include)
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/ir-ext ${PROJECT_BINARY_DIR}/include/tenon-ext SYMBOLIC)
