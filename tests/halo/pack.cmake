# SPDX-License-Identifier: Apache-2.0
# Packing kernels, on every SIMD target of this machine, compared with the plain loops of halo/src/pack_reference.hpp.
halocline_add_test(halo.site_copy_test SOURCES site_copy_test.cpp LINK halocline::halo PkgConfig::HWY SEES halo)
halocline_add_test(halo.site_map_test SOURCES site_map_test.cpp LINK halocline::halo PkgConfig::HWY SEES halo)
halocline_add_test(halo.packer_test SOURCES packer_test.cpp LINK halocline::halo PkgConfig::HWY SEES halo LABELS threads)
halocline_add_test(halo.unpacker_test SOURCES unpacker_test.cpp LINK halocline::halo PkgConfig::HWY SEES halo
                   LABELS threads)
halocline_add_test(halo.checksum_test SOURCES checksum_test.cpp LINK halocline::halo PkgConfig::HWY SEES halo LABELS threads)
