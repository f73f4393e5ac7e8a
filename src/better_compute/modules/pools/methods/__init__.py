"""The methods of pools and offers (seed 004, Offering pools to organizations)."""
