# SPDX-License-Identifier: Apache-2.0
# Every source of comm/src is named, without its extension, in its map, comm/src/README.md.
#   cmake -DSOURCE=... [-DFORGET=name: as if the map did not name it] -P source_map.cmake
cmake_minimum_required(VERSION 3.25)
set(folder ${SOURCE}/comm/src)
file(READ ${folder}/README.md map)
file(GLOB_RECURSE files RELATIVE ${folder} ${folder}/*.cpp ${folder}/*.hpp ${folder}/*.h)
set(wrong)
foreach(file IN LISTS files)
  cmake_path(GET file STEM name)
  if(name STREQUAL FORGET OR NOT map MATCHES "`([a-zX]+/)?${name}(`|\\.)")
    string(APPEND wrong "\n  ${file}")
  endif()
endforeach()
if(wrong)
  message(FATAL_ERROR "comm/src/README.md does not name${wrong}")
endif()
