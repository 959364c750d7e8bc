# SPDX-License-Identifier: Apache-2.0
# The library does not depend on OpenMP; these tests drive its plans from parallel regions.
find_package(OpenMP COMPONENTS CXX)
if(OpenMP_CXX_FOUND)
  halocline_add_test(halo.team_test SOURCES team_test.cpp
    LINK halocline::halo OpenMP::OpenMP_CXX ${CMAKE_DL_LIBS} SEES halo)
endif()
halocline_add_test(halo.team_threads_test SOURCES team_threads_test.cpp LINK halocline::halo LABELS threads)
halocline_add_test(halo.stencil_team_test SOURCES stencil_team_test.cpp LINK halocline::halo LABELS threads)
if(LIBFABRIC_FOUND)
  halocline_add_test(halo.team_over_ofi_test SOURCES team_over_ofi_test.cpp LINK halocline::halo RANKS 2 LABELS ofi threads)
endif()
foreach(mpi openmpi mpich)
  halocline_add_linked_mpi_test(halo.team_over_mpi_test MPI ${mpi} RANKS 2 SOURCES team_over_mpi_test.cpp)
  if(TARGET halo_team_over_mpi_test_${mpi})
    set_target_properties(halo_team_over_mpi_test_${mpi} PROPERTIES
      ENABLE_EXPORTS ON) # so that the module calls the functions that this program replaces
  endif()
endforeach()
