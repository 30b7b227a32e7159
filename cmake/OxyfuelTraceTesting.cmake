# oxyfuel_trace_testing: lets pytest record functions and rewrite graphs (tests/python/trace/test_trace.py).
nanobind_add_module(oxyfuel_trace_testing NB_STATIC NOMINSIZE
  ${CMAKE_SOURCE_DIR}/tests/python/trace/trace_testing/module.cpp)
target_link_libraries(oxyfuel_trace_testing PRIVATE oxyfuel_trace)
oxyfuel_precompile(oxyfuel_trace_testing dispatcher Python::Module oxyfuel_torch)
target_link_options(oxyfuel_trace_testing PRIVATE -Wl,--exclude-libs,ALL -Wl,--gc-sections)
set_target_properties(oxyfuel_trace_testing PROPERTIES
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/trace_testing)
