"""One operation's protocol, without I/O: identity, promises, belief, take-over, next step."""
