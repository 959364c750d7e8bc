# SPDX-License-Identifier: Apache-2.0
# halocline_add_library(<name> SOURCES ... [DEPENDS <halocline libs>] [LINK <public targets>] [LINK_PRIVATE ...])
#
# One folder, one library, one include root: <name>/include/halocline/<name>/*.hpp. A library sees only what DEPENDS
# names, so an include against the layer rule does not compile. Every public header is compiled alone
# (target all_verify_interface_header_sets).

# Warnings: for our own targets only, never exported.
add_library(halocline_warnings INTERFACE)
target_compile_options(halocline_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor -Wold-style-cast
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict> # gcc 12 sees overlaps in std::string that are not there (GCC bug 105651)
  $<$<BOOL:${HALOCLINE_WERROR}>:-Werror>)

set_property(GLOBAL PROPERTY HALOCLINE_LIBRARIES "")

function(halocline_add_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPENDS;LINK;LINK_PRIVATE")
  set(target halocline_${name})
  add_library(${target} STATIC ${arg_SOURCES})
  add_library(halocline::${name} ALIAS ${target})
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/include/*.hpp
       ${CMAKE_CURRENT_SOURCE_DIR}/include/*.h)
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS include FILES ${headers})
  target_include_directories(${target} PRIVATE src)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES
    LINKER_LANGUAGE CXX EXPORT_NAME ${name} VERIFY_INTERFACE_HEADER_SETS ON
    POSITION_INDEPENDENT_CODE ON CXX_EXTENSIONS OFF)
  list(TRANSFORM arg_DEPENDS PREPEND halocline::)
  target_link_libraries(${target}
    PUBLIC ${arg_DEPENDS} ${arg_LINK}
    PRIVATE $<BUILD_INTERFACE:halocline_warnings> ${arg_LINK_PRIVATE})
  install(TARGETS ${target} EXPORT halocline FILE_SET HEADERS)
  set_property(GLOBAL APPEND PROPERTY HALOCLINE_LIBRARIES ${name})
endfunction()

# find_package(halocline COMPONENTS halo ...) from an install.
function(halocline_install_package)
  include(CMakePackageConfigHelpers)
  set(where ${CMAKE_INSTALL_LIBDIR}/cmake/halocline)
  install(EXPORT halocline NAMESPACE halocline:: DESTINATION ${where} FILE haloclineTargets.cmake)
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/haloclineConfig.cmake.in
    ${PROJECT_BINARY_DIR}/haloclineConfig.cmake INSTALL_DESTINATION ${where})
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/haloclineConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/haloclineConfig.cmake ${PROJECT_BINARY_DIR}/haloclineConfigVersion.cmake
    DESTINATION ${where})
endfunction()
