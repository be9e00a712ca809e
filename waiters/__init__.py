"""When to deliver, look again, renew, stop: the rules of a waiter, for any harness.

A receiver (`receiver.py`) says how one harness is given a delivery; nothing here knows which one it is.
"""
