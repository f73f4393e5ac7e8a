"""What other modules may ask about sites, within their open transaction."""

from better_compute.modules.sites.store import get_site

__all__ = ["get_site"]
