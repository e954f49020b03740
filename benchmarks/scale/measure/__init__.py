"""Measures the model's constants, what the model is checked against, and several pairs."""
