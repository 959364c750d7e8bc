# SPDX-License-Identifier: Apache-2.0
halocline_add_test(comm.mock_test SOURCES mock_test.cpp LINK halocline::comm LABELS threads)
