"""Databases that are queues: opening them, transactions, claims. README.md says what it promises."""
