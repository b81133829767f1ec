"""Peers side by side: one file a room, each prints a table and writes its figures to ``build/``."""
