// Coefficients of piecewise polynomials (piecewise.hpp): minimax in relative error, by Sollya's fpminimax on each
// interval; those of kNormalRatio8 and kNormalProduct32 by interpolation (tools/emitters/normal_ratio.py). Columns
// stand by index.
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

// x erfcx(x / sqrt(2)) / 2 up to 14.9, relative error 6.4e-8.
inline constexpr GrownPieces<5, 32> kNormalProduct32{
    1.04f,
    20,
    {0x1.15748f5c28f5cp0f,  0x1.54ba8f5c28f5cp0f, 0x1.956a8f5c28f5cp0f, 0x1.d4d28f5c28f5cp0f,  0x1.0a9e47ae147aep1f,
     0x1.2aba47ae147aep1f,  0x1.4a5647ae147aep1f, 0x1.6b0c47ae147aep1f, 0x1.9b3047ae147aep1f,  0x1.da7b47ae147aep1f,
     0x1.0daca3d70a3d7p2f,  0x1.2d47a3d70a3d7p2f, 0x1.4d5323d70a3d7p2f, 0x1.6d9da3d70a3d7p2f,  0x1.8d72a3d70a3d7p2f,
     0x1.ad4323d70a3d7p2f,  0x1.dd7223d70a3d7p2f, 0x1.0ec491eb851ecp3f, 0x1.2eb151eb851ecp3f,  0x1.4e9d51eb851ecp3f,
     0x1.6ead11eb851ecp3f,  0x1.8edd11eb851ecp3f, 0x1.aea411eb851ecp3f, 0x1.ced051eb851ecp3f,  0,
     0x1.34647ae147aep-3f,  0x1.14023d70a3d7p-2f, 0x1.995a3d70a3d7p-2f, 0x1.0d151eb851eb8p-1f, 0x1.4d211eb851eb8p-1f,
     0x1.8d511eb851eb8p-1f, 0x1.cccd1eb851eb8p-1f},
    {{
        {0x1.15ff24p-2f, 0x1.2eb6f6p-2f, 0x1.41d93ap-2f, 0x1.5048bp-2f,  0x1.5bc1acp-2f,
         0x1.64d154p-2f, 0x1.6bfdacp-2f, 0x1.72054cp-2f, 0x1.78f96ep-2f, 0x1.7faaaap-2f,
         0x1.849824p-2f, 0x1.8824c6p-2f, 0x1.8ae01cp-2f, 0x1.8d00eep-2f, 0x1.8ea83ap-2f,
         0x1.8ffbaep-2f, 0x1.918a5cp-2f, 0x1.9308f2p-2f, 0x1.9418aap-2f, 0x1.94e0fep-2f,
         0x1.95795ep-2f, 0x1.95efcap-2f, 0x1.964c2ep-2f, 0x1.96975ep-2f, 0,
         0x1.12933p-4f,  0x1.c2cdbcp-4f, 0x1.31a73ep-3f, 0x1.72393ep-3f, 0x1.a83d02p-3f,
         0x1.d60eap-3f,  0x1.fca74cp-3f},
        {0x1.cc28e6p-4f,  0x1.5a79cp-4f,   0x1.07e98ep-4f,  0x1.9ac15ep-5f,  0x1.432352p-5f,  0x1.01e03cp-5f,
         0x1.a21254p-6f,  0x1.54567p-6f,   0x1.00583p-6f,   0x1.6c491ap-7f,  0x1.08cf8cp-7f,  0x1.8e6476p-8f,
         0x1.315066p-8f,  0x1.dc6a26p-9f,  0x1.7b71f8p-9f,  0x1.32c986p-9f,  0x1.c7c2e2p-10f, 0x1.3f019ep-10f,
         0x1.cfa1e2p-11f, 0x1.5b0fb8p-11f, 0x1.0a03d2p-11f, 0x1.a01b8ap-12f, 0x1.4c59f2p-12f, 0x1.0ce35p-12f,
         0x1.fffffep-2f,  0x1.94ad22p-2f,  0x1.52639ep-2f,  0x1.18154cp-2f,  0x1.d5a01cp-3f,  0x1.8c758ap-3f,
         0x1.507aap-3f,   0x1.1fa03ep-3f},
        {-0x1.10b7dcp-4f,  -0x1.8145c2p-5f,  -0x1.13666ep-5f,  -0x1.937f76p-6f,  -0x1.2b158ap-6f,  -0x1.c2b51p-7f,
         -0x1.59e434p-7f,  -0x1.0a92cp-7f,   -0x1.73bbaap-8f,  -0x1.e015bcp-9f,  -0x1.3e6e3ep-9f,  -0x1.b8ad58p-10f,
         -0x1.37ef4ap-10f, -0x1.c3814cp-11f, -0x1.4f632cp-11f, -0x1.fbcfecp-12f, -0x1.57b9d8p-12f, -0x1.addb8cp-13f,
         -0x1.1a1accp-13f, -0x1.80cbc4p-14f, -0x1.0ea11cp-14f, -0x1.86d72p-15f,  -0x1.221d9ep-15f, -0x1.b602bp-16f,
         -0x1.9881fcp-2f,  -0x1.35670cp-2f,  -0x1.f46cdep-3f,  -0x1.8f69c8p-3f,  -0x1.4366fap-3f,  -0x1.07d142p-3f,
         -0x1.b0d716p-4f,  -0x1.65e53p-4f},
        {0x1.07ede2p-5f,  0x1.6013bap-6f,  0x1.db56b2p-7f,  0x1.49a46cp-7f,  0x1.cee26ep-8f,  0x1.4ae482p-8f,
         0x1.e2e96cp-9f,  0x1.61cc5p-9f,   0x1.cd1a96p-10f, 0x1.1007fep-10f, 0x1.4aca84p-11f, 0x1.a6a5ap-12f,
         0x1.153356p-12f, 0x1.752ccep-13f, 0x1.0319e4p-13f, 0x1.7004e8p-14f, 0x1.c96c26p-15f, 0x1.ffbe58p-16f,
         0x1.2f9dfep-16f, 0x1.799db2p-17f, 0x1.e7b25ap-18f, 0x1.454f08p-18f, 0x1.c1008ap-19f, 0x1.3c5df6p-19f,
         0x1.feea86p-3f,  0x1.760966p-3f,  0x1.25bdcp-3f,   0x1.c62f26p-4f,  0x1.64a86cp-4f,  0x1.1a4822p-4f,
         0x1.c16b18p-5f,  0x1.68cfe2p-5f},
        {-0x1.ba3942p-7f,  -0x1.16a9aep-7f,  -0x1.66e72p-8f,   -0x1.d7c264p-9f,  -0x1.3c0718p-9f,  -0x1.af0caap-10f,
         -0x1.2aeed8p-10f, -0x1.a52d02p-11f, -0x1.00d936p-11f, -0x1.14b6aep-12f, -0x1.387774p-13f, -0x1.6fc4b8p-14f,
         -0x1.c10352p-15f, -0x1.1b2954p-15f, -0x1.6fa286p-16f, -0x1.e9d46cp-17f, -0x1.1751cep-17f, -0x1.18ec26p-18f,
         -0x1.2dd15ep-19f, -0x1.56a15ap-20f, -0x1.977ceep-21f, -0x1.f84648p-22f, -0x1.42e9bep-22f, -0x1.aa17e8p-23f,
         -0x1.f74054p-4f,  -0x1.837a3ap-4f,  -0x1.24657ep-4f,  -0x1.bc6768p-5f,  -0x1.54079ep-5f,  -0x1.05e616p-5f,
         -0x1.960b4p-6f,   -0x1.3cbb8p-6f},
    }}};

// erfcx(x / sqrt(2)) / 2 up to 15, relative error 5.1e-8.
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
