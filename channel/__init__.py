"""The channel: one SQLite file that all agents of one account share.

Rooms, roles, messages, deliveries, leases: the words and the rules, over one database. It knows no
harness, starts no task, keeps no timer, and imports nothing of the other folders.
"""
