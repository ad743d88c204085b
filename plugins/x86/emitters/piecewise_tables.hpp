// Coefficients of piecewise polynomials (piecewise.hpp): minimax in relative error, by Sollya's fpminimax on each
// interval; those of kNormalRatio by interpolation (tools/emitters/normal_ratio.py). Columns stand by index.
#pragma once
#include "x86/emitters/piecewise.hpp"

namespace tenon::x86 {

// erf up to 3.925, relative error 5.4e-8: that of the float for 2 / sqrt(pi), near 0.
inline constexpr EvenPieces<6, 16> kErf16{
    67.0f / 256,
    {{
        {0, 0x1.27a4p-2f, 0x1.14eab4p-1f, 0x1.776148p-1f, 0x1.b8f742p-1f, 0x1.df1e36p-1f, 0x1.f27ff8p-1f, 0x1.fb194p-1f,
         0x1.fe6e18p-1f, 0x1.ff8ea2p-1f, 0x1.ffe3e2p-1f, 0x1.fff9ep-1f, 0x1.fffed4p-1f, 0x1.ffffcep-1f, 0x1.fffff8p-1f,
         1},
        {0x1.20dd76p0f, 0x1.0dbdc2p0f, 0x1.b745c8p-1f, 0x1.37e2b8p-1f, 0x1.822e66p-2f, 0x1.a0f50cp-3f, 0x1.888d1ap-4f,
         0x1.42426cp-5f, 0x1.cd5eb4p-7f, 0x1.1ffbd8p-8f, 0x1.397d04p-10f, 0x1.29903ep-12f, 0x1.ec9172p-15f,
         0x1.63871ep-17f, 0x1.bec5f8p-20f, 0x1.f445aep-23f},
        {-0x1.8343bp-18f, -0x1.1a6194p-2f, -0x1.cbdb02p-2f, -0x1.e9c014p-2f, -0x1.9449p-2f, -0x1.10d23ap-2f,
         -0x1.3435ccp-3f, -0x1.27349cp-4f, -0x1.e3141ep-6f, -0x1.532956p-7f, -0x1.9a93dap-9f, -0x1.acb58ap-11f,
         -0x1.7ec2b2p-13f, -0x1.3ba86ap-15f, -0x1.d6a1d4p-20f, -0x1.f71e44p-18f},
        {-0x1.80ffcap-2f, -0x1.366c68p-2f, -0x1.08ca1ap-3f, 0x1.837528p-5f, 0x1.32d9a2p-3f, 0x1.510478p-3f,
         0x1.013e7ep-3f, 0x1.32d55cp-4f, 0x1.2aaa5ap-5f, 0x1.e49a44p-7f, 0x1.4bbb5ap-8f, 0x1.822cbep-10f,
         0x1.80730ap-12f, 0x1.4731c8p-14f, 0x1.f56394p-17f, 0x1.55533ap-20f},
        {-0x1.6ec642p-10f, 0x1.0b9308p-3f, 0x1.755388p-3f, 0x1.1ef32p-3f, 0x1.b5961p-5f, -0x1.2903cap-6f,
         -0x1.8b33a2p-5f, -0x1.6b7a2p-5f, -0x1.ccde52p-6f, -0x1.cbd5a4p-7f, -0x1.684cdp-8f, -0x1.e0fd24p-10f,
         -0x1.401cfcp-11f, -0x1.9eccf6p-15f, -0x1.deb27ep-13f, 0x1.3ec494p-12f},
        {0x1.dde6c8p-4f, 0x1.424c08p-4f, 0x1.67625ep-10f, -0x1.db2f7cp-5f, -0x1.11979p-4f, -0x1.43503ep-5f,
         -0x1.ed24cap-8f, 0x1.4907ap-7f, 0x1.9e0196p-7f, 0x1.1dde92p-7f, 0x1.1d6182p-8f, 0x1.bfbd18p-10f,
         0x1.19107p-11f, 0x1.417p-13f, 0x1.397734p-18f, 0x1.ba980ap-15f},
    }}};

inline constexpr EvenPieces<8, 8> kErf8{
    9.0f / 16,
    {{
        {0, 0x1.25b8a8p-1f, 0x1.c6dad2p-1f, 0x1.f74a6ep-1f, 0x1.ff4048p-1f, 0x1.fff6dep-1f, 0x1.ffffc4p-1f, 1},
        {0x1.20dd76p0f, 0x1.a5074ep-1f, 0x1.45e99ap-2f, 0x1.0bf974p-4f, 0x1.d41444p-8f, 0x1.b23adep-12f, 0x1.abeb6p-17f,
         0x1.c40df8p-23f},
        {-0x1.88a868p-18f, -0x1.d9a796p-2f, -0x1.6ea68ep-2f, -0x1.c436b4p-4f, -0x1.0752e2p-6f, -0x1.3099cap-10f,
         -0x1.801772p-15f, -0x1.cb0cdap-19f},
        {-0x1.80fb7ep-2f, -0x1.9c41aep-4f, 0x1.4cb512p-3f, 0x1.a36e6ap-4f, 0x1.63ee54p-6f, 0x1.0c1d76p-9f,
         0x1.83cc84p-14f, 0x1.fac0ccp-20f},
        {-0x1.0c617ep-9f, 0x1.758a1ap-3f, 0x1.ca5e42p-6f, -0x1.95db7ap-5f, -0x1.37ff6ap-6f, -0x1.4f2bfep-9f,
         -0x1.2e6222p-14f, 0x1.039a92p-14f},
        {0x1.002be4p-3f, -0x1.63b996p-7f, -0x1.f6d2eap-5f, 0x1.5081eap-9f, 0x1.5d7e6p-7f, 0x1.1f3756p-9f,
         0x1.5dd886p-13f, 0x1.5d439p-17f},
        {-0x1.21f878p-5f, -0x1.70fa8ap-5f, 0x1.e889bp-7f, 0x1.6fc8eep-7f, -0x1.95c5acp-9f, -0x1.d8fe72p-11f,
         -0x1.580b8ap-11f, -0x1.f8abacp-12f},
        {0x1.aebb8cp-7f, 0x1.3df52ap-7f, 0x1.4678a6p-7f, -0x1.24ac1ap-8f, -0x1.91387ep-11f, 0x1.2071c4p-11f,
         0x1.596c12p-14f, -0x1.fc149p-16f},
    }}};

// tanh up to 9.1, relative error 5.4e-8, 2.9e-8.
inline constexpr GrownPieces<6, 16> kTanh16{
    0.625,
    21,
    {1.625f, 2.125f, 2.625f, 3.125f, 3.875f, 4.875f, 5.875f, 6.875f, 8.2375f, 0, 0.1875f, 0.3125f, 0.5f, 0.75f, 1,
     1.25f},
    {{
        {0x1.d9c6fcp-1f, 0x1.f1994ep-1f, 0x1.faa794p-1f, 0x1.fe06eap-1f, 0x1.ff8f2p-1f, 0x1.fff0b8p-1f, 0x1.fffdeep-1f,
         0x1.ffffb8p-1f, 0x1.fffffcp-1f, 0, 0x1.7b8ffap-3f, 0x1.35f98ap-2f, 0x1.d9353ep-2f, 0x1.45323ep-1f,
         0x1.85efacp-1f, 0x1.b2523cp-1f},
        {0x1.265e1ep-3f, 0x1.c65b14p-5f, 0x1.545208p-6f, 0x1.f81bep-8f, 0x1.c34b2ap-10f, 0x1.e8f908p-13f,
         0x1.08b8acp-15f, 0x1.1e9652p-18f, 0x1.2df854p-22f, 1, 0x1.ee69e6p-1f, 0x1.d11574p-1f, 0x1.92a94cp-1f,
         0x1.3173bp-1f, 0x1.ae0dc2p-2f, 0x1.1f2514p-2f},
        {-0x1.10692ep-3f, -0x1.b991aep-5f, -0x1.50c58p-6f, -0x1.f6010cp-8f, -0x1.c21ddp-10f, -0x1.e8265cp-13f,
         -0x1.062438p-15f, -0x1.13209ap-18f, -0x1.a0dbdap-22f, 0x1.549114p-22f, -0x1.6e8a3p-3f, -0x1.1991c4p-2f,
         -0x1.742666p-2f, -0x1.8402fap-2f, -0x1.4788a6p-2f, -0x1.e72b16p-3f},
        {0x1.33ee86p-4f, 0x1.15b73ep-5f, 0x1.b79a28p-7f, 0x1.4c2ddap-8f, 0x1.2baa4cp-10f, 0x1.456254p-13f,
         0x1.60a212p-16f, 0x1.7ea35cp-19f, 0x1.7fd466p-23f, -0x1.555b3ap-2f, -0x1.27bbcap-2f, -0x1.c19bb4p-3f,
         -0x1.820364p-4f, 0x1.56a4cep-5f, 0x1.a858acp-4f, 0x1.bba1dp-4f},
        {-0x1.96cc9ap-6f, -0x1.ec596p-7f, -0x1.a7915ep-8f, -0x1.4dcdeap-9f, -0x1.3a66d6p-11f, -0x1.560e5p-14f,
         -0x1.8e67f8p-17f, -0x1.0f595ep-19f, 0x1.b9f638p-27f, 0x1.f1c10ap-12f, 0x1.d49a7p-4f, 0x1.42a53ap-3f,
         0x1.4f3a1cp-3f, 0x1.97bc34p-4f, 0x1.d122c2p-6f, -0x1.8deebep-7f},
        {0x1.1d1bbcp-10f, 0x1.23a58cp-8f, 0x1.358c6cp-9f, 0x1.ff1e98p-11f, 0x1.f1289ap-13f, 0x1.10e99p-15f,
         0x1.25611p-18f, 0x1.331d1p-21f, 0x1.a2626p-25f, 0x1.0a32cp-3f, 0x1.d46228p-4f, 0x1.5abd98p-5f, -0x1.955932p-6f,
         -0x1.093704p-4f, -0x1.793758p-5f, -0x1.3a336p-6f},
    }}};

inline constexpr GrownPieces<9, 8> kTanh8{
    1,
    22,
    {1.5f, 2.5f, 4, 6, 8.05f, 0, 0, 0.75f},
    {{
        {0x1.cf6f98p-1f, 0x1.f92582p-1f, 0x1.ffa818p-1f, 0x1.fffe64p-1f, 0x1.fffffap-1f, 0, 0, 0x1.45323ep-1f},
        {0x1.72164cp-3f, 0x1.b3afe6p-6f, 0x1.5f83c6p-10f, 0x1.9c509cp-16f, 0x1.b54fe8p-22f, 0, 1, 0x1.3173b2p-1f},
        {-0x1.4efc2ap-3f, -0x1.add866p-6f, -0x1.5f624ep-10f, -0x1.9e82dap-16f, -0x1.7c7476p-21f, 0, 0x1.97a9fap-24f,
         -0x1.840346p-2f},
        {0x1.67b466p-4f, 0x1.16de54p-6f, 0x1.d3f39ap-11f, 0x1.130594p-16f, 0x1.23d774p-22f, 0, -0x1.5556c4p-2f,
         0x1.567f7cp-5f},
        {-0x1.98ec8ap-6f, -0x1.07fc7cp-7f, -0x1.d1277p-12f, -0x1.031ffp-17f, 0x1.c8807p-21f, 0, 0x1.c4ca48p-14f,
         0x1.9815dep-4f},
        {-0x1.60ac2ep-9f, 0x1.76f33ep-9f, 0x1.705836p-13f, 0x1.b3841p-19f, 0x1.cbfcbcp-25f, 0, 0x1.0ef476p-3f,
         -0x1.063588p-4f},
        {0x1.d0a87p-8f, -0x1.6209e8p-11f, -0x1.f6b0eap-15f, -0x1.cbf8bep-20f, -0x1.4570e2p-20f, 0, 0x1.635fep-8f,
         0x1.9f06p-10f},
        {-0x1.f440d6p-9f, 0x1.01468p-14f, 0x1.2fe126p-16f, 0x1.7afd62p-22f, 0x1.9bb74p-28f, 0, -0x1.203b5cp-4f,
         0x1.5cc166p-6f},
        {0x1.d12a44p-11f, -0x1.27166p-15f, -0x1.c73b94p-19f, 0x1.9eb064p-23f, 0x1.0203f4p-21f, 0, 0x1.c65676p-6f,
         -0x1.d0fb88p-6f},
    }}};

// erfcx(x / sqrt(2)) / 2 up to 15, relative error 5.9e-8, 5.1e-8.
inline constexpr GrownPieces<6, 32> kNormalRatio32{
    1,
    20,
    {1.125f, 1.375f, 1.625f, 1.875f, 2.125f, 2.375f, 2.625f, 2.875f, 3.25f, 3.75f, 4.25f, 4.75f, 5.25f, 5.75f, 6.25f,
     6.75f, 7.5f, 8.5f, 9.5f, 10.5f, 11.5f, 12.5f, 13.5f, 14.5f, 0.0625f, 0.1875f, 0.3125f, 0.4375f, 0.5625f, 0.6875f,
     0.8125f, 0.9375f},
    {{
        {0x1.f6704ep-3f, 0x1.bdb9f2p-3f, 0x1.8f6846p-3f, 0x1.690b32p-3f, 0x1.48de38p-3f, 0x1.2d938ap-3f, 0x1.1630fap-3f,
         0x1.01f838p-3f, 0x1.d0b31cp-4f, 0x1.99c2b6p-4f, 0x1.6e040ap-4f, 0x1.4a724ap-4f, 0x1.2d01fep-4f, 0x1.1445a6p-4f,
         0x1.fe6e5ep-5f, 0x1.da2caep-5f, 0x1.ac6292p-5f, 0x1.7b5f34p-5f, 0x1.545298p-5f, 0x1.34805ap-5f, 0x1.1a1574p-5f,
         0x1.03cf06p-5f, 0x1.e18ddcp-6f, 0x1.c0a9c4p-6f, 0x1.e76f76p-2f, 0x1.bb9424p-2f, 0x1.95b88ep-2f, 0x1.74d7e8p-2f,
         0x1.58207ep-2f, 0x1.3ee88ep-2f, 0x1.28a5d4p-2f, 0x1.14e6fep-2f},
        {-0x1.f7949ep-4f, -0x1.9851f2p-4f, -0x1.4ffe68p-4f, -0x1.18274ep-4f, -0x1.d8c1bcp-5f, -0x1.9328f6p-5f,
         -0x1.5b205ep-5f, -0x1.2d7c14p-5f, -0x1.ef2cc8p-6f, -0x1.85dc7cp-6f, -0x1.3a0094p-6f, -0x1.01c9bep-6f,
         -0x1.ae369cp-7f, -0x1.6c06bap-7f, -0x1.37c334p-7f, -0x1.0dd422p-7f, -0x1.b9fa6ap-8f, -0x1.5bcb4p-8f,
         -0x1.188feep-8f, -0x1.cdeeacp-9f, -0x1.82bdeep-9f, -0x1.486db4p-9f, -0x1.1a5102p-9f, -0x1.ea79b4p-10f,
         -0x1.7a0d5cp-2f, -0x1.45588cp-2f, -0x1.19baa6p-2f, -0x1.eacbbcp-3f, -0x1.ade41ap-3f, -0x1.7a88e4p-3f,
         -0x1.4efb3p-3f, -0x1.29d78ap-3f},
        {0x1.b6593p-5f, 0x1.4a0316p-5f, 0x1.f9a62p-6f, 0x1.89994cp-6f, 0x1.36dd1ep-6f, 0x1.f199aap-7f, 0x1.931dcep-7f,
         0x1.4a384ap-7f, 0x1.f2f516p-8f, 0x1.621fbp-8f, 0x1.031b36p-8f, 0x1.852b48p-9f, 0x1.2ae26ap-9f, 0x1.d419d4p-10f,
         0x1.74d5a4p-10f, 0x1.2d6b4ap-10f, 0x1.c0f8e8p-11f, 0x1.3ae79ap-11f, 0x1.c9eaf6p-12f, 0x1.56ee08p-12f,
         0x1.073c44p-12f, 0x1.9ca82ep-13f, 0x1.494a3cp-13f, 0x1.0ade5ap-13f, 0x1.cfce96p-3f, 0x1.7e9382p-3f,
         0x1.3dae34p-3f, 0x1.097b54p-3f, 0x1.be70a6p-4f, 0x1.7992f8p-4f, 0x1.411f8cp-4f, 0x1.1293e8p-4f},
        {-0x1.56ada2p-6f, -0x1.e3d474p-7f, -0x1.5c322ap-7f, -0x1.fe2758p-8f, -0x1.7be736p-8f, -0x1.1f39cp-8f,
         -0x1.b86ebap-9f, -0x1.56131ap-9f, -0x1.dec508p-10f, -0x1.34a21p-10f, -0x1.9ccf4cp-11f, -0x1.1cff04p-11f,
         -0x1.948d88p-12f, -0x1.262b38p-12f, -0x1.b504e6p-13f, -0x1.4acbcap-13f, -0x1.c158fp-14f, -0x1.19b9d8p-14f,
         -0x1.72072ep-15f, -0x1.f8fedcp-16f, -0x1.63da9cp-16f, -0x1.01b36ap-16f, -0x1.7e19bcp-17f, -0x1.211996p-17f,
         -0x1.e4be82p-4f, -0x1.81f8fp-4f, -0x1.35748ep-4f, -0x1.f387acp-5f, -0x1.95c5dep-5f, -0x1.4ba87ap-5f,
         -0x1.10b324p-5f, -0x1.c305dep-6f},
        {0x1.ec62e4p-8f, 0x1.481d9cp-8f, 0x1.be5f4ep-9f, 0x1.357d82p-9f, 0x1.b4e1b6p-10f, 0x1.3982d2p-10f,
         0x1.c8f518p-11f, 0x1.51d6d4p-11f, 0x1.b9c71p-12f, 0x1.04181p-12f, 0x1.3f6e16p-13f, 0x1.970272p-14f,
         0x1.0bd01ap-14f, 0x1.6a9f82p-15f, 0x1.f789d6p-16f, 0x1.658a68p-16f, 0x1.bdca1p-17f, 0x1.f47cf8p-18f,
         0x1.293d0ep-18f, 0x1.71fa48p-19f, 0x1.df0682p-20f, 0x1.40b178p-20f, 0x1.b9fae6p-21f, 0x1.385114p-21f,
         0x1.c115f4p-5f, 0x1.5ab436p-5f, 0x1.0d8f04p-5f, 0x1.a608a6p-6f, 0x1.4c928ep-6f, 0x1.07c26ap-6f, 0x1.a4f858p-7f,
         0x1.51f618p-7f},
        {-0x1.47f6c2p-9f, -0x1.9ed12ap-10f, -0x1.0c08dep-10f, -0x1.616f3ap-11f, -0x1.daee6ep-12f, -0x1.44cb4ep-12f,
         -0x1.c3a97p-13f, -0x1.3ef486p-13f, -0x1.861cb8p-14f, -0x1.a6015cp-15f, -0x1.de3ecep-16f, -0x1.1a561p-16f,
         -0x1.59acaap-17f, -0x1.b5125ep-18f, -0x1.1c5c24p-18f, -0x1.7ba0fp-19f, -0x1.b1c7dap-20f, -0x1.b59adep-21f,
         -0x1.d7575cp-22f, -0x1.0c1a6ap-22f, -0x1.3f6c5cp-23f, -0x1.8be5c8p-24f, -0x1.fbb2c2p-25f, -0x1.4f5924p-25f,
         -0x1.78e2fep-6f, -0x1.1b04cap-6f, -0x1.ac1d16p-7f, -0x1.460eep-7f, -0x1.f407dp-8f, -0x1.81f04ap-8f,
         -0x1.2bc84cp-8f, -0x1.d49b0cp-9f},
    }}};

inline constexpr GrownPieces<9, 8> kNormalRatio8{
    1,
    22,
    {1.5f, 2.5f, 4, 6, 9, 13, 0.25f, 0.75f},
    {{
        {0x1.a57056p-3f, 0x1.217252p-3f, 0x1.82b4bcp-4f, 0x1.095608p-4f, 0x1.66ccb8p-5f, 0x1.f3ddc2p-6f, 0x1.a7f808p-2f,
         0x1.337024p-2f},
        {-0x1.71c04cp-4f, -0x1.75ab64p-5f, -0x1.5cf97ap-6f, -0x1.5068c2p-7f, -0x1.37812p-8f, -0x1.3012a8p-9f,
         -0x1.2e8652p-2f, -0x1.63e072p-3f},
        {0x1.204038p-5f, 0x1.bf399ep-7f, 0x1.2dda02p-8f, 0x1.a0eee4p-10f, 0x1.0b6e06p-11f, 0x1.6fdc4p-13f,
         0x1.5c5674p-3f, 0x1.5bf7f2p-4f},
        {-0x1.9980c8p-7f, -0x1.f6278ap-9f, -0x1.f6a7b4p-11f, -0x1.f9cd22p-13f, -0x1.c63df8p-15f, -0x1.ba91ep-17f,
         -0x1.594f6p-4f, -0x1.2c84ap-5f},
        {0x1.0d6064p-8f, 0x1.0ac21ap-10f, 0x1.943e2cp-13f, 0x1.2cabb6p-15f, 0x1.7db85ep-18f, 0x1.08c694p-20f,
         0x1.312c8cp-5f, 0x1.d68c7p-7f},
        {-0x1.4bc1c2p-10f, -0x1.0dd9acp-12f, -0x1.3a4b28p-15f, -0x1.5e7434p-18f, -0x1.3c854p-21f, -0x1.3adb8p-24f,
         -0x1.eb6afap-7f, -0x1.53a4bep-8f},
        {0x1.8231bep-12f, 0x1.05675p-14f, 0x1.db927ep-18f, 0x1.91666cp-21f, 0x1.04b5d2p-24f, 0x1.74bff4p-28f,
         0x1.6deafap-8f, 0x1.c98b0ep-10f},
        {-0x1.bc0a44p-14f, -0x1.f47a24p-17f, -0x1.7883bcp-20f, -0x1.d7ce44p-24f, -0x1.d3c3b2p-28f, -0x1.cd1d62p-32f,
         -0x1.0260e2p-9f, -0x1.25ac68p-11f},
        {0x1.d42cfcp-16f, 0x1.c0aaap-19f, 0x1.0d3a7ep-22f, 0x1.04d532p-26f, 0x1.795524p-31f, 0x1.0e014ep-35f,
         0x1.52789ep-11f, 0x1.60a39ep-13f},
    }}};

// ln(1 + x) / x on [0, 1], relative error 4.6e-8, 3.3e-8.
inline constexpr EvenPieces<4, 16> kLogOfSum16{
    1.0f / 15,
    {{
        {1, 0x1.efa7e4p-1f, 0x1.e0a06p-1f, 0x1.d2be4p-1f, 0x1.c5dddp-1f, 0x1.b9e132p-1f, 0x1.aeaf38p-1f, 0x1.a4327cp-1f,
         0x1.9a58a4p-1f, 0x1.9111dcp-1f, 0x1.885068p-1f, 0x1.800848p-1f, 0x1.782ef8p-1f, 0x1.70bb2ep-1f, 0x1.69a4bp-1f,
         0x1.62e43p-1f},
        {-0x1.ffffa8p-2f, -0x1.d5acdap-2f, -0x1.b0ed2ap-2f, -0x1.90c3ep-2f, -0x1.746b62p-2f, -0x1.5b472ap-2f,
         -0x1.44d9d2p-2f, -0x1.30bdc6p-2f, -0x1.1e9fe2p-2f, -0x1.0e3b88p-2f, -0x1.feaf3ap-3f, -0x1.e3887ap-3f,
         -0x1.cab1f4p-3f, -0x1.b3e6eep-3f, -0x1.9eecaep-3f, -0x1.8b90cp-3f},
        {0x1.551708p-2f, 0x1.27522ep-2f, 0x1.01738cp-2f, 0x1.c4603cp-3f, 0x1.8feep-3f, 0x1.63c0e4p-3f, 0x1.3e4b88p-3f,
         0x1.1e159ap-3f, 0x1.02475ep-3f, 0x1.d453b8p-4f, 0x1.aa25a4p-4f, 0x1.854c6ep-4f, 0x1.649ea4p-4f, 0x1.47b63cp-4f,
         0x1.2e2bf6p-4f, 0x1.1729a4p-4f},
        {-0x1.e6a4bep-3f, -0x1.a0c282p-3f, -0x1.56f53p-3f, -0x1.1d6a96p-3f, -0x1.df4bdep-4f, -0x1.9620d2p-4f,
         -0x1.5af74ep-4f, -0x1.2a54f6p-4f, -0x1.0238d2p-4f, -0x1.c1bd28p-5f, -0x1.89ba4ep-5f, -0x1.5a78d8p-5f,
         -0x1.3235e8p-5f, -0x1.0ff0aap-5f, -0x1.e52ebap-6f, -0x1.b1e45ep-6f},
    }}};

inline constexpr EvenPieces<5, 8> kLogOfSum8{
    1.0f / 7,
    {{
        {1, 0x1.de9396p-1f, 0x1.c25bp-1f, 0x1.aa1b9p-1f, 0x1.94fa8ap-1f, 0x1.825a4ap-1f, 0x1.71c5d4p-1f, 0x1.62e43p-1f},
        {-0x1.ffffeep-2f, -0x1.ac120ap-2f, -0x1.6ceea8p-2f, -0x1.3bf80ap-2f, -0x1.150fc4p-2f, -0x1.eb0aa4p-3f,
         -0x1.b70abep-3f, -0x1.8b90bap-3f},
        {0x1.554bd2p-2f, 0x1.f9019p-3f, 0x1.82632ap-3f, 0x1.2fbffcp-3f, 0x1.e8139p-4f, 0x1.8f45cep-4f, 0x1.4b96c8p-4f,
         0x1.171fe8p-4f},
        {-0x1.fcd57cp-3f, -0x1.4ebbbep-3f, -0x1.c9cde4p-4f, -0x1.45743p-4f, -0x1.dd92e8p-5f, -0x1.67ab62p-5f,
         -0x1.14e11p-5f, -0x1.b25bdcp-6f},
        {0x1.6366d4p-3f, 0x1.d37874p-4f, 0x1.2c7fecp-4f, 0x1.7076d6p-5f, 0x1.e3a082p-6f, 0x1.55dffcp-6f, 0x1.24378ap-6f,
         0x1.6bde8cp-7f},
    }}};

}  // namespace tenon::x86
