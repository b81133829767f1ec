"""Figures about the code itself, each printed by a command."""
