# Everything the build takes from outside.
find_package(fmt REQUIRED)
# Debian has fmt as a shared library, which a package would have to bring along, and as headers, which cost 4 s in
# every file that formats. So it is compiled here, once.
add_library(oxyfuel_fmt STATIC ${CMAKE_SOURCE_DIR}/cmake/fmt_library.cpp)
target_include_directories(oxyfuel_fmt SYSTEM PUBLIC
  $<TARGET_PROPERTY:fmt::fmt-header-only,INTERFACE_INCLUDE_DIRECTORIES>)
find_package(Threads REQUIRED)
if(OXYFUEL_TESTS)
  find_package(doctest REQUIRED)
endif()
find_program(CCACHE ccache)
if(CCACHE)
  # Without the sloppiness ccache never hits on a file that uses a precompiled header, without the rest never across checkouts.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
endif()
find_package(Python REQUIRED COMPONENTS Interpreter Development.Module)

if(OXYFUEL_WITH_TORCH)
  # Without importing it: NVIDIA's libraries may be missing where a package is built.
  execute_process(COMMAND ${Python_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/torch_release.py
    OUTPUT_VARIABLE torch_lines OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" torch_lines "${torch_lines}")
  list(GET torch_lines 0 TORCH_ROOT)
  list(GET torch_lines 1 OXYFUEL_TORCH_RELEASE)
  # PyTorch's headers have an fmt of their own among them, which files that see PyTorch find first.
  add_library(oxyfuel_torch_fmt STATIC ${CMAKE_SOURCE_DIR}/cmake/fmt_library.cpp)
  target_include_directories(oxyfuel_torch_fmt SYSTEM PUBLIC ${TORCH_ROOT}/include)
  add_library(oxyfuel_torch INTERFACE)
  target_include_directories(oxyfuel_torch SYSTEM INTERFACE
    ${TORCH_ROOT}/include ${TORCH_ROOT}/include/torch/csrc/api/include)
  target_compile_definitions(oxyfuel_torch INTERFACE _GLIBCXX_USE_CXX11_ABI=1)
  target_link_directories(oxyfuel_torch INTERFACE ${TORCH_ROOT}/lib)
  target_link_libraries(oxyfuel_torch INTERFACE oxyfuel_torch_fmt torch_python torch_cpu c10)
endif()
