# tests/cpp/<layer>_*.cpp of the torch-free layers make one test program, oxyfuel_tests.
enable_testing()
file(GLOB_RECURSE test_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/cpp/*.cpp)
add_executable(oxyfuel_tests ${test_sources})
target_link_libraries(oxyfuel_tests PRIVATE oxyfuel_sched oxyfuel_passes oxyfuel_jit doctest::doctest)
target_compile_definitions(oxyfuel_tests PRIVATE OXYFUEL_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
add_test(NAME oxyfuel_tests COMMAND oxyfuel_tests)
