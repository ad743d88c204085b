// Xbyak as this plugin uses it: methods and_(), or_(), xor_(), not_() instead of names that are C++ operators.
#pragma once
#ifndef XBYAK_NO_OP_NAMES
#define XBYAK_NO_OP_NAMES
#endif
#include <xbyak/xbyak.h>
#include <xbyak/xbyak_util.h>
