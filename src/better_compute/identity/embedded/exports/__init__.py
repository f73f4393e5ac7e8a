"""The IAM port on our own tables, and how a new deployment gets its first administrator."""
