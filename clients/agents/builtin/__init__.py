"""The built-in agent: a seeded search over C++ templates. It needs no model and no key."""
