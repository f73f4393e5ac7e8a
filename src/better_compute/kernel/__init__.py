"""The rules of every call and every background step; knows no feature."""
