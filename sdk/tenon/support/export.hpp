// Marks what the core's shared libraries export. Everything else is hidden.
#pragma once
#define TENON_API __attribute__((visibility("default")))
