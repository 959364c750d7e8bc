# SPDX-License-Identifier: Apache-2.0
if(LIBFABRIC_FOUND) # it joins the nodes
  halocline_add_test(apps.grid_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/grid_test.cpp LINK halocline_app_support
                     LABELS ofi RANKS 4)
endif()
