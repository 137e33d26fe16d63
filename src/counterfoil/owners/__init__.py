"""Our side of the services that hold effects: what an adapter is, and how one is made."""
