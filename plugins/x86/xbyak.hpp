// Xbyak, as this plugin uses it: and_(), or_(), xor_(), not_() instead of methods that are called as operators are.
#pragma once
#ifndef XBYAK_NO_OP_NAMES
#define XBYAK_NO_OP_NAMES
#endif
#include <xbyak/xbyak.h>
#include <xbyak/xbyak_util.h>
