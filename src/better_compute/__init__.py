"""Better Compute: a multi-tenant compute control plane."""

__version__ = "0.1.0"
