# SPDX-License-Identifier: Apache-2.0
# The library does not depend on OpenMP; these tests drive its plans from parallel regions.
find_package(OpenMP COMPONENTS CXX)
if(OpenMP_CXX_FOUND)
  halocline_add_test(halo.team_test SOURCES team_test.cpp
    LINK halocline::halo OpenMP::OpenMP_CXX ${CMAKE_DL_LIBS} SEES halo)
endif()
halocline_add_test(halo.team_threads_test SOURCES team_threads_test.cpp LINK halocline::halo LABELS threads)
