// SPDX-License-Identifier: Apache-2.0
// The reader and files that are cut short, altered, or hold something else: errors say what is wrong, which value, and
// what would be right.
#include "spinor_formats.hpp"

#include <limits>

using namespace halocline_test;
using halocline::file_error;

namespace {

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    // XML records are padded: their length must not change.
    const std::size_t end = text.find('\0', at);
    text.replace(at, from.size(), to);
    if (to.size() > from.size()) return text.erase(end, to.size() - from.size());
    return text.insert(end - (from.size() - to.size()), from.size() - to.size(), '\0');
}

void expect_refusal(const std::string& content, const std::string& says) {
    const std::string text = refusal(content);
    EXPECT_NE(text.find(says), std::string::npos) << "expected: " << says << "\nsaid: " << text;
}

TEST(SpinorFile, RefusesTruncationAnywhere) {
    const std::string content = scidac(8);
    const std::size_t data = content.find("scidac-binary-data") + 128;
    for (std::size_t n = 0; n < content.size(); n += n < data || n + 400 > content.size() ? 1 : 97) {
        if (n == scidac(8, false).size()) continue; // complete except for its checksum: a warning
        ASSERT_THROW(load_spinors(content.substr(0, n)), file_error) << n;
    }
    expect_refusal(content.substr(0, data + 1000), "truncated");
    expect_refusal(file_message(), "no record scidac-binary-data: it is truncated");
}

TEST(SpinorFile, ChecksumFindsEveryFlippedBitAndSwappedSites) {
    const std::string content = scidac(8);
    const std::size_t data = content.find("scidac-binary-data") + 128;
    site_random random(1, 2, 3);
    for (int i = 0; i < 300; ++i) {
        std::string broken = content;
        const std::size_t at = data + random.bits() % (sites * 192);
        broken[at] = static_cast<char>(broken[at] ^ (1 << random.bits() % 8));
        ASSERT_THROW(load_spinors(broken), file_error) << at;
    }
    std::string swapped = content;
    std::swap_ranges(swapped.begin() + static_cast<std::ptrdiff_t>(data),
                     swapped.begin() + static_cast<std::ptrdiff_t>(data) + 192,
                     swapped.begin() + static_cast<std::ptrdiff_t>(data) + 192);
    expect_refusal(swapped, "SciDAC checksum of the data is");
}

TEST(SpinorFile, RefusesBytesAddedToOrLostFromTheSpinors) {
    const std::string content = scidac(8);
    const std::size_t middle = content.find("scidac-binary-data") + 128 + sites * 96;
    for (const std::size_t bytes : {1U, 8U, 48U, 192U}) {
        std::string longer = content, shorter = content;
        longer.insert(middle, content, middle, bytes);
        shorter.erase(middle, bytes);

        expect_refusal(longer, "no scidac-checksum is found: bytes were lost or added");
        EXPECT_THROW(load_spinors(shorter), file_error) << bytes;
    }
}

TEST(SpinorFile, NamesTheSiteOfANumberThatIsNone) {
    for (int real_bytes : {4, 8})
        for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
            std::string data = spinor_data(real_bytes);
            const std::size_t site = 1 + 2 * (2 + 3 * (3 + 4 * 4)); // 1.2.3.4
            data.replace((site * 24 + 7) * static_cast<std::size_t>(real_bytes), static_cast<std::size_t>(real_bytes),
                         real(bad, real_bytes, true));

            expect_refusal(file_message() + field_message(real_bytes, data), "a NaN or an infinity at site 1.2.3.4");
        }
}

TEST(SpinorFile, SaysWhatAFileHoldsThatIsNoFermionField) {
    expect_refusal("", "is no LIME file");
    expect_refusal("hello", "is no LIME file");
    expect_refusal(ddalphaamg(), "is no LIME file");
    expect_refusal(ildg(8), "is a gauge configuration (ILDG)");
    expect_refusal(lime_record("etmc-propagator-format", "<field>diracFermion</field>", 0xc000),
                   "no record scidac-private-file-xml");
    const std::string whole = scidac(4);
    expect_refusal(replaced(replaced(whole, "DiracFermion", "ColorVector"), "<spins>4", "<spins>1"),
                   "<spins> as 1, datatype 'USQCD_F3_ColorVector': a Dirac fermion with 4 can be read");
    expect_refusal(replaced(whole, "<colors>3", "<colors>2"), "<colors> as 2");
    expect_refusal(replaced(whole, "<typesize>96", "<typesize>1152"), "1152 bytes per site; a Dirac fermion of "
                                                                      "precision F has 96");
    expect_refusal(replaced(whole, "<datacount>1", "<datacount>2"), "192 bytes per site");
    expect_refusal(replaced(whole, "<recordtype>0", "<recordtype>2"), "<recordtype> as 2: 0, a field on the whole");
    expect_refusal(replaced(whole, "<volfmt>0", "<volfmt>1"), "<volfmt> as 1: 0, all sites in one file");
    expect_refusal(replaced(whole, "<spacetime>4", "<spacetime>5"), "<spacetime> as 5: 4 can be read");
}

TEST(SpinorFile, RefusesDatatypesOfOtherFieldsWhateverTheSizeIs) {
    const std::string whole = scidac(8);
    for (const std::string other : {"ColorVector", "ColorMatrix", "DiracPropagator"})
        expect_refusal(replaced(whole, "DiracFermion", other),
                       "scidac-private-record-xml gives <datatype> as 'USQCD_D3_" + other +
                           "': a Dirac fermion can be read");
    for (const std::string own : {"USQCD_D3_DiracFermion", "QDP_F3_DiracFermion", "QUDA_DNc3Ns4_ColorSpinorField", ""})
        EXPECT_EQ(refusal(replaced(whole, "USQCD_D3_DiracFermion", own)), "") << own;
}

TEST(SpinorFile, RefusesHeadsThatDoNotFit) {
    const std::string whole = scidac(8);
    expect_refusal(replaced(whole, "<precision>D", "<precision>F"),
                   "192 bytes per site; a Dirac fermion of precision F");
    expect_refusal(replaced(whole, "<precision>D", "<precision>Q"), "F (32 bit) or D (64 bit)");
    expect_refusal(replaced(whole, "2 3 4 5 ", "2 3 4 6 "), "23040 bytes; 2.3.4.6 sites of 64 bit need 27648");
    expect_refusal(replaced(whole, "2 3 4 5 ", "2 3 4 "), "<dims> as '2 3 4': not four extents");
    expect_refusal(replaced(whole, "2 3 4 5 ", "2 3 4 5 6"), "not four extents");
    expect_refusal(replaced(whole, "2 3 4 5 ", "2 3 0 5 "), "extents must be between 1");
    expect_refusal(replaced(whole, "2 3 4 5 ", "99999999 3 4 5"), "extents must be between 1");
    expect_refusal(replaced(whole, "<suma>", "<suma>z"), "not a number");
    expect_refusal(replaced(whole, "<datacount>1", "<datacount>\x11"), "gives <datacount> as '?': not a number");
    expect_refusal(whole + field_message(8, spinor_data(8)), "has 2 records scidac-binary-data");
}

TEST(SpinorFile, RefusesWhatIsNoRegularFile) {
    EXPECT_THROW(open_spinor_file("/nonexistent/file"), file_error);
    EXPECT_THROW(open_spinor_file("/"), file_error);
    EXPECT_THROW(open_spinor_file("/dev/zero"), file_error);
}

} // namespace
