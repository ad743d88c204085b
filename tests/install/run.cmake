# The steps of the test install_consumer. The first step that fails ends it.
cmake_minimum_required(VERSION 3.25)

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ECHO STDOUT RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  message("${output}")
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "exit status ${status} of: ${ARGV}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

# The tree is moved after the installation, to a name with a space, because no file may depend on the original path.
set(prefix "${WORK_DIR}/moved prefix")
file(REMOVE_RECURSE ${WORK_DIR})
run(${CMAKE_COMMAND} --install ${TENON_BINARY_DIR} --prefix ${WORK_DIR}/prefix)
file(RENAME ${WORK_DIR}/prefix ${prefix})

foreach(file include/tenon/support/result.hpp share/tenon/LICENSE lib/cmake/tenon/tenonConfig.cmake)
  if(NOT EXISTS "${prefix}/${file}")
    message(FATAL_ERROR "not installed: ${file}")
  endif()
endforeach()
file(GLOB_RECURSE internal "${prefix}/include/*_internal.hpp")
if(internal)
  message(FATAL_ERROR "headers of one room are installed: ${internal}")
endif()

# A user who has only the installed Tenon reads its documentation there.
run(${PYTHON} ${CHECK_DOCS} ${DOCS_DIR} ${prefix}/share/doc/tenon)

# Every program, library and plugin finds the libraries of Tenon relative to its own location.
file(GLOB programs "${prefix}/bin/*")
file(GLOB libraries "${prefix}/lib/*.so")
file(GLOB plugins "${prefix}/lib/tenon/plugins/*.so")
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${programs} LIBRARIES ${libraries} MODULES ${plugins}
     RESOLVED_DEPENDENCIES_VAR found UNRESOLVED_DEPENDENCIES_VAR lost)
foreach(library IN LISTS found lost)
  string(FIND "${library}" "${prefix}/" place)
  if(library MATCHES "libtenon" AND NOT place EQUAL 0)
    message(FATAL_ERROR "something under ${prefix} would load '${library}'")
  endif()
endforeach()

if(EXISTS ${TENON_BINARY_DIR}/bin/tenon)
  if(NOT EXISTS "${prefix}/bin/tenon")
    message(FATAL_ERROR "bin/tenon is built and not installed: its CMakeLists.txt needs install(TARGETS)")
  endif()
  run("${prefix}/bin/tenon" devices)
endif()

# The consumer's flags must equal those of the libraries only where a sanitizer requires it.
set(flags "")
if(SANITIZE)
  set(flags -fsanitize=${SANITIZE})
endif()
run(${CMAKE_COMMAND} -S ${CONSUMER_DIR} -B ${WORK_DIR}/build -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${COMPILER}
    -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_CXX_FLAGS=${flags} -DWITH_SDK=${WITH_SDK})
run(${CMAKE_COMMAND} --build ${WORK_DIR}/build)
run(${WORK_DIR}/build/runtime_consumer)
if(WITH_SDK)
  run(${CMAKE_COMMAND} --install ${WORK_DIR}/build --prefix ${WORK_DIR}/consumer)
  run(${WORK_DIR}/build/sdk_consumer ${WORK_DIR}/consumer/lib/tenon/plugins/consumer_plugin.so)

  # A vendor's plugin in a folder of its own: its operator, pass and visitor run together with the reference.
  run(${CMAKE_COMMAND} -S ${VENDOR_DIR} -B ${WORK_DIR}/vendor -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${COMPILER}
      -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_CXX_FLAGS=${flags})
  run(${CMAKE_COMMAND} --build ${WORK_DIR}/vendor)
  run(${WORK_DIR}/vendor/run_on_acme ${WORK_DIR}/vendor/acme.so ${VENDOR_DIR}/acme-one.yaml)

  # The output of `tenon new-plugin` builds without any edit, and its tests pass.
  if(EXISTS "${prefix}/bin/tenon")
    run("${prefix}/bin/tenon" new-plugin new-npu ${WORK_DIR}/new_plugin --vendor "New \"N\" Inc.")
    run(${CMAKE_COMMAND} -S ${WORK_DIR}/new_plugin -B ${WORK_DIR}/new_plugin/build -G ${GENERATOR}
        -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_CXX_FLAGS=${flags})
    run(${CMAKE_COMMAND} --build ${WORK_DIR}/new_plugin/build)
    run(${CMAKE_CTEST_COMMAND} --test-dir ${WORK_DIR}/new_plugin/build --output-on-failure --no-tests=error)
    # Once installed beside Tenon, its target can be selected by name.
    run(${CMAKE_COMMAND} --install ${WORK_DIR}/new_plugin/build --prefix ${prefix})
    run("${prefix}/bin/tenon" run ${WORK_DIR}/new_plugin/model.tir --target new-npu --no-fallback)
  endif()
endif()
