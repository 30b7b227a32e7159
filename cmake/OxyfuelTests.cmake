# tests/cpp/<layer>/<topic>_test.cpp of the torch-free layers make one test program, oxyfuel_tests; the tests of one
# layer alone are the program oxyfuel_<layer>_tests, which is built on request only.
enable_testing()
set(OXYFUEL_TESTED_LAYERS base sym aten graph plan loop ops passes backend cpy bytecode hook)

function(oxyfuel_test_program name)
  cmake_parse_arguments(PROGRAM "" "" "SOURCES;LAYERS" ${ARGN})
  add_executable(${name} ${PROGRAM_SOURCES} ${CMAKE_SOURCE_DIR}/tests/cpp/main.cpp)
  list(TRANSFORM PROGRAM_LAYERS PREPEND oxyfuel_)
  target_link_libraries(${name} PRIVATE ${PROGRAM_LAYERS} doctest::doctest)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests/cpp)
  target_compile_definitions(${name} PRIVATE OXYFUEL_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  # -O1 saves a third of their compile time, and the layers stay as they are in the package.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  # Executables would have -fPIE, and the precompiled header has what libraries have.
  target_compile_options(${name} PRIVATE -fPIC)
  oxyfuel_precompile(${name} plain)
endfunction()

foreach(layer IN LISTS OXYFUEL_TESTED_LAYERS)
  file(GLOB layer_tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/cpp/${layer}/*_test.cpp)
  if(layer_tests)
    set(layers ${layer})
    if(layer STREQUAL "backend")  # schedules are compiled and run
      list(APPEND layers passes)
    endif()
    oxyfuel_test_program(oxyfuel_${layer}_tests SOURCES ${layer_tests} LAYERS ${layers})
    set_target_properties(oxyfuel_${layer}_tests PROPERTIES EXCLUDE_FROM_ALL TRUE)
  endif()
endforeach()

file(GLOB_RECURSE all_tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/cpp/*_test.cpp)
oxyfuel_test_program(oxyfuel_tests SOURCES ${all_tests} LAYERS backend passes)
add_test(NAME oxyfuel_tests COMMAND oxyfuel_tests)

# Plans for a GPU as Python programs, for the tests that run and compile them with Triton.
add_executable(oxyfuel_triton_scripts ${CMAKE_SOURCE_DIR}/tests/cpp/backend/cuda/triton_scripts.cpp)
target_link_libraries(oxyfuel_triton_scripts PRIVATE oxyfuel_backend oxyfuel_passes)
