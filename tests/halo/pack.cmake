# SPDX-License-Identifier: Apache-2.0
# Packing kernels, on every SIMD target of this machine.
halocline_add_test(halo.copy_table_test SOURCES copy_table_test.cpp LINK halocline::halo PkgConfig::HWY)
