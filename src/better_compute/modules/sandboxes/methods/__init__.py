"""The methods of sandbox templates and volumes."""
