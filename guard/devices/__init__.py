"""Devices: who may use one, and when."""
