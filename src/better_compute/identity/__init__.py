"""The embedded IAM: one folder per group, and the adapter that fills `kernel.iam.IamPort` from their tables."""
