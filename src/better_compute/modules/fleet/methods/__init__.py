"""The methods of fleets: asking (`reads`), applying (`apply`), and what is said about it afterwards (`records`)."""
