"""What tenants and operators call about instances."""
