"""Measures the model's constants, quantities for its checks, and several pairs."""
