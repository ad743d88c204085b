# The steps of the test examples_standalone. The first step that fails ends it.
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE ${WORK_DIR})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${TENON_BINARY_DIR} --prefix ${WORK_DIR}/prefix OUTPUT_QUIET
                COMMAND_ERROR_IS_FATAL ANY)
# The flags must equal those of the libraries only where a sanitizer requires it.
set(flags "")
if(SANITIZE)
  set(flags -fsanitize=${SANITIZE})
endif()
execute_process(COMMAND ${CMAKE_COMMAND} -S ${EXAMPLES_DIR} -B ${WORK_DIR}/build -G ${GENERATOR}
                        -DCMAKE_CXX_COMPILER=${COMPILER} "-DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}"
                        -DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix -DCMAKE_CXX_FLAGS=${flags}
                COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${WORK_DIR}/build COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CTEST} --test-dir ${WORK_DIR}/build --output-on-failure --no-tests=error
                COMMAND_ERROR_IS_FATAL ANY)
