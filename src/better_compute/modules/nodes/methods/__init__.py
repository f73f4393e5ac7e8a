"""What operators call, and what hosts are answered."""
