"""`run`: connections are synced when they are due, rounds follow, and nothing of it ends the loop.

`due` decides when (pure), `sync` does one run of a connection, `pages` looks at what it hands over and
`standing` tells how each stands. `ticks` is the loop, `watch` wakes it for files, `running` holds it in the
foreground until a signal. Only `schedule`, beside this package, opens the store and starts it.
"""
