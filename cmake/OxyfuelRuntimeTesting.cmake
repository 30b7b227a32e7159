# oxyfuel_runtime_testing: lets pytest build plans by hand and run them (tests/python/runtime/test_runtime_*.py).
nanobind_add_module(oxyfuel_runtime_testing NB_STATIC NOMINSIZE
  ${CMAKE_SOURCE_DIR}/tests/python/runtime/runtime_testing/module.cpp)
target_link_libraries(oxyfuel_runtime_testing PRIVATE oxyfuel_runtime)
oxyfuel_precompile(oxyfuel_runtime_testing dispatcher Python::Module oxyfuel_torch)
target_link_options(oxyfuel_runtime_testing PRIVATE -Wl,--exclude-libs,ALL -Wl,--gc-sections)
set_target_properties(oxyfuel_runtime_testing PROPERTIES
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/runtime_testing)
