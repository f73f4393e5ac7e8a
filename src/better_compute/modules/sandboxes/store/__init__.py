"""Statements on sandbox templates and their volumes."""
