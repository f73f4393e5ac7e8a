"""Fixtures for every test come from the plugin `better_compute.testing.plugin`; pyproject.toml loads it by name."""
