"""Connectors: sources that are pulled. One module a toolkit; each only fetches and turns into events."""
