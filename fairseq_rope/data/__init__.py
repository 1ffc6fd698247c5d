"""Datasets of the tasks."""
