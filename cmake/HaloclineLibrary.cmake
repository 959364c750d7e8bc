# SPDX-License-Identifier: Apache-2.0
# halocline_add_library(<name> SOURCES ... [DEPENDS <halocline libs>] [LINK <public targets>] [LINK_PRIVATE ...])
#
# One folder, one library, one include root: <name>/include/halocline/<name>/*.hpp. A library sees only what DEPENDS
# names, so an include against the layer rule does not compile. Every public header is also compiled on its
# own (target all_verify_interface_header_sets).

# Warnings for our own targets, never exported.
add_library(halocline_warnings INTERFACE)
target_compile_options(halocline_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor -Wold-style-cast
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict> # gcc 12 sees overlaps in std::string that are not there (GCC bug 105651)
  $<$<BOOL:${HALOCLINE_WERROR}>:-Werror>)

set_property(GLOBAL PROPERTY HALOCLINE_LIBRARIES "")

# install(), unless this is a part of another project, which installs its own things.
function(halocline_install)
  if(HALOCLINE_INSTALL)
    install(${ARGV})
  endif()
endfunction()

# All headers under include/ are public: installed, and compiled on their own.
function(halocline_add_headers target scope)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/include/*.hpp
       ${CMAKE_CURRENT_SOURCE_DIR}/include/*.h)
  target_sources(${target} ${scope} FILE_SET HEADERS BASE_DIRS include FILES ${headers})
  set_target_properties(${target} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
endfunction()

function(halocline_add_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPENDS;LINK;LINK_PRIVATE")
  set(target halocline_${name})
  add_library(${target} STATIC ${arg_SOURCES})
  add_library(halocline::${name} ALIAS ${target})
  halocline_add_headers(${target} PUBLIC)
  target_include_directories(${target} PRIVATE src)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES
    LINKER_LANGUAGE CXX EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON CXX_EXTENSIONS OFF)
  list(TRANSFORM arg_DEPENDS PREPEND halocline::)
  target_link_libraries(${target}
    PUBLIC ${arg_DEPENDS} ${arg_LINK}
    PRIVATE $<BUILD_INTERFACE:halocline_warnings> ${arg_LINK_PRIVATE})
  halocline_install(TARGETS ${target} EXPORT halocline FILE_SET HEADERS)
  set_property(GLOBAL APPEND PROPERTY HALOCLINE_LIBRARIES ${name})
endfunction()

# find_package(halocline COMPONENTS halo ...) from an install, and `pkg-config halocline` for Makefiles. Both are
# relocatable: the prefix can be moved.
function(halocline_install_package)
  if(NOT HALOCLINE_INSTALL)
    return()
  endif()
  include(CMakePackageConfigHelpers)
  set(where ${CMAKE_INSTALL_LIBDIR}/cmake/halocline)
  set(modules ${CMAKE_INSTALL_LIBDIR}/halocline)
  install(EXPORT halocline NAMESPACE halocline:: DESTINATION ${where} FILE haloclineTargets.cmake)
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/haloclineConfig.cmake.in
    ${PROJECT_BINARY_DIR}/haloclineConfig.cmake INSTALL_DESTINATION ${where} PATH_VARS modules)
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/haloclineConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/haloclineConfig.cmake ${PROJECT_BINARY_DIR}/haloclineConfigVersion.cmake
    DESTINATION ${where})

  set(pc_prefix ${CMAKE_INSTALL_PREFIX})
  if(NOT IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR})
    file(RELATIVE_PATH prefix_from_pc /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
    set(pc_prefix \${pcfiledir}/${prefix_from_pc})
  endif()
  foreach(kind LIB INCLUDE)
    set(pc_${kind} \${prefix}/${CMAKE_INSTALL_${kind}DIR})
    if(IS_ABSOLUTE ${CMAKE_INSTALL_${kind}DIR}) # such a folder is not moved with the prefix
      set(pc_${kind} ${CMAKE_INSTALL_${kind}DIR})
    endif()
  endforeach()
  configure_file(${PROJECT_SOURCE_DIR}/cmake/halocline.pc.in ${PROJECT_BINARY_DIR}/halocline.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/halocline.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

  if(PROJECT_IS_TOP_LEVEL) # else the folder would be another project's
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs ${PROJECT_SOURCE_DIR}/configs DESTINATION ${CMAKE_INSTALL_DOCDIR})
    # And all pages to which these link.
    foreach(page README.md CHANGELOG.md CONTRIBUTING.md LICENSE base/README.md config/README.md lattice/README.md
            comm/README.md comm/src/README.md halo/README.md halo/shells.md halo/src/README.md dirac/README.md
            solvers/README.md amg/README.md c/README.md tests/README.md)
      cmake_path(GET page PARENT_PATH folder)
      install(FILES ${PROJECT_SOURCE_DIR}/${page} DESTINATION ${CMAKE_INSTALL_DOCDIR}/${folder})
    endforeach()
  endif()
endfunction()
