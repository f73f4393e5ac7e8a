"""The background steps of instances: what hosts report, and what providers are asked for."""
