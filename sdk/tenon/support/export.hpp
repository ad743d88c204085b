// Marks what a shared library of the core exports. Everything else is hidden.
#pragma once
#define TENON_API __attribute__((visibility("default")))
